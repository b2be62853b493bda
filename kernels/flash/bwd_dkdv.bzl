"""Declaration of bwd_dkdv: the gradients of K and V."""

load("//kernels:declare.bzl", "kernel_declaration", "scalar")
load(":bwd_configs.bzl", "bwd_dkdv_configs")
load(
    ":family.bzl",
    "ANY",
    "ATTENTION_EXCLUDES",
    "attention_axes",
    "attention_constexprs",
    "attention_profiles",
    "bias_operand",
    "bias_strides",
    "fp32_tensor",
    "operand",
    "problem",
    "strides",
)

BWD_DKDV = kernel_declaration(
    entry = "bwd_dkdv",
    axes = attention_axes(),
    exclude = ATTENTION_EXCLUDES,
    profiles = attention_profiles(),
    general = ANY,
    arguments = [operand("Q"), operand("K"), operand("V"), bias_operand("B"), operand("DO"), operand("DK"), operand("DV"), fp32_tensor("L"), fp32_tensor("Delta")] +
                [scalar("sm_scale", "fp32")] +
                strides("q", "zhm") + strides("k", "zhn") + strides("v", "zhn") + bias_strides("b") +
                strides("do", "zhm") + strides("dk", "zhn") + strides("dv", "zhn") +
                problem() +
                [scalar("lse_scale", "fp32"), scalar("lse_compact", "i32")] +
                attention_constexprs(),
    configs = bwd_dkdv_configs,
    fp_fusion = False,  # the scores are the forward's, to the bit
)
