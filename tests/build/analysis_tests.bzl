"""What the kernel rules make of a declaration, seen in the analysis phase."""

load("@bazel_skylib//lib:unittest.bzl", "analysistest", "asserts", "unittest")
load("//kernels:declare.bzl", "axis", "config", "constexpr", "functionals", "kernel_declaration", "matches", "profile_of", "scalar", "signature", "stride", "tensor")
load("//kernels:providers.bzl", "TritonKernelInfo")
load("//kernels:settings.bzl", "PROFILES")
load("//kernels/flash:attn_fwd.bzl", "ATTN_FWD")
load("//kernels/flash:attn_fwd_persistent.bzl", "ATTN_FWD_PERSISTENT")
load("//kernels/flash:bwd_dkdv.bzl", "BWD_DKDV")
load("//kernels/flash:bwd_dq.bzl", "BWD_DQ")
load("//kernels/flash:bwd_fused.bzl", "BWD_FUSED")
load("//kernels/flash:bwd_preprocess.bzl", "BWD_PREPROCESS")
load("//kernels/flash:debug.bzl", "DEBUG_FILL_DROPOUT_RNG", "DEBUG_SIMULATE_ENCODED_SOFTMAX")
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

_FULL = {str(Label("//:profile")): "full"}

amd_kernel_test = analysistest.make(_kernel_test_impl, config_settings = dict(_ARCH_SETTING, **_FULL))
nvidia_kernel_test = analysistest.make(_kernel_test_impl, config_settings = dict(_NVIDIA_SETTING, **_FULL))

# What the settings leave of a kernel: setting -> its value, and the functionals of attn_fwd on gfx950.

def _chosen_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.equals(env, ctx.attr.expected, sorted(analysistest.target_under_test(env)[TritonKernelInfo].functionals))
    codes = analysistest.target_under_test(env)[TritonKernelInfo].codes.to_list()
    asserts.equals(env, ctx.attr.expected, sorted({code.dirname.split("/")[-1]: None for code in codes}.keys()))
    return analysistest.end(env)

def _chosen_test(**settings):
    labels = {("//kernels:" if name == "only" else "//:") + name: value for name, value in settings.items()}
    return analysistest.make(
        _chosen_test_impl,
        attrs = {"expected": attr.string_list()},
        config_settings = dict(_ARCH_SETTING, **{str(Label(label)): value for label, value in labels.items()}),
    )

only_test = _chosen_test(only = ["attn_fwd.bf16.d128", "*.bf16.d128.*.any", "attn_fwd.fp16.d64"])

# Names are taken from all functionals: this one is in no profile but full.
only_outside_of_the_profile_test = _chosen_test(profile = "smoke", only = ["attn_fwd.bf16.d224.causal"])
smoke_test = _chosen_test(profile = "smoke")
head_dims_test = _chosen_test(profile = "core", head_dims = ["160"])
dtypes_test = _chosen_test(profile = "smoke", dtypes = ["fp16", "fp32"])
features_test = _chosen_test(profile = "core", head_dims = ["64"], dtypes = ["bf16"], features = ["causal"])
no_features_test = _chosen_test(profile = "core", head_dims = ["64"], dtypes = ["bf16"], features = ["none"])

def _chosen_tests(target):
    expected = {
        "dtypes_test": ["fp16.d128.bias.dropout", "fp16.d48.causal.bias.dropout.any", "fp32.d32.causal.bias.dropout.any"],
        "features_test": ["bf16.d64", "bf16.d64.causal", "bf16.d64.causal.bias.dropout.any"],
        "head_dims_test": ["%s.d160.causal.bias.dropout.any" % dtype for dtype in ["bf16", "fp16", "fp32"]],
        "no_features_test": ["bf16.d64", "bf16.d64.causal.bias.dropout.any"],
        "only_outside_of_the_profile_test": ["bf16.d224.causal"],
        "only_test": ["bf16.d128", "bf16.d128.causal.bias.dropout.any", "fp16.d64"],
        "smoke_test": ["bf16.d64", "bf16.d64.causal", "bf16.d64.causal.bias.dropout.any"] +
                      ["fp16.d128.bias.dropout", "fp16.d48.causal.bias.dropout.any", "fp32.d32.causal.bias.dropout.any"],
    }
    rules = {
        "dtypes_test": dtypes_test,
        "features_test": features_test,
        "head_dims_test": head_dims_test,
        "no_features_test": no_features_test,
        "only_outside_of_the_profile_test": only_outside_of_the_profile_test,
        "only_test": only_test,
        "smoke_test": smoke_test,
    }
    for name, rule in rules.items():
        rule(name = name, expected = ["attn_fwd." + label for label in expected[name]], target_under_test = target)
    return rules.keys()

# Settings with a wrong value.

def _refused_test_impl(ctx):
    env = analysistest.begin(ctx)
    asserts.expect_failure(env, ctx.attr.message)
    return analysistest.end(env)

def _refused_test(name, value):
    return analysistest.make(
        _refused_test_impl,
        attrs = {"message": attr.string()},
        config_settings = dict(_ARCH_SETTING, **{str(Label(name)): value}),
        expect_failure = True,
    )

unknown_profile_test = _refused_test("//:profile", "big")
unknown_head_dim_test = _refused_test("//:head_dims", ["64", "72"])
no_head_dim_test = _refused_test("//:head_dims", ["d64"])
unknown_dtype_test = _refused_test("//:dtypes", ["fp8"])
unknown_feature_test = _refused_test("//:features", ["alibi"])
nothing_left_test = _refused_test("//kernels:only", ["attn_bwd.*"])

