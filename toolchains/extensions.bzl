"""The module extension behind MODULE.bazel; workspace.bzl makes the same repositories without bzlmod."""

load("//toolchains/python:packages.bzl", "host_python", "python_packages")
load("//toolchains/triton:wheel.bzl", "DEFAULT_VERSION", "LOCKS", "triton_wheel")

_wheel = tag_class(
    attrs = {
        "version": attr.string(doc = "A version whose hashes aotriton carries: " + ", ".join(LOCKS.keys()) + "."),
        "lock": attr.label(doc = "A requirements file of yours, for any other version."),
    },
    doc = "Which Triton compiles the kernels. The root module's word counts.",
)

def lock_of(version = "", lock = None):
    """The lock file of a version, or `lock` itself."""
    if lock and version:
        fail("triton.wheel takes version or lock, not both")
    if lock:
        return lock
    version = version or DEFAULT_VERSION
    if version not in LOCKS:
        fail("No hashes are locked for triton %s; there are %s. Give lock = \"//:your_requirements.txt\" instead." % (version, ", ".join(LOCKS.keys())))
    return Label(LOCKS[version])

def _triton_impl(mctx):
    lock = lock_of()
    for module in mctx.modules:
        for tag in module.tags.wheel:
            if module.is_root:
                lock = lock_of(tag.version, tag.lock)
    triton_wheel(name = "triton_wheel", lock = lock)
    python_packages(name = "python_packages", lock = Label("//toolchains/python:requirements.txt"))
    python_packages(name = "llvm_package", lock = Label("//toolchains/python:llvm.txt"))
    host_python(name = "host_python")

triton = module_extension(
    implementation = _triton_impl,
    tag_classes = {"wheel": _wheel},
    doc = "The repositories @triton_wheel, @python_packages, @host_python and, for tests of the simulator, @llvm_package.",
)
