"""Declaration of attn_fwd_hopper: the forward without bias and dropout, of 16-bit tensors that TMA can reach."""

load("//kernels:declare.bzl", "axis", "config", "constexpr", "kernel_declaration", "scalar", "stride", "tensor", "tensor_map")
load(":family.bzl", "fp32_tensor", "head_dim_axis", "lse_strides")

# wgmma works on powers of two; what is between them is padded by TMA.
_HEAD_DIMS = [64, 128, 256]

def _configs(_arch, values):
    """The fastest of those tried on an H200 for bf16."""
    if values["head_dim"] == "256":
        # A second tile of Out has no room beside those of Q.
        return [_config(128, 64, turns = 1, out_in_q = 1)]
    if values["head_dim"] == "128":
        return [_config(128, 128)]

    # Larger tiles pay once a head has many of them.
    small_until = 6144 if values["causal"] == "1" else 256
    return [_config(128, 128, q_in_registers = 1, max_seqlen_q = small_until), _config(192, 128, turns = 1)]

def _config(block_m, block_n, turns = 0, q_in_registers = 0, out_in_q = 0, **options):
    return config(
        {
            "BLOCK_M": block_m,
            "BLOCK_N": block_n,
            "STAGES": 2,
            "TURNS": turns,
            "Q_IN_REGISTERS": q_in_registers,
            "OUT_IN_Q": out_in_q,
            # What a multiprocessor's 65536 leave to two or three consumers beside a producer of 32.
            "REGISTERS": 240 if block_m == 128 else 160,
        },
        **options
    )

_NOT_CAUSAL = {"causal": 0}

ATTN_FWD_HOPPER = kernel_declaration(
    entry = "attn_fwd_hopper",
    axes = [axis("dtype", ["fp16", "bf16"]), head_dim_axis(_HEAD_DIMS), axis("causal", [0, 1], labels = ["", "causal"])],
    arguments = [tensor_map("map_" + name, "{dtype}", rows, "{head_dim}") for name, rows in [
                    ("Q", "64"),
                    ("K", "BLOCK_N"),
                    ("V", "BLOCK_N"),
                    ("Out", "64"),
                ]] +
                [tensor("Out", "*{dtype}"), fp32_tensor("L"), scalar("sm_scale", "fp32")] +
                [stride("stride_" + name) for name in ["oz", "oh", "om"]] + lse_strides() + [
                    scalar(name, "i32")
                    for name in ["num_sequences", "num_head_q", "num_head_k", "max_seqlen_q", "max_seqlen_k"]
                ] + [
                    tensor(name, "*i32")
                    for name in ["cu_seqlens_q", "cu_seqlens_k", "seq_starts_q", "seq_starts_k"]
                ] + [
                    scalar("varlen_type", "i32"),
                    scalar("head_dim_vo", "i32"),
                    scalar("window_left", "i32", unless = _NOT_CAUSAL),
                    scalar("window_right", "i32", unless = _NOT_CAUSAL),
                    scalar("lse_scale", "fp32"),
                    scalar("store_lse", "i32"),
                    scalar("lse_compact", "i32"),
                    scalar("num_programs", "i32"),
                    tensor("tile_counter", "*i32"),
                    constexpr("HEAD_DIM", "{head_dim}"),
                    constexpr("WINDOWED", "{causal}"),
                    constexpr("BLOCK_M"),
                    constexpr("BLOCK_N"),
                    constexpr("STAGES"),
                    constexpr("TURNS"),
                    constexpr("Q_IN_REGISTERS"),
                    constexpr("OUT_IN_Q"),
                    constexpr("REGISTERS"),
                ],
    archs = ["sm_90"],
    configs = _configs,
    # The kernel says where a product and a sum are rounded once (softmax_step); elsewhere twice.
    fp_fusion = False,
    profiles = {
        "core": [{"head_dim": [64, 128, 256]}],
        "smoke": [{"dtype": "bf16", "head_dim": 64}, {"dtype": "fp16", "head_dim": 128, "causal": 0}],
    },
)
