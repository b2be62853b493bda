"""Declaration of bwd_preprocess: Delta, the row sums of Out * dO."""

load("//kernels:declare.bzl", "config", "constexpr", "kernel_declaration", "scalar", "tensor")
load(
    ":family.bzl",
    "ANY",
    "CORE_HEAD_DIMS",
    "FP32_IS_ANY",
    "SMOKE_ANY",
    "dtype_axis",
    "fp32_tensor",
    "head_dim_axis",
    "head_dim_scalar",
    "layout_axis",
    "lse_strides",
    "operand",
    "strides",
)

def _configs(_arch, values):
    # A tile of head_dim 512 is as large as four of 128.
    return [config({"BLOCK_M": 32 if int(values["head_dim"]) > 128 else 128})]

BWD_PREPROCESS = kernel_declaration(
    entry = "bwd_preprocess",
    axes = [dtype_axis(), head_dim_axis(), layout_axis()],
    exclude = FP32_IS_ANY,
    profiles = {
        "core": [ANY, {"layout": "aligned", "head_dim": CORE_HEAD_DIMS}],
        # With the tiles that no other kernel has in smoke: this one compiles fast.
        "smoke": SMOKE_ANY + [
            {"dtype": "bf16", "layout": "aligned", "head_dim": 64},
            {"dtype": "fp16", "layout": "aligned", "head_dim": 128},
            {"dtype": "fp32", "head_dim": [16, 80, 96, 160, 192, 224, 256, 512]},
        ],
    },
    general = ANY,
    arguments = [operand("Out"), operand("DO"), fp32_tensor("Delta")] +
                strides("o", "zhm") + strides("do", "zhm") + lse_strides() +
                [
                    scalar("num_head_q", "i32"),
                    scalar("max_seqlen_q", "i32"),
                    tensor("cu_seqlens_q", "*i32"),
                    tensor("seq_starts_q", "*i32"),
                    scalar("varlen_type", "i32"),
                    head_dim_scalar("head_dim_vo"),
                    scalar("lse_compact", "i32"),
                    constexpr("HEAD_DIM", "{head_dim}"),
                    constexpr("GENERAL", "1", unless = {"layout": "aligned"}),
                    constexpr("BLOCK_M"),
                ],
    configs = _configs,
)
