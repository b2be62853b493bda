"""The rules behind triton_kernel and triton_pack (defs.bzl)."""

load("//toolchains/triton:toolchain.bzl", "TOOLCHAIN_TYPE")
load(":providers.bzl", "TritonFunctionalInfo", "TritonKernelInfo")
load(":settings.bzl", "SETTINGS", "describe", "is_chosen", "settings_of")

_CODE_OBJECT = {"amd": "hsaco", "nvidia": "cubin"}

def _config_label(config):
    """ASCII name of a config's outputs, e.g. BLOCK_M128.BLOCK_N64.warps4.stages1."""
    parts = ["%s%s" % item for item in config["constants"].items()]
    parts += ["warps%d" % config["num_warps"], "stages%d" % config["num_stages"]]
    if config["waves_per_eu"]:
        parts.append("waves%d" % config["waves_per_eu"])
    if config["max_registers"]:
        parts.append("registers%d" % config["max_registers"])
    return ".".join(parts)

def _import_root(src):
    """Where the imports of a source start: its repository's root in the execution root."""
    short = src.short_path
    if short.startswith("../"):
        short = short.split("/", 2)[2]
    return src.path[:-len(short)].rstrip("/") or "."

def _parameter_file(ctx):
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    return args

def _triton_functional_impl(ctx):
    toolchain = ctx.toolchains[TOOLCHAIN_TYPE]
    configs = json.decode(ctx.attr.configs.get(toolchain.arch, "[]"))

    # What all variants share, in a parameter file as a persistent worker wants it: one shot
    # and worker then see the same command line.
    shared = _parameter_file(ctx)
    shared.add("--root", _import_root(ctx.file.src))
    shared.add("--src", ctx.file.src)
    shared.add("--entry", ctx.attr.entry)
    shared.add("--kernel", ctx.attr.kernel)
    shared.add("--family", ctx.attr.family)
    shared.add("--arch", toolchain.arch)
    shared.add("--vendor", toolchain.vendor)
    shared.add("--wave_size", str(toolchain.wave_size))
    shared.add("--axes", ctx.attr.axes)
    shared.add("--functional", ctx.attr.functional)
    shared.add("--signature", ctx.attr.signature)
    shared.add("--max_spills", str(ctx.attr.max_spills))
    shared.add("--fp_fusion", str(int(ctx.attr.fp_fusion)))

    startup = ctx.actions.args()
    startup.add(toolchain.tool)
    startup.add("--site", toolchain.site.path)

    inputs = [ctx.file.src, toolchain.site] + ctx.files.deps
    codes, reports = [], []
    for config in configs:
        stem = "%s/%s" % (ctx.label.name, _config_label(config))
        code = ctx.actions.declare_file("%s.%s" % (stem, _CODE_OBJECT[toolchain.vendor]))
        report = ctx.actions.declare_file(stem + ".json")
        own = _parameter_file(ctx)
        own.add("--config", json.encode(config))
        own.add("--code", code)
        own.add("--report", report)
        ctx.actions.run(
            mnemonic = "TritonCompile",
            executable = toolchain.python,
            arguments = [startup, shared, own],
            inputs = inputs,
            # A worker is used for as long as its tools are the same. The directory itself cannot be
            # one: without BAZEL_TRACK_SOURCE_DIRECTORIES it has no digest.
            tools = [toolchain.tool, toolchain.record] + toolchain.tool_deps,
            outputs = [code, report],
            env = {"HOME": "/nonexistent", "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"},
            execution_requirements = {
                "requires-worker-protocol": "json",
                "supports-workers": "1",
            },
            progress_message = "Compiling %%{label} for %s: %%{output}" % toolchain.arch,
            toolchain = TOOLCHAIN_TYPE,
        )
        codes.append(code)
        reports.append(report)
    return [
        DefaultInfo(files = depset(codes + reports)),
        TritonFunctionalInfo(
            is_general = ctx.attr.is_general,
            name = ctx.label.name,
            profile = ctx.attr.profile,
            values = json.decode(ctx.attr.functional),
        ),
        TritonKernelInfo(
            arch = toolchain.arch,
            axes = ctx.attr.axes,
            codes = depset(codes),
            family = ctx.attr.family,
            functionals = [ctx.label.name],
            kernel = ctx.attr.kernel,
            reports = depset(reports),
            triton = toolchain.version,
            vendor = toolchain.vendor,
        ),
    ]

triton_functional = rule(
    implementation = _triton_functional_impl,
    attrs = {
        "axes": attr.string(mandatory = True, doc = "JSON: [[axis, [values]], ...]."),
        "configs": attr.string_dict(mandatory = True, doc = "arch -> JSON list of configs, of each arch that has the kernel."),
        "deps": attr.label_list(allow_files = [".py"], doc = "Python files that the source imports."),
        "entry": attr.string(mandatory = True, doc = "The @triton.jit function."),
        "family": attr.string(mandatory = True, doc = "Directory of the pack."),
        "fp_fusion": attr.bool(mandatory = True, doc = "Whether a multiplication and an addition may be fused."),
        "functional": attr.string(mandatory = True, doc = "JSON: {axis: value}."),
        "is_general": attr.bool(doc = "Whether a filter of features leaves it in: it serves calls with any of them, or none."),
        "kernel": attr.string(mandatory = True, doc = "Name of the kernel."),
        "max_spills": attr.int(mandatory = True, doc = "Vector registers that may spill; -1: any number."),
        "profile": attr.string(mandatory = True, doc = "The first profile that holds it."),
        "signature": attr.string(mandatory = True, doc = "JSON: {types, alignments, constants}."),
        "src": attr.label(mandatory = True, allow_single_file = [".py"], doc = "The kernel source."),
    },
    toolchains = [TOOLCHAIN_TYPE],
    doc = "One functional of a kernel: a TritonCompile action for each config of the platform's arch.",
)

