"""Declaration of bwd_dq: the gradients of Q and of the bias."""

load("//kernels:declare.bzl", "kernel_declaration", "scalar")
load(":bwd_configs.bzl", "bwd_dq_configs")
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

BWD_DQ = kernel_declaration(
    entry = "bwd_dq",
    axes = attention_axes(),
    exclude = ATTENTION_EXCLUDES,
    profiles = attention_profiles(),
    general = ANY,
    arguments = [operand("Q"), operand("K"), operand("V"), bias_operand("B"), operand("DO"), operand("DQ"), bias_operand("DB"), fp32_tensor("L"), fp32_tensor("Delta")] +
                [scalar("sm_scale", "fp32")] +
                strides("q", "zhm") + strides("k", "zhn") + strides("v", "zhn") + bias_strides("b") +
                strides("do", "zhm") + strides("dq", "zhm") + bias_strides("db") +
                problem(db = True) +
                [scalar("lse_scale", "fp32"), scalar("lse_compact", "i32")] +
                attention_constexprs(),
    configs = bwd_dq_configs,
    fp_fusion = False,  # the scores are the forward's, to the bit
)
