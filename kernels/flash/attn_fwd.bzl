"""Declaration of attn_fwd: arguments, axes, and the configs of each arch.

What every argument means stands in attn_fwd.py; dispatcher/attn_fwd.cc binds them by name.
"""

load("//kernels:declare.bzl", "config", "kernel_declaration", "scalar")
load(
    ":family.bzl",
    "ANY",
    "ATTENTION_EXCLUDES",
    "CORE_ALIGNED",
    "attention_axes",
    "attention_constexprs",
    "attention_profiles",
    "bias_operand",
    "bias_strides",
    "fp32_tensor",
    "operand",
    "philox_outputs",
    "problem",
    "strides",
)

def _sm_90(bits, head_dim, values):
    """The fastest of those tried on an H200 for bf16 without bias and dropout; else the largest blocks without spills."""
    if bits == 32:
        # Full fp32 has no tensor cores: the products are unrolled multiply-adds.
        block_m, block_n = (32, 32) if head_dim < 128 else (32, 16) if head_dim <= 256 else (16, 16)
        return _config(block_m, block_n, num_warps = 8, num_stages = 2)
    if values["layout"] == "any":
        if head_dim <= 128:
            return _config(64, 32, num_warps = 8)
        return _config(32, 16, num_warps = 8) if head_dim <= 256 else _config(16, 16)
    if values["bias"] == "1" or values["dropout"] == "1":
        if head_dim <= 128:
            return _config(128, 64, num_warps = 8, num_stages = 2)
        if head_dim <= 224:
            return _config(128, 32, num_warps = 8, num_stages = 2)
        return _config(64, 32, num_warps = 8, num_stages = 2) if head_dim <= 256 else _config(32, 16, num_warps = 8, num_stages = 2)
    if head_dim <= 64:
        return _config(64, 64, num_stages = 3, max_registers = 128)
    if head_dim <= 128:
        return _config(64, 64, num_stages = 3, max_registers = 168)
    if head_dim <= 192:
        return _config(128, 64, num_warps = 8, num_stages = 2)
    return _config(128, 32, num_warps = 8, num_stages = 3) if head_dim <= 256 else _config(32, 32, num_warps = 8, num_stages = 2)

def _cdna(bits, head_dim, values):
    """The largest blocks without spills."""
    if bits == 32:
        if head_dim <= 128:
            return _config(64, 32)
        return _config(32, 32) if head_dim <= 192 else _config(32, 16) if head_dim <= 256 else _config(16, 16)

    # Two waves on a SIMD: 221 registers in place of 324 at head_dim 128 on gfx942, and no spill.
    # With both bias and dropout that is too few.
    is_plain = values["layout"] == "aligned" and not (values["bias"] == "1" and values["dropout"] == "1")
    waves_per_eu = 2 if is_plain and head_dim <= 128 else 0
    if head_dim <= 64:
        return _config(128, 64, num_stages = 2, waves_per_eu = waves_per_eu)
    if head_dim <= 128:
        return _config(128, 32, num_stages = 2, waves_per_eu = waves_per_eu)
    if head_dim <= 256:
        return _config(64, 16 if values["layout"] == "any" and head_dim >= 224 else 32, num_stages = 2)
    return _config(32, 16, num_stages = 2)

def _gfx11(bits, head_dim, values):
    """Small blocks: larger ones spill by the thousand and take minutes to compile."""
    if bits == 32:
        # RDNA has no matrix instruction for fp32.
        return _config(16, 16, num_warps = 8 if head_dim <= 64 else 16)
    if values["layout"] == "any":
        return _config(32, 16, num_warps = 8 if head_dim <= 224 else 16)
    if head_dim <= 64:
        return _config(64, 32)
    if head_dim <= 128:
        return _config(64, 16, num_warps = 8)
    return _config(32, 16, num_warps = 8 if head_dim <= 192 else 16)

def _gfx12(bits, head_dim, values):
    """Like _gfx11."""
    if bits == 32:
        return _config(16, 16, num_warps = 8 if head_dim <= 64 else 16)
    if values["layout"] == "any":
        return _config(64, 16, num_warps = 8 if head_dim <= 128 else 16) if head_dim <= 256 else _config(32, 16, num_warps = 16)
    if head_dim <= 128:
        return _config(64, 32)
    return _config(64, 16, num_warps = 8 if head_dim <= 256 else 16)

def _config(block_m, block_n, **options):
    return config({"BLOCK_M": block_m, "BLOCK_N": block_n}, **options)

def attn_fwd_configs(arch, values):
    """The configs of one functional on one arch."""
    bits, head_dim = 32 if values["dtype"] == "fp32" else 16, int(values["head_dim"])
    for prefix, rule in [("sm_", _sm_90), ("gfx9", _cdna), ("gfx11", _gfx11), ("gfx12", _gfx12)]:
        if arch.startswith(prefix):
            return [rule(bits, head_dim, values)]
    fail("attn_fwd has no configs for " + arch)

ATTN_FWD = kernel_declaration(
    entry = "attn_fwd",
    axes = attention_axes(),
    exclude = ATTENTION_EXCLUDES,
    # The decoder of an image's latents attends over one head of 512, in inference.
    profiles = attention_profiles(CORE_ALIGNED + [ANY, {"layout": "aligned", "head_dim": 512, "causal": 0, "bias": 0, "dropout": 0}]),
    general = ANY,
    arguments = [operand("Q"), operand("K"), operand("V"), bias_operand("B"), operand("Out"), fp32_tensor("L")] +
                [scalar("sm_scale", "fp32")] +
                strides("q", "zhm") + strides("k", "zhn") + strides("v", "zhn") + strides("o", "zhm") +
                bias_strides("b") + problem() + philox_outputs() +
                [scalar("lse_scale", "fp32"), scalar("store_lse", "i32"), scalar("lse_compact", "i32")] +
                attention_constexprs(),
    configs = attn_fwd_configs,
    # The kernel rounds sm_scale * q k once; fused into the subtraction of the maximum, the two
    # would come from differently rounded scores.
    fp_fusion = False,
)
