"""Views of tensors in device memory: T0 (one number), T1, T2, T4."""

import enum

from aotriton.library import Tensor


class DType(enum.IntEnum):
    """What a tensor holds."""

    kUnknown = 0
    kFloat32 = 1
    kFloat16 = 2
    kBFloat16 = 3
    kInt8 = 10
    kInt16 = 11
    kInt32 = 12
    kInt64 = 13
    kUInt8 = 20
    kUInt16 = 21
    kUInt32 = 22
    kUInt64 = 23


class _View:
    """The address, sizes and strides (in elements) of a tensor. Without arguments: no tensor."""

    def __init__(self, data_ptr=0, sizes=None, strides=None, dtype=DType.kUnknown):
        self._data_ptr, self._dtype = data_ptr, DType(dtype)
        self._sizes, self._strides = (self._extents(*pair) for pair in (("sizes", sizes), ("strides", strides)))

    def _extents(self, name, numbers):
        numbers = [0] * self._RANK if numbers is None else [int(number) for number in numbers]
        if len(numbers) != self._RANK or any(number < 0 for number in numbers):
            raise TypeError(f"{name} of a {type(self).__name__} are {numbers}; accepted: {self._RANK} numbers from 0 on")
        return numbers

    def size(self, i):
        return self._sizes[i]

    def stride(self, i):
        return self._strides[i]

    sizes = property(lambda self: list(self._sizes))
    strides = property(lambda self: list(self._strides))
    data_ptr = property(lambda self: self._data_ptr)
    dtype = property(lambda self: self._dtype)

    def __bool__(self):
        return self._data_ptr != 0

    def __repr__(self):
        return f"{type(self).__name__}({self._data_ptr:#x}, {self._sizes}, {self._strides}, {self._dtype.name})"


class T4(_View):
    _RANK = 4


class T2(_View):
    _RANK = 2


class T1(_View):
    _RANK = 1


class T0:
    """The address of one number. Without arguments: none."""

    def __init__(self, data_ptr=0, dtype=DType.kUnknown):
        self._data_ptr, self._dtype = data_ptr, DType(dtype)

    def size(self, i):
        return 1 if i == 0 else 0

    stride = size
    sizes = property(lambda self: [1])
    strides = property(lambda self: [1])
    data_ptr = property(lambda self: self._data_ptr)
    dtype = property(lambda self: self._dtype)

    def __bool__(self):
        return self._data_ptr != 0

    def __repr__(self):
        return f"T0({self._data_ptr:#x}, {self._dtype.name})"


def pack(view):
    """The aotriton_tensor of a view."""
    return Tensor(view.data_ptr or None, view.dtype, len(view.sizes), tuple(view.sizes), tuple(view.strides))


def pack_rows(view):
    """That of logsumexp or delta: contiguous by contract; their strides have never been read."""
    rows, columns = view.sizes
    return Tensor(view.data_ptr or None, view.dtype, 2, (rows, columns), (columns, 1))
