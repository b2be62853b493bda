"""The v3 API."""

from pyaotriton.v3 import flash

__all__ = ["flash"]
