"""few_images: an images target with chosen archs and functionals, in any configuration."""

_ARCHS = str(Label("//:archs"))
_ONLY = str(Label("//kernels:only"))
_OWN_CODE = str(Label("//platforms:own_code"))

def _chosen_impl(_settings, attr):
    return {_ARCHS: ",".join(attr.archs), _ONLY: attr.only, _OWN_CODE: attr.own_code}

_chosen = transition(implementation = _chosen_impl, inputs = [], outputs = [_ARCHS, _ONLY, _OWN_CODE])

def _few_images_impl(ctx):
    target = ctx.attr.images[0]
    files = target[DefaultInfo].files.to_list()
    if ctx.attr.reports:
        # The reports of one functional have one path in every arch: only a number tells them apart.
        files = []
        for number, report in enumerate(target[OutputGroupInfo].reports.to_list()):
            link = ctx.actions.declare_file("%s/%d.json" % (ctx.label.name, number))
            ctx.actions.symlink(output = link, target_file = report)
            files.append(link)
    elif ctx.attr.in_own_folder:
        links = []
        for file in files:
            link = ctx.actions.declare_file("%s/%s" % (ctx.label.name, file.short_path.split("aotriton.images/")[1]))
            ctx.actions.symlink(output = link, target_file = file)
            links.append(link)
        files = links
    return [DefaultInfo(files = depset(files), runfiles = ctx.runfiles(files))]

few_images = rule(
    implementation = _few_images_impl,
    attrs = {
        "archs": attr.string_list(mandatory = True, doc = "Names of the arch table."),
        "images": attr.label(cfg = _chosen, mandatory = True, doc = "A triton_images target."),
        "in_own_folder": attr.bool(doc = "Put the images into `<name>/`, so that several of these can be compared."),
        "only": attr.string_list(mandatory = True, doc = "As --//kernels:only."),
        "own_code": attr.bool(doc = "As --//platforms:own_code."),
        "reports": attr.bool(doc = "Give the compile reports, not the images."),
        "_allowlist_function_transition": attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
    },
    doc = "The files of `images` as they are with --//:archs and --//kernels:only.",
)
