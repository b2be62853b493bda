"""triton_images: the tree aotriton.images/ for one arch or several."""

load("//platforms:archs.bzl", "ARCHS")

_ARCHS_FLAG = str(Label("//platforms:archs"))
_PLATFORMS = "//command_line_option:platforms"

def _each_arch_impl(settings, _attr):
    names = [name for name in settings[_ARCHS_FLAG].split(",") if name]
    if not names:
        return {"platform": {_PLATFORMS: settings[_PLATFORMS]}}
    for name in names:
        if name not in ARCHS:
            fail("--//platforms:archs names the unknown arch '%s'. The known ones are %s." % (name, ", ".join(ARCHS.keys())))
    return {name: {_PLATFORMS: [str(Label("//platforms:" + name))]} for name in names}

# Only the packs are built once an arch; what is host code stays in the platform's configuration.
_each_arch = transition(
    implementation = _each_arch_impl,
    inputs = [_ARCHS_FLAG, _PLATFORMS],
    outputs = [_PLATFORMS],
)

def _triton_images_impl(ctx):
    files, reports = [], []
    for packs in ctx.split_attr.packs.values():
        for target in packs:
            reports.append(target[OutputGroupInfo].reports)
            for pack in target[DefaultInfo].files.to_list():
                path = "aotriton.images" + pack.path.split("/aotriton.images")[-1]
                image = ctx.actions.declare_file(path)
                ctx.actions.symlink(output = image, target_file = pack)
                files.append(image)
    if not files:
        fail("%s: --//kernels:only matches no functional" % ctx.label)
    return [
        DefaultInfo(files = depset(files), runfiles = ctx.runfiles(files)),
        OutputGroupInfo(reports = depset(transitive = reports)),
    ]

triton_images = rule(
    implementation = _triton_images_impl,
    attrs = {
        "packs": attr.label_list(mandatory = True, cfg = _each_arch, doc = "triton_pack targets."),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
    doc = """`aotriton.images/<vendor>-<arch>/<family>/<kernel>.pack` of the platform's arch, or of every arch
that `--//platforms:archs` lists. The output group `reports` has the compile reports.""",
)
