"""api_package: the public headers of one API and the code behind them."""

load("@rules_cc//cc:defs.bzl", "cc_library")
load("//toolchains/cc:copts.bzl", "COPTS")

def api_package(name, srcs, deps, header_deps = []):
    """Declares `name`, the code; `headers`, the library of the headers; `header_files`, what is installed.

    Args:
      name: of the package's folder.
      srcs: the code.
      deps: of the code, beside the headers.
      header_deps: of the headers, which stand in aotriton/.
    """
    native.filegroup(
        name = "header_files",
        srcs = native.glob(["aotriton/**/*.h"]),
        visibility = ["//api:__subpackages__"],
    )
    cc_library(
        name = "headers",
        hdrs = [":header_files"],
        includes = ["."],
        visibility = ["//visibility:public"],
        deps = header_deps,
    )
    cc_library(
        name = name,
        srcs = srcs,
        copts = COPTS,
        linkstatic = True,  # its symbols are hidden
        visibility = ["//api:__subpackages__"],
        deps = [":headers"] + deps,
        alwayslink = True,
    )
