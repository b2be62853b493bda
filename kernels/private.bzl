"""The rules behind triton_kernel and triton_pack (defs.bzl)."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//toolchains/triton:toolchain.bzl", "TOOLCHAIN_TYPE")
load(":providers.bzl", "TritonKernelInfo")

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
    configs = json.decode(ctx.attr.configs[toolchain.arch])

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
            tools = [toolchain.tool, toolchain.record],
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
        TritonKernelInfo(
            arch = toolchain.arch,
            codes = depset(codes),
            family = ctx.attr.family,
            kernel = ctx.attr.kernel,
            reports = depset(reports),
            vendor = toolchain.vendor,
        ),
    ]

triton_functional = rule(
    implementation = _triton_functional_impl,
    attrs = {
        "axes": attr.string(mandatory = True, doc = "JSON: [[axis, [values]], ...]."),
        "configs": attr.string_dict(mandatory = True, doc = "arch -> JSON list of configs."),
        "deps": attr.label_list(allow_files = [".py"], doc = "Python files that the source imports."),
        "entry": attr.string(mandatory = True, doc = "The @triton.jit function."),
        "family": attr.string(mandatory = True, doc = "Directory of the pack."),
        "fp_fusion": attr.bool(mandatory = True, doc = "Whether a multiplication and an addition may be fused."),
        "functional": attr.string(mandatory = True, doc = "JSON: {axis: value}."),
        "kernel": attr.string(mandatory = True, doc = "Name of the kernel."),
        "max_spills": attr.int(mandatory = True, doc = "Vector registers that may spill; -1: any number."),
        "signature": attr.string(mandatory = True, doc = "JSON: {types, alignments, constants}."),
        "src": attr.label(mandatory = True, allow_single_file = [".py"], doc = "The kernel source."),
    },
    toolchains = [TOOLCHAIN_TYPE],
    doc = "One functional of a kernel: a TritonCompile action for each config of the platform's arch.",
)

def _wildcard_match(pattern, text):
    """Whether `text` matches `pattern`, in which * stands for any text."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == text
    if not text.startswith(parts[0]) or not text.endswith(parts[-1]) or len(text) < len(parts[0]) + len(parts[-1]):
        return False
    middle = text[len(parts[0]):len(text) - len(parts[-1])]
    for part in parts[1:-1]:
        at = middle.find(part)
        if at < 0:
            return False
        middle = middle[at + len(part):]
    return True

def _triton_kernel_impl(ctx):
    only = ctx.attr._only[BuildSettingInfo].value
    infos = [
        dep[TritonKernelInfo]
        for dep in ctx.attr.functionals
        if not only or any([_wildcard_match(pattern, dep.label.name) for pattern in only])
    ]
    toolchain = ctx.toolchains[TOOLCHAIN_TYPE]
    codes = depset(transitive = [info.codes for info in infos])
    reports = depset(transitive = [info.reports for info in infos])
    return [
        DefaultInfo(files = depset(transitive = [codes, reports])),
        TritonKernelInfo(
            arch = toolchain.arch,
            codes = codes,
            family = ctx.attr.family,
            kernel = ctx.attr.kernel,
            reports = reports,
            vendor = toolchain.vendor,
        ),
    ]

triton_kernel_functionals = rule(
    implementation = _triton_kernel_impl,
    attrs = {
        "family": attr.string(mandatory = True, doc = "Directory of the pack."),
        "functionals": attr.label_list(providers = [TritonKernelInfo], doc = "triton_functional targets."),
        "kernel": attr.string(mandatory = True, doc = "Name of the kernel."),
        "_only": attr.label(default = "//kernels:only"),
    },
    toolchains = [TOOLCHAIN_TYPE],
    doc = "All functionals of a kernel, or those that --//kernels:only names.",
)

def _triton_pack_impl(ctx):
    info = ctx.attr.kernel[TritonKernelInfo]
    if not info.reports.to_list():
        # --//kernels:only leaves nothing of this kernel.
        return [DefaultInfo(), OutputGroupInfo(reports = info.reports)]
    path = "aotriton.images/%s-%s/%s/%s.pack" % (info.vendor, info.arch, info.family, info.kernel)
    pack = ctx.actions.declare_file("%s/%s" % (ctx.label.name, path))
    args = ctx.actions.args()
    args.use_param_file("@%s", use_always = True)
    args.set_param_file_format("multiline")
    args.add("--out", pack)
    args.add_all(info.reports)
    ctx.actions.run(
        mnemonic = "TritonPack",
        executable = ctx.executable._tool,
        arguments = [args],
        inputs = depset(transitive = [info.codes, info.reports]),
        outputs = [pack],
        progress_message = "Packing %%{label} for %s" % info.arch,
    )
    return [
        DefaultInfo(files = depset([pack])),
        OutputGroupInfo(reports = info.reports),
    ]

triton_pack = rule(
    implementation = _triton_pack_impl,
    attrs = {
        "kernel": attr.label(mandatory = True, providers = [TritonKernelInfo], doc = "A triton_kernel, or one functional of it."),
        "_tool": attr.label(default = "//tools/pack", executable = True, cfg = "exec"),
    },
    doc = """One file with the code objects of a kernel for the platform's arch:
`<name>/aotriton.images/<vendor>-<arch>/<family>/<kernel>.pack`; no file where `--//kernels:only`
leaves nothing of the kernel. The output group `reports` has the compile reports.""",
)
