"""Declaration of bwd_fused: all gradients in one launch."""

load("//kernels:declare.bzl", "kernel_declaration", "scalar")
load(":bwd_configs.bzl", "bwd_fused_configs")
load(
    ":family.bzl",
    "ANY",
    "ATTENTION_EXCLUDES",
    "HEAD_DIMS",
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

BWD_FUSED = kernel_declaration(
    entry = "bwd_fused",
    axes = attention_axes([d for d in HEAD_DIMS if d <= 256]),
    # The fused backend is the slower one: with bias or dropout "any" serves it.
    exclude = ATTENTION_EXCLUDES + [{"layout": "aligned", "bias": 1}, {"layout": "aligned", "dropout": 1}],
    # PyTorch 2.7 and 2.8 ask for it up to head_dim 192 where sequences are short.
    profiles = attention_profiles([{"layout": "aligned", "head_dim": [64, 128]}, {"layout": "any", "head_dim": [64, 128, 192, 256]}]),
    general = ANY,
    arguments = [operand("Q"), operand("K"), operand("V"), bias_operand("B"), operand("Out"), operand("DO"), operand("DQ"), operand("DK"), operand("DV"), bias_operand("DB"), fp32_tensor("L")] +
                [scalar("sm_scale", "fp32")] +
                strides("q", "zhm") + strides("k", "zhn") + strides("v", "zhn") + bias_strides("b") +
                strides("o", "zhm") + strides("do", "zhm") + strides("dq", "zhm") + strides("dk", "zhn") + strides("dv", "zhn") + bias_strides("db") +
                problem(db = True) +
                [scalar("lse_scale", "fp32"), scalar("lse_compact", "i32")] +
                attention_constexprs(),
    configs = bwd_fused_configs,
    fp_fusion = False,  # the scores are the forward's, to the bit
)
