"""For consumers without bzlmod: the repositories and toolchains of aotriton.

    local_repository(name = "aotriton", path = "...")   # or http_archive
    load("@aotriton//:workspace.bzl", "aotriton_repositories")
    aotriton_repositories()

The consumer declares platforms, bazel_skylib, rules_cc, rules_python and xz itself, as every
WORKSPACE does.
"""

load("//toolchains:extensions.bzl", "lock_of")
load("//toolchains/python:packages.bzl", "host_python", "python_packages")
load("//toolchains/triton:wheel.bzl", "triton_wheel")

def aotriton_repositories(triton_version = "", triton_lock = None):
    """Makes @triton_wheel, @python_packages and @host_python, and registers the toolchains.

    Args:
      triton_version: as triton.wheel(version = ...) in MODULE.bazel.
      triton_lock: as triton.wheel(lock = ...).
    """
    triton_wheel(name = "triton_wheel", lock = lock_of(triton_version, triton_lock))
    python_packages(name = "python_packages", lock = Label("//toolchains/python:requirements.txt"))
    host_python(name = "host_python")
    native.register_toolchains("@aotriton//toolchains/triton:all", "@host_python//:toolchain")
