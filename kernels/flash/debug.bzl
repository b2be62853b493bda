"""Declarations of the kernels that show the dropout mask."""

load("//kernels:declare.bzl", "axis", "config", "constexpr", "kernel_declaration", "scalar", "stride", "tensor")

def _configs(_arch, _values):
    return [config({"BLOCK_M": 64, "BLOCK_N": 32})]

def _mask_arguments(r, threshold = []):
    return [r] + [stride("stride_r" + dim) for dim in "zhmn".elems()] + threshold + [
        scalar("num_head_q", "i32"),
        scalar("max_seqlen_q", "i32"),
        scalar("max_seqlen_k", "i32"),
        tensor("philox_seed", "*i64"),
        tensor("philox_offset1", "*i64"),
        scalar("philox_offset2", "i64"),
        constexpr("BLOCK_M"),
        constexpr("BLOCK_N"),
    ]

DEBUG_SIMULATE_ENCODED_SOFTMAX = kernel_declaration(
    entry = "debug_simulate_encoded_softmax",
    axes = [axis("dtype", ["fp16", "bf16", "fp32"])],
    arguments = _mask_arguments(tensor("R", "*{dtype}"), [scalar("dropout_p", "fp32")]),
    configs = _configs,
)

DEBUG_FILL_DROPOUT_RNG = kernel_declaration(
    entry = "debug_fill_dropout_rng",
    axes = [axis("dtype", ["i32"])],
    arguments = _mask_arguments(tensor("R", "*{dtype}")),
    configs = _configs,
)
