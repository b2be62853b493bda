"""Declarations of the kernels that show what dropout does."""

load("//kernels:declare.bzl", "axis", "config", "constexpr", "kernel_declaration", "scalar", "stride", "tensor")

def _configs(_arch, _values):
    return [config({"BLOCK_M": 64, "BLOCK_N": 32})]

_R = [tensor("R", "*{dtype}")] + [stride("stride_r" + dim) for dim in "zhmn".elems()]

_SIZES = [
    scalar("num_head_q", "i32"),
    scalar("max_seqlen_q", "i32"),
    scalar("max_seqlen_k", "i32"),
]

_BLOCKS = [
    constexpr("BLOCK_M"),
    constexpr("BLOCK_N"),
]

DEBUG_SIMULATE_ENCODED_SOFTMAX = kernel_declaration(
    entry = "debug_simulate_encoded_softmax",
    axes = [axis("dtype", ["fp16", "bf16", "fp32"])],
    arguments = _R + [scalar("dropout_p", "fp32")] + _SIZES + [
        tensor("philox_seed", "*i64"),
        tensor("philox_offset1", "*i64"),
        scalar("philox_offset2", "i64"),
    ] + _BLOCKS,
    configs = _configs,
)

DEBUG_FILL_DROPOUT_RNG = kernel_declaration(
    entry = "debug_fill_dropout_rng",
    axes = [axis("dtype", ["fp32", "i32"])],
    arguments = _R + _SIZES + [
        scalar("philox_seed", "i64"),
        scalar("philox_offset", "i64"),
    ] + _BLOCKS,
    configs = _configs,
)
