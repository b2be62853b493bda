"""aotriton_distribution: the shared library, its headers and its images as one dependency."""

load("@rules_cc//cc:defs.bzl", "CcInfo")

def _aotriton_distribution_impl(ctx):
    library = ctx.attr.library[DefaultInfo].files
    images = ctx.attr.images[DefaultInfo].files
    return [
        DefaultInfo(
            files = depset(transitive = [library, images]),
            runfiles = ctx.runfiles(transitive_files = depset(transitive = [library, images])),
        ),
        ctx.attr.linking[CcInfo],
        OutputGroupInfo(reports = ctx.attr.images[OutputGroupInfo].reports),
    ]

aotriton_distribution = rule(
    implementation = _aotriton_distribution_impl,
    attrs = {
        "images": attr.label(mandatory = True, doc = "An triton_images target."),
        "library": attr.label(mandatory = True, doc = "The shared library and its unversioned link."),
        "linking": attr.label(mandatory = True, providers = [CcInfo], doc = "What a C++ target gets: headers and the library."),
    },
    doc = "What a C++ target gets from `@aotriton//:aotriton`, and what `bazel build //:aotriton` makes.",
)
