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

def _sm_90(bits, head_dim, layout):
    """The fastest of those tried on an H200 for bf16; elsewhere the largest blocks without spills."""
    if bits == 32:
        # Full fp32 has no tensor cores: the products are unrolled multiply-adds.
        return _config(32, 32, num_warps = 8, num_stages = 2) if head_dim < 128 else _config(32, 16, num_warps = 8, num_stages = 2)
    if layout == "any":
        return _config(64, 32) if head_dim <= 96 else _config(64, 32, num_warps = 8) if head_dim <= 128 else _config(32, 16)
    if head_dim <= 64:
        return _config(64, 64, num_stages = 3, max_registers = 128)
    if head_dim <= 128:
        return _config(64, 64, num_stages = 3, max_registers = 168)
    if head_dim <= 192:
        return _config(128, 64, num_warps = 8, num_stages = 2)
    return _config(128, 32, num_warps = 8, num_stages = 3)

def _cdna(bits, head_dim, layout):
    """The largest blocks without spills."""
    if bits == 32:
        return _config(64, 32) if head_dim <= 128 else _config(32, 32) if head_dim <= 192 else _config(32, 16)

    # Two waves on a SIMD: 221 registers in place of 324 at head_dim 128 on gfx942, and no spill.
    waves_per_eu = 2 if layout == "aligned" and head_dim <= 128 else 0
    if head_dim <= 64:
        return _config(128, 64, num_stages = 2, waves_per_eu = waves_per_eu)
    if head_dim <= 128:
        return _config(128, 32, num_stages = 2, waves_per_eu = waves_per_eu)
    return _config(64, 16 if layout == "any" and head_dim >= 224 else 32, num_stages = 2)

def _rdna(arch, bits, head_dim, layout):
    """Small blocks: larger ones spill by the thousand and take minutes to compile."""
    if bits == 32:
        # RDNA has no matrix instruction for fp32.
        return _config(32, 16, num_warps = 8) if head_dim <= 64 else _config(16, 16, num_warps = 8)
    widest = {"aligned": {"gfx1100": 80, "gfx1201": 128}, "any": {"gfx1100": 48, "gfx1201": 64}}[layout][arch]
    return _config(64, 32) if head_dim <= widest else _config(64, 16, num_warps = 8)

def _config(block_m, block_n, **options):
    return config({"BLOCK_M": block_m, "BLOCK_N": block_n}, **options)

def _configs(arch, values):
    bits = 32 if values["dtype"] == "fp32" else 16
    head_dim, layout = int(values["head_dim"]), values["layout"]
    if arch.startswith("sm_"):
        return [_sm_90(bits, head_dim, layout)]
    if arch.startswith("gfx9"):
        return [_cdna(bits, head_dim, layout)]
    return [_rdna(arch, bits, head_dim, layout)]

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
    # The kernel rounds sm_scale * q k once; fused into the subtraction of the maximum, the two
    # would come from differently rounded scores.
    fp_fusion = False,
)
