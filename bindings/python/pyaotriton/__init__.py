"""AOTriton's Python binding, `pyaotriton`, over the C ABI of libaotriton_v2.so.

The names are those of upstream's extension module, so that programs written for it run here. Nothing
is compiled: any Python from 3.10 on will do. Importing it loads neither the library nor a GPU runtime.
A call releases the GIL, raises nothing about its arguments, and returns a hipError_t; last_error()
then says which argument or file it was, and what would be accepted.
"""

from pyaotriton import lazy_tensor, v2, v3
from pyaotriton.runtime import (
    HipMemory,
    Stream,
    get_name_suffix,
    hipDeviceSynchronize,
    hipError_t,
    hipGetLastError,
    last_error,
)
from pyaotriton.views import T0, T1, T2, T4, DType

# Upstream exports the members of both enums beside them.
globals().update(DType.__members__)
globals().update(hipError_t.__members__)

__all__ = [
    "DType",
    "HipMemory",
    "Stream",
    "T0",
    "T1",
    "T2",
    "T4",
    "get_name_suffix",
    "hipDeviceSynchronize",
    "hipError_t",
    "hipGetLastError",
    "last_error",
    "lazy_tensor",
    "v2",
    "v3",
    *DType.__members__,
    *hipError_t.__members__,
]
