"""gpu_tests: the GPU suites of one arch, in Python and in C++."""

load("@rules_python//python:defs.bzl", "py_test")

_ARCHS = str(Label("//:archs"))
_ONLY = str(Label("//kernels:only"))

def _arch_impl(settings, attr):
    return {_ARCHS: attr.arch, _ONLY: attr.only or settings[_ONLY]}

_arch = transition(implementation = _arch_impl, inputs = [_ONLY], outputs = [_ARCHS, _ONLY])

def _for_arch_impl(ctx):
    files = ctx.attr.target[0][DefaultInfo].files
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

for_arch = rule(
    implementation = _for_arch_impl,
    attrs = {
        "arch": attr.string(mandatory = True, doc = "The packs' arch."),
        "only": attr.string_list(doc = "As --//kernels:only; default what that says."),
        "target": attr.label(mandatory = True, cfg = _arch),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
    doc = "The files of `target` with packs for an arch, whatever the platform.",
)

def _gpu_test(name, arch, args, data, **kwargs):
    py_test(
        name = name,
        srcs = [
            "gpu_test.py",
            "gpus.py",
        ],
        args = ["--arch=" + arch] + args,
        data = data,
        main = "gpu_test.py",
        tags = [
            # Run whenever it is asked for, where the GPU is; not remotely, and not in a sandbox.
            "external",
            "gpu",
            "local",
            "resources:gpu:1",
        ],
        target_compatible_with = select({
            "//tests/rocm:enabled": [],
            "//conditions:default": ["//tests/rocm:give_--config=rocm"],
        }),
        **kwargs
    )

def gpu_tests(arch, is_here, cpp, only):
    """Declares <arch>_python_test and <arch>_cpp_test.

    Args:
      arch: of the GPU.
      is_here: whether this machine has one. If not, no pack is built, and the tests say so.
      cpp: a googletest program.
      only: the functionals that it needs.
    """
    for_arch(
        name = arch + "_bundle",
        testonly = True,
        arch = arch,
        tags = ["manual"],
        target = "//tests/gpu:bundle",
    )
    for_arch(
        name = arch + "_images",
        testonly = True,
        arch = arch,
        only = only,
        tags = ["manual"],
        target = "//:images",
    )
    _gpu_test(
        name = arch + "_python_test",
        size = "enormous",
        arch = arch,
        args = ["--bundle=tests/gpu/bundle.tar.gz"] if is_here else [],
        data = [arch + "_bundle"] if is_here else [],
    )
    _gpu_test(
        name = arch + "_cpp_test",
        arch = arch,
        args = ["--binary=$(rootpath %s)" % cpp, "--images=aotriton.images"] if is_here else [],
        data = [arch + "_images", cpp] if is_here else [],
    )
