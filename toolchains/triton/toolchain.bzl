"""The Triton toolchain: what compiles kernels, one for each arch and each family of the table.

A rule that compiles asks for TOOLCHAIN_TYPE; the platform picks the toolchain, and the
toolchain carries the arch, so that no rule needs a select over archs.
"""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@host_python//:defs.bzl", "PYTHON")
load("@triton_wheel//:defs.bzl", "TRITON_VERSION")
load("//platforms:defs.bzl", "TARGETS")

TOOLCHAIN_TYPE = Label("//toolchains/triton:toolchain_type")

def _triton_toolchain_impl(ctx):
    # An arch that runs another's code objects is compiled for as the other, once.
    arch = ctx.attr.arch if ctx.attr._own_code[BuildSettingInfo].value else TARGETS[ctx.attr.arch].get("code_of", ctx.attr.arch)
    return [platform_common.ToolchainInfo(
        arch = arch,
        vendor = TARGETS[arch]["vendor"],
        wave_size = TARGETS[arch]["wave_size"],
        python = PYTHON,
        record = ctx.file.record,
        site = ctx.file.site,
        tool = ctx.file.tool,
        tool_deps = ctx.files.tool_deps,
        version = TRITON_VERSION,
    )]

triton_toolchain = rule(
    implementation = _triton_toolchain_impl,
    attrs = {
        "arch": attr.string(mandatory = True, doc = "An arch of the table, or <family>-generic."),
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
        "tool_deps": attr.label_list(allow_files = [".py"], cfg = "exec", doc = "Python files beside the tool that it imports."),
        "_own_code": attr.label(default = "//platforms:own_code"),
    },
    doc = "A compiler for one arch.",
)

def triton_toolchains():
    """Declares a toolchain for every arch and every family of the table."""
    for arch in TARGETS:
        is_generic = arch.endswith("-generic")
        triton_toolchain(
            name = arch + "_compiler",
            arch = arch,
            record = "@triton_wheel//:RECORD",
            site = "@triton_wheel//:site",
            tool = "//tools/triton_compile:%s.py" % ("generic_target" if is_generic else "triton_compile"),
            tool_deps = ["//tools/triton_compile:triton_compile.py"] if is_generic else [],
        )
        native.toolchain(
            name = arch,
            exec_compatible_with = ["@platforms//os:linux", "@platforms//cpu:x86_64"],
            target_compatible_with = ["//platforms/arch:" + arch],
            toolchain = ":%s_compiler" % arch,
            toolchain_type = TOOLCHAIN_TYPE,
        )
