"""triton_images: the tree aotriton.images/ for one arch or several."""

load("//platforms:defs.bzl", "TARGETS")
load(":providers.bzl", "TritonKernelInfo")
load(":settings.bzl", "SETTINGS", "check_filters", "settings_of")

_ARCHS_FLAG = str(Label("//:archs"))
_OWN_CODE_FLAG = str(Label("//platforms:own_code"))
_PLATFORMS = "//command_line_option:platforms"

def _each_arch_impl(settings, _attr):
    names = [name for name in settings[_ARCHS_FLAG].split(",") if name]
    if not names:
        return {"platform": {_PLATFORMS: settings[_PLATFORMS]}}
    for name in names:
        if name not in TARGETS:
            fail("--//:archs names the unknown arch '%s'. The known ones are %s." % (name, ", ".join(TARGETS.keys())))
    if not settings[_OWN_CODE_FLAG]:
        # As the toolchain does: what several archs run is stored once.
        names = {TARGETS[name].get("code_of", name): None for name in names}.keys()
    return {name: {_PLATFORMS: [str(Label("//platforms:" + name))]} for name in names}

# Only the packs are built once an arch; what is host code stays in the platform's configuration.
_each_arch = transition(
    implementation = _each_arch_impl,
    inputs = [_ARCHS_FLAG, _OWN_CODE_FLAG, _PLATFORMS],
    outputs = [_PLATFORMS],
)

def _manifest(ctx, folder, settings, packed):
    """Writes what a folder of packs holds.

    Args:
      ctx: of the rule.
      folder: e.g. aotriton.images/amd-gfx950.
      settings: from settings_of().
      packed: list of (TritonKernelInfo, pack, its path in the folder).

    Returns:
      The file.
    """
    facts = ctx.actions.declare_file("%s.%s.facts.json" % (ctx.label.name, folder.split("/")[-1]))
    first = packed[0][0]
    ctx.actions.write(facts, json.encode(struct(
        arch = first.arch,
        kernels = {
            path: struct(family = info.family, functionals = info.functionals, kernel = info.kernel)
            for info, _, path in packed
        },
        settings = settings,
        triton = first.triton,
        vendor = first.vendor,
    )))
    manifest = ctx.actions.declare_file(folder + "/manifest.json")
    args = ctx.actions.args()
    args.add("--out", manifest)
    args.add("--facts", facts)
    args.add_all([pack for _, pack, _ in packed])
    ctx.actions.run(
        mnemonic = "TritonManifest",
        executable = ctx.executable._manifest_tool,
        arguments = [args],
        inputs = [facts] + [pack for _, pack, _ in packed],
        outputs = [manifest],
        progress_message = "Listing %{output}",
    )
    return manifest

def _triton_images_impl(ctx):
    settings = settings_of(ctx)
    files, reports, folders = [], [], {}
    for packs in ctx.split_attr.packs.values():
        check_filters([dict(json.decode(target[TritonKernelInfo].axes)) for target in packs], settings, ctx.label)
        for target in packs:
            info = target[TritonKernelInfo]
            reports.append(target[OutputGroupInfo].reports)
            for pack in target[DefaultInfo].files.to_list():
                folder = "aotriton.images/%s-%s" % (info.vendor, info.arch)
                path = "%s/%s" % (info.family, pack.basename)
                image = ctx.actions.declare_file("%s/%s" % (folder, path))
                ctx.actions.symlink(output = image, target_file = pack)
                files.append(image)
                folders.setdefault(folder, []).append((info, pack, path))
    if not files:
        fail("%s: --//kernels:only, --//:profile and the filters leave no functional" % ctx.label)
    manifests = [_manifest(ctx, folder, settings, packed) for folder, packed in folders.items()]
    return [
        DefaultInfo(files = depset(files + manifests), runfiles = ctx.runfiles(files + manifests)),
        OutputGroupInfo(packs = depset(files), reports = depset(transitive = reports)),
    ]

triton_images = rule(
    implementation = _triton_images_impl,
    attrs = dict(
        SETTINGS,
        packs = attr.label_list(mandatory = True, cfg = _each_arch, providers = [TritonKernelInfo], doc = "triton_pack targets."),
        _allowlist_function_transition = attr.label(default = "@bazel_tools//tools/allowlists/function_transition_allowlist"),
        _manifest_tool = attr.label(default = "//tools/pack:manifest", executable = True, cfg = "exec"),
    ),
    doc = """`aotriton.images/<vendor>-<arch>/<family>/<kernel>.pack` of the platform's arch, or of every arch
that `--//:archs` lists, and beside them `manifest.json`, which says what they hold. The output group `packs` has
only the packs, `reports` the compile reports.""",
)