def _triton_kernel_impl(ctx):
    settings = settings_of(ctx)
    toolchain = ctx.toolchains[TOOLCHAIN_TYPE]
    axes = dict(json.decode(ctx.attr.axes))
    chosen = [dep for dep in ctx.attr.functionals if is_chosen(dep[TritonFunctionalInfo], axes, settings)]
    codes = depset(transitive = [dep[TritonKernelInfo].codes for dep in chosen])
    reports = depset(transitive = [dep[TritonKernelInfo].reports for dep in chosen])
    return [
        DefaultInfo(files = depset(transitive = [codes, reports])),
        TritonKernelInfo(
            arch = toolchain.arch,
            axes = ctx.attr.axes,
            codes = codes,
            family = ctx.attr.family,
            functionals = [dep[TritonFunctionalInfo].name for dep in chosen],
            kernel = ctx.attr.kernel,
            reports = reports,
            triton = toolchain.version,
            vendor = toolchain.vendor,
        ),
    ]

triton_kernel_functionals = rule(
    implementation = _triton_kernel_impl,
    attrs = dict(
        SETTINGS,
        axes = attr.string(mandatory = True, doc = "JSON: [[axis, [values]], ...]."),
        family = attr.string(mandatory = True, doc = "Directory of the pack."),
        functionals = attr.label_list(providers = [TritonFunctionalInfo, TritonKernelInfo], doc = "triton_functional targets."),
        kernel = attr.string(mandatory = True, doc = "Name of the kernel."),
    ),
    toolchains = [TOOLCHAIN_TYPE],
    doc = "Those functionals of a kernel that the settings choose (settings.bzl).",
)

def _triton_pack_impl(ctx):
    info = ctx.attr.kernel[TritonKernelInfo]
    if not info.reports.to_list():
        # The settings leave nothing of this kernel.
        return [DefaultInfo(), info, OutputGroupInfo(reports = info.reports)]
    path = "aotriton.images/%s-%s/%s/%s.pack" % (info.vendor, info.arch, info.family, info.kernel)
    pack = ctx.actions.declare_file("%s/%s" % (ctx.label.name, path))
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add("--out", pack)
    args.add(describe(settings_of(ctx)), format = "--settings=%s")  # its value looks like an option
    args.add_all(info.reports)
    ctx.actions.run(
        mnemonic = "TritonPack",
        executable = ctx.executable._tool,
        arguments = [args],
        inputs = depset(transitive = [info.codes, info.reports]),
        outputs = [pack],
        progress_message = "Packing %%{label} for %s" % info.arch,
    )
    figures = [_check(ctx, info)] if ctx.file.limits else []
    return [
        DefaultInfo(files = depset([pack])),
        info,
        OutputGroupInfo(
            figures = depset(figures),
            reports = info.reports,
            # Bazel runs these with every build of a pack, beside what uses it.
            _validation = depset(figures),
        ),
    ]

def _check(ctx, info):
    """An action that fails if a code object is not what it must be; its output tells what they consist of."""
    figures = ctx.actions.declare_file("%s/%s.figures.json" % (ctx.label.name, info.kernel))
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add("--archs", ctx.file._arch_table)
    args.add("--limits", ctx.file.limits)
    args.add("--instructions", ctx.executable._instructions)
    args.add("--out", figures)
    args.add_all(info.reports)
    ctx.actions.run(
        mnemonic = "CodeObjectCheck",
        executable = ctx.executable._checker,
        arguments = [args],
        inputs = depset([ctx.file._arch_table, ctx.file.limits], transitive = [info.codes, info.reports]),
        tools = [ctx.executable._instructions],
        outputs = [figures],
        progress_message = "Checking the code objects of %%{label} for %s" % info.arch,
    )
    return figures

triton_pack = rule(
    implementation = _triton_pack_impl,
    attrs = dict(
        SETTINGS,
        kernel = attr.label(mandatory = True, providers = [TritonKernelInfo], doc = "A triton_kernel, or one functional of it."),
        limits = attr.label(allow_single_file = [".json"], doc = "What tools/code_object holds the code objects to; without it they are not checked."),
        _arch_table = attr.label(default = "//platforms:archs_json", allow_single_file = True),
        _checker = attr.label(default = "//tools/code_object:check", executable = True, cfg = "exec"),
        _instructions = attr.label(default = "//tools/code_object:instructions", executable = True, cfg = "exec"),
        _tool = attr.label(default = "//tools/pack", executable = True, cfg = "exec"),
    ),
    doc = """One file with the code objects of a kernel for the platform's arch:
`<name>/aotriton.images/<vendor>-<arch>/<family>/<kernel>.pack`; no file where the
settings (settings.bzl) leave nothing of the kernel. The output group `reports` has the compile reports, `figures`
what the code objects consist of. With `limits`, a code object that fails a gate fails the build (tools/code_object).""",
)
