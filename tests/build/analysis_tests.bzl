"""What the kernel rules make of a declaration, seen in the analysis phase."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load("//kernels:declare.bzl", "axis", "config", "constexpr", "functionals", "kernel_declaration", "scalar", "signature", "stride", "tensor")
load("//kernels:providers.bzl", "TritonKernelInfo")
load("//kernels/flash:attn_fwd.bzl", "ATTN_FWD")
load("//platforms:archs.bzl", "ARCHS")

_ARCH_SETTING = {"//command_line_option:platforms": str(Label("//platforms:gfx950"))}
_NVIDIA_SETTING = {"//command_line_option:platforms": str(Label("//platforms:sm_90"))}
_VALUES = {"bias": "0", "causal": "1", "dropout": "0", "dtype": "bf16", "head_dim": "128", "layout": "aligned"}

def _declared_variants(arch):
    count = 0
    for functional in functionals(ATTN_FWD):
        count += len(ATTN_FWD.configs(arch, functional.values))
    return count

def _functional_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[TritonKernelInfo]
    actions = [action for action in analysistest.target_actions(env) if action.mnemonic == "TritonCompile"]
    asserts.equals(env, len(ATTN_FWD.configs(info.arch, _VALUES)), len(actions))
    extension = {"amd": "hsaco", "nvidia": "cubin"}[ARCHS[info.arch]["vendor"]]
    for action in actions:
        asserts.equals(env, [extension, "json"], [file.extension for file in action.outputs.to_list()])
    return analysistest.end(env)

amd_functional_test = analysistest.make(_functional_test_impl, config_settings = _ARCH_SETTING)
nvidia_functional_test = analysistest.make(_functional_test_impl, config_settings = _NVIDIA_SETTING)

def _kernel_test_impl(ctx):
    env = analysistest.begin(ctx)
    info = analysistest.target_under_test(env)[TritonKernelInfo]
    asserts.equals(env, _declared_variants(info.arch), len(info.codes.to_list()))
    asserts.equals(env, _declared_variants(info.arch), len(info.reports.to_list()))
    return analysistest.end(env)

amd_kernel_test = analysistest.make(_kernel_test_impl, config_settings = _ARCH_SETTING)
nvidia_kernel_test = analysistest.make(_kernel_test_impl, config_settings = _NVIDIA_SETTING)

def _only_test_impl(ctx):
    env = analysistest.begin(ctx)
    codes = analysistest.target_under_test(env)[TritonKernelInfo].codes.to_list()
    names = {code.dirname.split("/")[-1]: None for code in codes}
    asserts.equals(
        env,
        ["attn_fwd.bf16.d128", "attn_fwd.bf16.d128.causal.bias.dropout.any", "attn_fwd.fp16.d64"],
        sorted(names.keys()),
    )
    return analysistest.end(env)

only_test = analysistest.make(_only_test_impl, config_settings = dict(_ARCH_SETTING, **{
    str(Label("//kernels:only")): ["attn_fwd.bf16.d128", "*.bf16.d128.*.any", "attn_fwd.fp16.d64"],
}))

def _fat_tree_test_impl(ctx):
    env = analysistest.begin(ctx)
    files = analysistest.target_under_test(env)[DefaultInfo].files.to_list()
    asserts.equals(
        env,
        ["amd-gfx1100", "amd-gfx942", "nvidia-sm_90"],
        sorted([
            file.path.split("aotriton.images/")[1].split("/")[0]
            for file in files
            if file.basename == "attn_fwd.pack"
        ]),
    )
    return analysistest.end(env)

fat_tree_test = analysistest.make(
    _fat_tree_test_impl,
    config_settings = {str(Label("//:archs")): "gfx942,gfx1100,sm_90"},
)

# The words of a declaration.

_SAMPLE = kernel_declaration(
    entry = "sample",
    axes = [axis("dtype", ["fp16", "fp32"]), axis("masked", [0, 1], labels = ["", "masked"])],
    arguments = [
        tensor("X", "*{dtype}", align = 16),
        tensor("Mask", "*i8", align = 16, unless = {"masked": 0}),
        stride("stride_x", align = 8, align_unless = {"dtype": "fp32"}),
        scalar("n", "i32"),
        constexpr("MASKED", "{masked}"),
        constexpr("WIDE", "1", unless = {"dtype": "fp16"}),
        constexpr("BLOCK"),
    ],
    configs = lambda _arch, _values: [config({"BLOCK": 64})],
    exclude = [{"dtype": "fp32", "masked": 1}],
)

def _functionals_test_impl(ctx):
    env = unittest.begin(ctx)
    asserts.equals(env, ["fp16", "fp16.masked", "fp32"], [one.label for one in functionals(_SAMPLE)])
    return unittest.end(env)

functionals_test = unittest.make(_functionals_test_impl)

def _signature_test_impl(ctx):
    env = unittest.begin(ctx)
    plain = signature(_SAMPLE, {"dtype": "fp32", "masked": "0"})
    asserts.equals(env, {"X": "*fp32", "n": "i32", "stride_x": "i64"}, plain.types)
    asserts.equals(env, {"X": 16}, plain.alignments)
    asserts.equals(env, {"MASKED": "0", "Mask": "0", "WIDE": "1"}, plain.constants)
    asserts.equals(env, ["BLOCK"], plain.config_constants)
    masked = signature(_SAMPLE, {"dtype": "fp16", "masked": "1"})
    asserts.equals(env, {"Mask": "*i8", "X": "*fp16", "n": "i32", "stride_x": "i64"}, masked.types)
    asserts.equals(env, {"Mask": 16, "X": 16, "stride_x": 8}, masked.alignments)
    asserts.equals(env, {"MASKED": "1", "WIDE": "0"}, masked.constants)
    return unittest.end(env)

signature_test = unittest.make(_signature_test_impl)

def _config_bounds_test_impl(ctx):
    env = unittest.begin(ctx)
    plain = json.decode(json.encode(config({"BLOCK": 64})))
    asserts.equals(env, None, plain["max_seqlen_q"])
    asserts.false(env, "max_seqlen_k" in plain or "min_fill" in plain)
    bounded = json.decode(json.encode(config({"BLOCK": 64}, max_seqlen_q = 64, max_seqlen_k = 128, min_fill = 50)))
    asserts.equals(env, [64, 128, 50], [bounded[name] for name in ("max_seqlen_q", "max_seqlen_k", "min_fill")])
    return unittest.end(env)

config_bounds_test = unittest.make(_config_bounds_test_impl)

def analysis_tests(name):
    """Declares the tests of this file and the suite `name`."""
    functional = "//kernels/flash:attn_fwd.bf16.d128.causal"
    kernel = "//kernels/flash:attn_fwd"
    amd_functional_test(name = "amd_functional_test", target_under_test = functional)
    nvidia_functional_test(name = "nvidia_functional_test", target_under_test = functional)
    amd_kernel_test(name = "amd_kernel_test", target_under_test = kernel)
    nvidia_kernel_test(name = "nvidia_kernel_test", target_under_test = kernel)
    only_test(name = "only_test", target_under_test = kernel)
    fat_tree_test(name = "fat_tree_test", target_under_test = "//:images")
    functionals_test(name = "functionals_test")
    signature_test(name = "signature_test")
    config_bounds_test(name = "config_bounds_test")
    native.test_suite(
        name = name,
        tests = [
            "amd_functional_test",
            "nvidia_functional_test",
            "amd_kernel_test",
            "nvidia_kernel_test",
            "only_test",
            "fat_tree_test",
            "functionals_test",
            "signature_test",
            "config_bounds_test",
        ],
    )
