"""What the kernels of the family share in their declarations: axes, arguments, exclusions.

The layout "aligned" promises alignment, and is compiled for every choice. The layout "any"
promises nothing and serves every call of its tile with run-time flags: it is compiled once for
each dtype and head_dim. fp32 exists only as "any": without matrix instructions for full fp32
there is nothing to gain from promises.
"""

load("//kernels:declare.bzl", "axis", "constexpr", "scalar", "stride", "tensor")

HEAD_DIMS = [16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256, 512]

ANY = {"layout": "any"}
_ALIGNED = {"layout": "aligned"}
_NOT_CAUSAL = {"causal": 0}
_NO_BIAS = {"bias": 0}
_NO_DROPOUT = {"dropout": 0}

def dtype_axis():
    return axis("dtype", ["fp16", "bf16", "fp32"])

def head_dim_axis(head_dims = HEAD_DIMS):
    return axis("head_dim", head_dims, labels = ["d%d" % d for d in head_dims])

def layout_axis():
    return axis("layout", ["aligned", "any"], labels = ["", "any"])

def attention_axes(head_dims = HEAD_DIMS):
    """The axes of every kernel that computes scores."""
    return [
        dtype_axis(),
        head_dim_axis(head_dims),
        axis("causal", [0, 1], labels = ["", "causal"]),
        axis("bias", [0, 1], labels = ["", "bias"]),
        axis("dropout", [0, 1], labels = ["", "dropout"]),
        layout_axis(),
    ]

FP32_IS_ANY = [{"dtype": "fp32", "layout": "aligned"}]

# "any" is compiled with everything switched on.
ATTENTION_EXCLUDES = FP32_IS_ANY + [
    {"layout": "any", "causal": 0},
    {"layout": "any", "bias": 0},
    {"layout": "any", "dropout": 0},
]

# Tiles that models use with head dims that are the tile: transformers and vision (64, 80, 96, 128, 256), small vision
# windows (32), latent attention with V padded (192). Dropout is for training, of models of 64 and 128.
CORE_HEAD_DIMS = [32, 64, 80, 96, 128, 192, 256]
_DROPOUT_HEAD_DIMS = [64, 128]

# PyTorch's SDPA and TransformerEngine call with a window or with a bias, never with both. What is not here, "any" serves.
CORE_ALIGNED = [
    dict(switches, layout = "aligned", head_dim = head_dims, dropout = dropout)
    for head_dims, dropout in [(CORE_HEAD_DIMS, 0), (_DROPOUT_HEAD_DIMS, 1)]
    for switches in [{"bias": 0}, {"causal": 0, "bias": 1}]
]

# In smoke every kernel has these of "any", and so every dtype.
SMOKE_ANY = [
    {"dtype": "bf16", "head_dim": 64, "layout": "any"},
    {"dtype": "fp16", "head_dim": 48, "layout": "any"},
    {"dtype": "fp32", "head_dim": 32, "layout": "any"},
]

_SMOKE_ALIGNED = [
    {"dtype": "bf16", "head_dim": 64, "layout": "aligned", "bias": 0, "dropout": 0},
    {"dtype": "fp16", "head_dim": 128, "layout": "aligned", "causal": 0, "bias": 1, "dropout": 1},
]

def attention_profiles(core = CORE_ALIGNED + [ANY]):
    """What smoke and core hold of a kernel that computes scores; by default core serves every call."""
    return {"core": core, "smoke": _SMOKE_ALIGNED + SMOKE_ANY}

def operand(name):
    """A tensor of the axis dtype."""
    return tensor(name, "*{dtype}", align = 16, align_unless = ANY)

def bias_operand(name):
    """B or dB."""
    return tensor(name, "*{dtype}", align = 16, align_unless = ANY, unless = _NO_BIAS)

def strides(prefix, dims):
    """The strides of an operand but the last, which is 1."""
    return [stride("stride_%s%s" % (prefix, dim), align = 8, align_unless = ANY) for dim in dims.elems()]

def bias_strides(prefix):
    """All strides of B or dB; the last is 1 where alignment is promised."""
    return [
        stride("stride_%s%s" % (prefix, dim), align = 8, align_unless = ANY, unless = _NO_BIAS)
        for dim in "zhm".elems()
    ] + [stride("stride_%sn" % prefix, unless = _ALIGNED, constant = 1)]

def lse_strides():
    """Of L and Delta: fp32, row stride 1."""
    return [stride("stride_lz"), stride("stride_lh")]

def fp32_tensor(name):
    return tensor(name, "*fp32")

def head_dim_scalar(name):
    return scalar(name, "i32", unless = _ALIGNED, constant = "{head_dim}")

def problem(db = False):
    """What every kernel that computes scores is told after its operands: lengths, masks, bias, dropout.

    Args:
      db: whether the kernel writes a gradient of the bias.
    """
    return lse_strides() + [
        scalar("num_head_q", "i32"),
        scalar("num_head_k", "i32"),
        scalar("max_seqlen_q", "i32"),
        scalar("max_seqlen_k", "i32"),
        tensor("cu_seqlens_q", "*i32"),
        tensor("cu_seqlens_k", "*i32"),
        tensor("seq_starts_q", "*i32"),
        tensor("seq_starts_k", "*i32"),
        scalar("varlen_type", "i32"),
        head_dim_scalar("head_dim_qk"),
        head_dim_scalar("head_dim_vo"),
        scalar("window_left", "i32", unless = _NOT_CAUSAL),
        scalar("window_right", "i32", unless = _NOT_CAUSAL),
        scalar("has_bias", "i32", unless = _ALIGNED, constant = "{bias}"),
    ] + ([scalar("has_db", "i32", unless = _NO_BIAS)] if db else []) + [
        scalar("has_dropout", "i32", unless = _ALIGNED, constant = "{dropout}"),
        scalar("dropout_p", "fp32", unless = _NO_DROPOUT),
        tensor("philox_seed", "*i64", unless = _NO_DROPOUT),
        tensor("philox_offset1", "*i64", unless = _NO_DROPOUT),
        scalar("philox_offset2", "i64", unless = _NO_DROPOUT),
    ]

def philox_outputs():
    return [
        tensor("philox_seed_output", "*i64", unless = _NO_DROPOUT),
        tensor("philox_offset_output", "*i64", unless = _NO_DROPOUT),
    ]

def attention_constexprs():
    """Of every kernel that computes scores."""
    return [
        constexpr("HEAD_DIM", "{head_dim}"),
        constexpr("WINDOWED", "{causal}"),
        constexpr("GENERAL", "1", unless = _ALIGNED),
        constexpr("BIAS", "{bias}"),
        constexpr("DROPOUT", "{dropout}"),
        constexpr("BLOCK_M"),
        constexpr("BLOCK_N"),
    ]
