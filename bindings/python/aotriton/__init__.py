"""Ahead-of-time compiled attention: libaotriton_v2.so called through its C ABI.

Importing this package loads neither the library nor torch.
"""

from aotriton.attention import attn_fwd, prepare, supported
from aotriton.library import (
    WINDOW_BOTTOM_RIGHT,
    WINDOW_TOP_LEFT,
    AotritonError,
    gpu_arch,
    version,
)

__all__ = [
    "AotritonError",
    "WINDOW_BOTTOM_RIGHT",
    "WINDOW_TOP_LEFT",
    "attn_fwd",
    "gpu_arch",
    "prepare",
    "supported",
    "version",
]
