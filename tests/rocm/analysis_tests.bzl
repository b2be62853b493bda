"""What the GPU tests are made of, seen in the analysis phase."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")

def _files_test_impl(ctx):
    env = analysistest.begin(ctx)
    files = [file.short_path for file in analysistest.target_under_test(env)[DefaultInfo].files.to_list()]
    for file in ctx.attr.has:
        asserts.true(env, file in files, "%s is not among %s" % (file, files))
    return analysistest.end(env)

# The arch is the target's own, and not that of the platform.
files_test = analysistest.make(
    _files_test_impl,
    attrs = {"has": attr.string_list()},
    config_settings = {"//command_line_option:platforms": str(Label("//platforms:gfx950"))},
)

def _tags_test_impl(ctx):
    env = unittest.begin(ctx)
    for tag in ["gpu", "local", "resources:gpu:1"]:
        asserts.true(env, tag in ctx.attr.found, "tag " + tag)
    asserts.false(env, "exclusive" in ctx.attr.found)
    return unittest.end(env)

tags_test = unittest.make(_tags_test_impl, attrs = {"found": attr.string_list()})

def analysis_tests(arch):
    """Declares the tests of this file, on the GPU tests of an arch, which must be declared before."""
    files_test(
        name = "images_test",
        has = ["aotriton.images/amd-%s/flash/%s.pack" % (arch, kernel) for kernel in ["attn_fwd", "bwd_fused"]],
        target_under_test = ":%s_images" % arch,
    )
    files_test(
        name = "bundle_test",
        has = ["tests/gpu/bundle.tar.gz"],
        target_under_test = ":%s_bundle" % arch,
    )
    tags_test(name = "tags_test", found = native.existing_rule(arch + "_python_test")["tags"])
