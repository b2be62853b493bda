"""Declaration of attn_fwd: arguments, axes, and the configs of each arch.

What every argument means stands in attn_fwd.py; dispatcher/attn_fwd.cc binds them by name.
"""

load("//kernels:declare.bzl", "axis", "config", "constexpr", "kernel_declaration", "scalar", "stride", "tensor")

HEAD_DIMS = [16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256]

# A functional of layout "any" promises nothing: any head_dim up to the tile, any base, any stride.
_ANY = {"layout": "any"}
_ALIGNED = {"layout": "aligned"}
_NOT_CAUSAL = {"causal": 0}

def _tensor(name):
    return tensor(name, "*{dtype}", align = 16, align_unless = _ANY)

def _strides(name, dims):
    return [stride("stride_" + name + dim, align = 8, align_unless = _ANY) for dim in dims.elems()]

def _configs(_arch, _values):
    return [config({"BLOCK_M": 64, "BLOCK_N": 32}, num_warps = 4, num_stages = 1)]

ATTN_FWD = kernel_declaration(
    entry = "attn_fwd",
    axes = [
        axis("dtype", ["fp16", "bf16", "fp32"]),
        axis("head_dim", HEAD_DIMS, labels = ["d%d" % d for d in HEAD_DIMS]),
        axis("causal", [0, 1], labels = ["", "causal"]),
        axis("layout", ["aligned", "any"], labels = ["", "any"]),
    ],
    arguments = [_tensor("Q"), _tensor("K"), _tensor("V"), _tensor("Out"), tensor("L", "*fp32")] +
                [scalar("sm_scale", "fp32")] +
                _strides("q", "zhm") + _strides("k", "zhn") + _strides("v", "zhn") + _strides("o", "zhm") +
                [
                    scalar("num_head_q", "i32"),
                    scalar("num_head_k", "i32"),
                    scalar("seqlen_q", "i32"),
                    scalar("seqlen_k", "i32"),
                    scalar("head_dim_qk", "i32", unless = _ALIGNED, constant = "{head_dim}"),
                    scalar("head_dim_vo", "i32", unless = _ALIGNED, constant = "{head_dim}"),
                    scalar("window_left", "i32", unless = _NOT_CAUSAL),
                    scalar("window_right", "i32", unless = _NOT_CAUSAL),
                    scalar("lse_scale", "fp32"),
                    scalar("store_lse", "i32"),
                    constexpr("HEAD_DIM", "{head_dim}"),
                    constexpr("WINDOWED", "{causal}"),
                    constexpr("PADDED_HEAD", "1", unless = _ALIGNED),
                    constexpr("BLOCK_M"),
                    constexpr("BLOCK_N"),
                ],
    configs = _configs,
)
