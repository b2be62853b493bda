"""The v2 API."""

from pyaotriton.v2 import flash
from pyaotriton.v2.flash import CppTune

__all__ = ["CppTune", "flash"]
