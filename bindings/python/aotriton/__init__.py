"""Ahead-of-time compiled attention: libaotriton_v2.so called through its C ABI.

Importing this package loads neither the library nor torch.
"""

from aotriton.attention import (
    attn_bwd,
    attn_bwd_prepare,
    attn_bwd_supported,
    attn_fwd,
    debug_fill_dropout_rng,
    debug_simulate_encoded_softmax,
    dropout_mask,
    prepare,
    supported,
)
from aotriton.library import (
    WINDOW_BOTTOM_RIGHT,
    WINDOW_TOP_LEFT,
    AotritonError,
    gpu_arch,
    gpu_level,
    version,
)

__all__ = [
    "AotritonError",
    "WINDOW_BOTTOM_RIGHT",
    "WINDOW_TOP_LEFT",
    "attn_bwd",
    "attn_bwd_prepare",
    "attn_bwd_supported",
    "attn_fwd",
    "debug_fill_dropout_rng",
    "debug_simulate_encoded_softmax",
    "dropout_mask",
    "gpu_arch",
    "gpu_level",
    "prepare",
    "supported",
    "version",
]
