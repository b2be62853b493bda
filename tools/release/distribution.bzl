"""aotriton_distribution: the shared library, its headers and its images as one dependency."""

load("@rules_cc//cc:defs.bzl", "CcInfo")

def _aotriton_distribution_impl(ctx):
    library = ctx.attr.library[DefaultInfo].files
    files = depset(transitive = [library] + ([ctx.attr.images[DefaultInfo].files] if ctx.attr.images else []))
    return [
        DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files)),
        ctx.attr.linking[CcInfo],
    ] + ([OutputGroupInfo(reports = ctx.attr.images[OutputGroupInfo].reports)] if ctx.attr.images else [])

aotriton_distribution = rule(
    implementation = _aotriton_distribution_impl,
    attrs = {
        "images": attr.label(doc = "A triton_images target; none if the library has its packs in it."),
        "library": attr.label(mandatory = True, doc = "The shared library and its unversioned link."),
        "linking": attr.label(mandatory = True, providers = [CcInfo], doc = "What a C++ target gets: headers and the library."),
    },
    doc = "What a C++ target gets from `@aotriton//:aotriton`, and what `bazel build //:aotriton` makes.",
)
