"""The Triton toolchain: what compiles kernels, one for each arch of the table.

A rule that compiles asks for TOOLCHAIN_TYPE; the platform picks the toolchain, and the
toolchain carries the arch, so that no rule needs a select over archs.
"""

load("@host_python//:defs.bzl", "PYTHON")
load("@triton_wheel//:defs.bzl", "TRITON_VERSION")
load("//platforms:archs.bzl", "ARCHS")

TOOLCHAIN_TYPE = Label("//toolchains/triton:toolchain_type")

def _triton_toolchain_impl(ctx):
    return [platform_common.ToolchainInfo(
        arch = ctx.attr.arch,
        vendor = ARCHS[ctx.attr.arch]["vendor"],
        wave_size = ARCHS[ctx.attr.arch]["wave_size"],
        python = PYTHON,
        record = ctx.file.record,
        site = ctx.file.site,
        tool = ctx.file.tool,
        version = TRITON_VERSION,
    )]

triton_toolchain = rule(
    implementation = _triton_toolchain_impl,
    attrs = {
        "arch": attr.string(mandatory = True, doc = "A name of the arch table."),
        "record": attr.label(
            mandatory = True,
            allow_single_file = True,
            cfg = "exec",
            doc = "A file that changes with the contents of site.",
        ),
        "site": attr.label(
            mandatory = True,
            allow_single_file = True,
            cfg = "exec",
            doc = "Directory that holds the Python package triton.",
        ),
        "tool": attr.label(
            mandatory = True,
            allow_single_file = True,
            cfg = "exec",
            doc = "The compile tool, a Python file run by the machine's interpreter.",
        ),
    },
    doc = "A compiler for one arch.",
)

def triton_toolchains():
    """Declares a toolchain for every arch of the table."""
    for arch in ARCHS:
        triton_toolchain(
            name = arch + "_compiler",
            arch = arch,
            record = "@triton_wheel//:RECORD",
            site = "@triton_wheel//:site",
            tool = "//tools/triton_compile:triton_compile.py",
        )
        native.toolchain(
            name = arch,
            exec_compatible_with = ["@platforms//os:linux", "@platforms//cpu:x86_64"],
            target_compatible_with = ["//platforms/arch:" + arch],
            toolchain = ":%s_compiler" % arch,
            toolchain_type = TOOLCHAIN_TYPE,
        )
