"""@triton_wheel: the pinned Triton compiler, as one source directory, and the HIP headers in it."""

load("//toolchains/python:wheels.bzl", "WHEEL_ENVIRON", "install_wheels")

# Versions whose hashes are locked here; a consumer may bring a lock file of its own.
LOCKS = {
    "3.6.0": "//toolchains/triton/locks:triton-3.6.0.txt",
    "3.7.1": "//toolchains/triton/locks:triton-3.7.1.txt",
}
DEFAULT_VERSION = "3.6.0"

def _triton_wheel_impl(rctx):
    install_wheels(rctx, rctx.path(rctx.attr.lock), "site")
    metadata = [entry for entry in rctx.path("site").readdir() if entry.basename.startswith("triton-") and entry.basename.endswith(".dist-info")]
    if len(metadata) != 1:
        fail("%s must name triton, it brought %s" % (rctx.attr.lock, metadata))
    version = metadata[0].basename[len("triton-"):-len(".dist-info")]

    # The hashes of the wheel's files, outside the directory: what tells one wheel from another.
    rctx.file("RECORD", rctx.read(metadata[0].get_child("RECORD")))
    rctx.file("defs.bzl", '"""The Triton that is here."""\n\nTRITON_VERSION = "%s"\n' % version)
    rctx.file("BUILD.bazel", """
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_python//python:defs.bzl", "py_library")

package(default_visibility = ["//visibility:public"])

exports_files([
    "RECORD",
    "site",
])

py_library(
    name = "triton",
    data = ["site"],
    imports = ["site"],
)

cc_library(
    name = "hip_headers",
    hdrs = glob(["site/triton/backends/amd/include/hip/**"]),
    defines = ["__HIP_PLATFORM_AMD__=1"],
    includes = ["site/triton/backends/amd/include"],
)
""")

triton_wheel = repository_rule(
    implementation = _triton_wheel_impl,
    attrs = {"lock": attr.label(mandatory = True, doc = "Requirements file that names triton with its hashes.")},
    environ = WHEEL_ENVIRON,
    doc = "The Triton wheel of the machine's Python.",
)
