"""@python_packages: what the tools and tests import; @llvm_package; @host_python: what runs them."""

load(":wheels.bzl", "WHEEL_ENVIRON", "find_python", "install_wheels")

def _python_packages_impl(rctx):
    install_wheels(rctx, rctx.path(rctx.attr.lock), "site")
    rctx.file("BUILD.bazel", """
load("@rules_python//python:defs.bzl", "py_library")

package(default_visibility = ["//visibility:public"])

exports_files(["site"])

# One source directory: thousands of files would cost every sandboxed action that uses them.
py_library(
    name = "packages",
    data = ["site"],
    imports = ["site"],
)
""")

python_packages = repository_rule(
    implementation = _python_packages_impl,
    attrs = {"lock": attr.label(mandatory = True, doc = "Requirements file with a hash for every wheel.")},
    environ = WHEEL_ENVIRON,
    doc = "Locked Python packages as one py_library, @name//:packages, and as one directory, @name//:site.",
)

def _host_python_impl(rctx):
    python = find_python(rctx)
    rctx.file("defs.bzl", '"""The machine\'s Python."""\n\nPYTHON = "%s"\nPYTHON_VERSION = "%s"\n' % (python.path, python.version))
    rctx.file("BUILD.bazel", """
load("@rules_python//python:defs.bzl", "py_runtime", "py_runtime_pair")
load(":defs.bzl", "PYTHON")

py_runtime(
    name = "runtime",
    interpreter_path = PYTHON,
    python_version = "PY3",
)

py_runtime_pair(
    name = "pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
""")

host_python = repository_rule(
    implementation = _host_python_impl,
    environ = WHEEL_ENVIRON + ["PATH"],
    configure = True,
    doc = "Finds the machine's Python and makes it the toolchain of py_binary and py_test.",
)
