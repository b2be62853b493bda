"""What the GPU tests are made of, seen in the analysis phase."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load(":defs.bzl", "for_arch")

def _packs_test_impl(ctx):
    env = analysistest.begin(ctx)
    files = analysistest.target_under_test(env)[DefaultInfo].files.to_list()
    asserts.equals(env, ["aotriton.images/amd-gfx1100/flash/attn_fwd.pack"], [file.short_path for file in files])
    return analysistest.end(env)

# The arch is the target's own, and not that of the platform.
packs_test = analysistest.make(
    _packs_test_impl,
    config_settings = {"//command_line_option:platforms": str(Label("//platforms:gfx950"))},
)

def _tags_test_impl(ctx):
    env = unittest.begin(ctx)
    for tag in ["gpu", "local", "resources:gpu:1"]:
        asserts.true(env, tag in ctx.attr.found, "tag " + tag)
    asserts.false(env, "exclusive" in ctx.attr.found)
    return unittest.end(env)

tags_test = unittest.make(_tags_test_impl, attrs = {"found": attr.string_list()})

def analysis_tests(gpu_test):
    """Declares the tests of this file; gpu_test: one of the GPU tests, declared before."""
    for_arch(
        name = "packs_for_arch",
        testonly = True,
        arch = "gfx1100",
        only = ["attn_fwd.fp16.d64"],
        tags = ["manual"],
        target = "//:images",
    )
    packs_test(name = "packs_test", target_under_test = ":packs_for_arch")
    tags_test(name = "tags_test", found = native.existing_rule(gpu_test)["tags"])