def _refused_tests(target):
    tests = {
        "no_head_dim_test": (no_head_dim_test, "--//:head_dims=d64: 'd64' is no number. Give a list like --//:head_dims=64,128."),
        "nothing_left_test": (nothing_left_test, "leave no functional"),
        "unknown_dtype_test": (unknown_dtype_test, "--//:dtypes=fp8: no kernel has 'fp8'. There are fp16, bf16, fp32, i32."),
        "unknown_feature_test": (unknown_feature_test, "--//:features=alibi: no kernel has 'alibi'. There are causal, bias, dropout, none."),
        "unknown_head_dim_test": (unknown_head_dim_test, "--//:head_dims=64,72: no kernel has '72'. There are 16, 32, 48, 64, 80, " +
                                                         "96, 128, 160, 192, 224, 256, 512. Head dim 72 is served by the tile 80."),
        "unknown_profile_test": (unknown_profile_test, "--//:profile=big: no such profile. Give one of smoke, core, full."),
    }
    for name, (rule, message) in tests.items():
        rule(name = name, message = message, target_under_test = target)
    return tests.keys()

# What the profiles promise.

_KERNELS = {
    "attn_fwd": ATTN_FWD,
    "attn_fwd_persistent": ATTN_FWD_PERSISTENT,
    "bwd_dkdv": BWD_DKDV,
    "bwd_dq": BWD_DQ,
    "bwd_fused": BWD_FUSED,
    "bwd_preprocess": BWD_PREPROCESS,
    "debug_fill_dropout_rng": DEBUG_FILL_DROPOUT_RNG,
    "debug_simulate_encoded_softmax": DEBUG_SIMULATE_ENCODED_SOFTMAX,
}

def _of_profile(declaration, profile):
    return [
        one.values
        for one in functionals(declaration)
        if PROFILES.index(profile_of(declaration, one.values)) <= PROFILES.index(profile)
    ]

def _core_serves_every_call_test_impl(ctx):
    env = unittest.begin(ctx)
    for name, declaration in _KERNELS.items():
        axes = {one.name: one.values for one in declaration.axes}
        core = _of_profile(declaration, "core")
        if "layout" not in axes:
            # One functional a dtype, or a faster way of what another kernel does.
            asserts.equals(env, axes["dtype"], [dtype for dtype in axes["dtype"] if any([matches(one, {"dtype": dtype}) for one in core])], name)
            continue
        for dtype in axes["dtype"]:
            # A call takes the first tile that is not smaller.
            asserts.true(env, any([matches(one, {"dtype": dtype, "head_dim": axes["head_dim"][-1], "layout": "any"}) for one in core]), name)
    return unittest.end(env)

core_serves_every_call_test = unittest.make(_core_serves_every_call_test_impl)

def _smoke_is_small_and_has_everything_test_impl(ctx):
    env = unittest.begin(ctx)
    seen, expected, count = {}, {}, 0
    for name, declaration in _KERNELS.items():
        smoke = _of_profile(declaration, "smoke")
        asserts.true(env, bool(smoke), name)
        count += len(smoke)
        seen.update({"%s=%s" % item: None for one in smoke for item in one.items()})
        expected.update({"%s=%s" % (one.name, value): None for one in declaration.axes for value in one.values})
    asserts.equals(env, sorted(expected.keys()), sorted(seen.keys()))
    asserts.true(env, count <= 45, "smoke has %d functionals" % count)
    return unittest.end(env)

smoke_is_small_and_has_everything_test = unittest.make(_smoke_is_small_and_has_everything_test_impl)

def _checked_pack_test_impl(ctx):
    env = analysistest.begin(ctx)
    checks = [action for action in analysistest.target_actions(env) if action.mnemonic == "CodeObjectCheck"]
    outputs = [file for action in checks for file in action.outputs.to_list()]
    asserts.equals(env, 1, len(outputs))
    asserts.equals(env, outputs, analysistest.target_under_test(env)[OutputGroupInfo]._validation.to_list())
    return analysistest.end(env)

checked_pack_test = analysistest.make(_checked_pack_test_impl, config_settings = _ARCH_SETTING)

def _fat_tree_test_impl(ctx):
    env = analysistest.begin(ctx)
    files = analysistest.target_under_test(env)[DefaultInfo].files.to_list()
    for pack, expected in [
        ("attn_fwd.pack", ["amd-gfx1100", "amd-gfx942", "nvidia-sm_90"]),
        ("attn_fwd_hopper.pack", ["nvidia-sm_90"]),  # only this arch has the kernel
    ]:
        folders = [file.path.split("aotriton.images/")[1].split("/")[0] for file in files if file.basename == pack]
        asserts.equals(env, expected, sorted(folders))
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
    core_serves_every_call_test(name = "core_serves_every_call_test")
    smoke_is_small_and_has_everything_test(name = "smoke_is_small_and_has_everything_test")
    checked_pack_test(name = "checked_pack_test", target_under_test = kernel + "_pack")
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
            "core_serves_every_call_test",
            "smoke_is_small_and_has_everything_test",
            "checked_pack_test",
            "fat_tree_test",
            "functionals_test",
            "signature_test",
            "config_bounds_test",
        ] + _chosen_tests(kernel) + _refused_tests("//:images"),
    )
