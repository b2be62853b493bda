"""shared_library: libaotriton_v2.so, with or without packs in it."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load(":claim.bzl", "named_library")

def shared_library(prefix, folder = "", deps = [], **kwargs):
    """Declares the library and what comes of it.

    <prefix>library: the library under its SONAME and the link without a version. <prefix>versioned_library:
    the former alone. <prefix>linking: the cc_library of who links it.

    Args:
      prefix: of the names of the targets.
      folder: where the library lies in the package, with a slash at its end.
      deps: libraries that become part of it, beside the API.
      **kwargs: of all targets, e.g. target_compatible_with.
    """
    cc_binary(
        name = folder + "aotriton_v2.so",
        additional_linker_inputs = ["//api:exports.lds"],
        linkopts = [
            "-Wl,--version-script=$(location //api:exports.lds)",
            "-Wl,-soname,$(AOTRITON_SONAME)",
            "-Wl,--no-undefined",
            "-Wl,-Bsymbolic",  # another copy in the process takes over no call from within
            "-ldl",
            "-pthread",
        ],
        linkshared = True,
        toolchains = ["//:claim"],
        deps = deps + ["//api"],
        **kwargs
    )
    named_library(
        name = prefix + "library",
        folder = folder,
        library = folder + "aotriton_v2.so",
        **kwargs
    )
    native.filegroup(
        name = prefix + "versioned_library",
        srcs = [prefix + "library"],
        output_group = "versioned",
        **kwargs
    )
    cc_library(
        name = prefix + "linking",
        srcs = [prefix + "versioned_library"],
        deps = ["//api:headers"],
        **kwargs
    )
