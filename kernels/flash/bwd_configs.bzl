"""Configs of the backward kernels on each arch.

A tile of scores is own rows times seen rows: keys times queries in dK and dV, queries times keys
in dQ. Own rows cost registers (two accumulators), seen rows cost shared memory.
"""

load("//kernels:declare.bzl", "config")

def _is_plain(values):
    return values["layout"] == "aligned" and values["bias"] == "0" and values["dropout"] == "0"

def _tile(arch, values):
    """(own rows, seen rows, options): the largest without spills, or with the fewest."""
    d = int(values["head_dim"])
    fp32 = values["dtype"] == "fp32"
    aligned = values["layout"] == "aligned"
    if arch.startswith("sm_"):
        if aligned:
            if arch != "sm_90" and d <= 128:
                # Larger ones spill.
                return 64, 32, dict(num_warps = 8)
            if d <= 64:
                return 128, 64, dict(num_warps = 8, num_stages = 2)
            if d <= 128:
                return 128, 32, dict(num_warps = 8, num_stages = 2)
            return (64, 32, dict(num_warps = 8)) if d <= 256 else (16, 16, dict(num_warps = 8))

        # Two-byte loads, each with its own pointer; full fp32 by multiply-adds: small tiles.
        return 32 if d <= 128 else 16, 32 if d <= 64 else 16, dict(num_warps = 8)
    if arch.startswith("gfx9"):
        if fp32:
            return 32 if d <= 128 else 16, 32 if d <= 64 else 16, {}
        own = 16 if d > 256 else 64 if aligned else 32
        return own, 32 if d <= 128 else 16, {}

    # RDNA: 256 registers, and every wave holds its own rows' operands. Nothing is free of spills.
    if aligned and d <= 128:
        return 64, 16, dict(num_warps = 4 if d <= 64 else 8)
    return 16, 16, dict(num_warps = 8)

def _config(block_m, block_n, options):
    return config({"BLOCK_M": block_m, "BLOCK_N": block_n}, **options)

def bwd_dkdv_configs(arch, values):
    if arch == "sm_90" and _is_plain(values) and int(values["head_dim"]) <= 128:
        # The fastest of those tried on an H200 for bf16.
        if int(values["head_dim"]) <= 64:
            return [_config(32, 64, dict(num_stages = 3))]
        return [_config(32, 64, dict(num_stages = 2)) if values["causal"] == "1" else _config(32, 128, dict(num_warps = 8, num_stages = 3))]
    own, seen, options = _tile(arch, values)
    return [_config(seen, own, options)]

def bwd_dq_configs(arch, values):
    if arch == "sm_90" and _is_plain(values) and int(values["head_dim"]) <= 128:
        # Likewise.
        return [_config(64, 64, dict(num_stages = 3)) if int(values["head_dim"]) <= 64 else _config(128, 64, dict(num_warps = 8, num_stages = 3))]
    own, seen, options = _tile(arch, values)
    return [_config(own, seen, options)]

def bwd_fused_configs(arch, values):
    """One block size for both halves: own rows for the keys, whose half has two accumulators."""
    if arch == "sm_90" and values["layout"] == "aligned" and int(values["head_dim"]) <= 128:
        # Fewer than 64 own rows in either half would leave wgmma.
        return [_config(64, 64, dict(num_stages = 2 if int(values["head_dim"]) <= 64 else 1))]
    own, seen, options = _tile(arch, values)
    if arch == "gfx950" and values["layout"] == "any" and values["dtype"] != "fp32" and values["head_dim"] == "128":
        # With 32 own rows, LLVM saves registers for fewer lanes than it reloads them for (simulator/hazards.h, CheckJoins).
        own = 16
    return [_config(seen, own, options)]
