"""What the binding reads from a tensor, and the few things it asks torch for.

A tensor is any object with data_ptr(), shape, stride() (in elements) and dtype. `device`
is looked at when it is there.
"""

import contextlib
import math
import sys

from aotriton.library import INVALID_VALUE, AotritonError, Tensor

# AOTRITON_* in aotriton.h, by the last word of str(dtype).
_DTYPES = {"float32": 1, "float16": 2, "bfloat16": 3, "int32": 12}

# An empty tensor of torch has a null data_ptr(), which the C ABI reads as "no tensor". This
# address stands in; nothing of an empty tensor is ever read.
_EMPTY = 4096


def pack(name, tensor):
    """The aotriton_tensor of `tensor`; None gives "no tensor".

    Raises:
      AotritonError: what the struct cannot say: a dtype that aotriton has no number for, rank
        above 4, memory that no GPU can read.
    """
    if tensor is None:
        return Tensor()
    dtype = _DTYPES.get(str(tensor.dtype).rpartition(".")[2])
    if dtype is None:
        raise AotritonError(
            INVALID_VALUE, f"{name} has dtype {tensor.dtype}; accepted: " + ", ".join(sorted(_DTYPES)))
    shape = tuple(tensor.shape)
    if len(shape) > 4:
        raise AotritonError(INVALID_VALUE, f"{name} has {len(shape)} dimensions {shape}; accepted: at most 4")
    _check_device(name, tensor)
    data = tensor.data_ptr() or (_EMPTY if 0 in shape else None)
    return Tensor(data, dtype, len(shape), shape, tuple(tensor.stride()))


def pack_scalar(name, scalar, device):
    """(address, owner) of a 64-bit number in device memory, for a parameter that is only a pointer.

    Args:
      scalar: a tensor of one int64 or uint64; an int, which torch puts on `device`; or None.
      owner: keep it while the address is in use.

    Raises:
      AotritonError: what the pointer cannot say: another dtype, more than one number.
    """
    if scalar is None:
        return None, None
    if isinstance(scalar, int):
        import torch

        # A fill, not a copy from the host: it can be captured in a graph.
        scalar = torch.full((), as_int64(scalar), dtype=torch.int64, device=device)
    kind = str(scalar.dtype).rpartition(".")[2]
    if kind not in ("int64", "uint64") or math.prod(scalar.shape) != 1:
        raise AotritonError(
            INVALID_VALUE, f"{name} is {kind} {tuple(scalar.shape)}; accepted: an int, or a tensor of one int64")
    _check_device(name, scalar)
    return scalar.data_ptr(), scalar


def pack_counter(name, counter):
    """The address of a tensor of one int32, or None."""
    if counter is None:
        return None
    kind = str(counter.dtype).rpartition(".")[2]
    if kind != "int32" or math.prod(counter.shape) != 1:
        raise AotritonError(INVALID_VALUE, f"{name} is {kind} {tuple(counter.shape)}; accepted: a tensor of one int32")
    _check_device(name, counter)
    return counter.data_ptr()


def as_int64(number):
    """The int64 that has the bits of `number` modulo 2**64."""
    number %= 2**64
    return number - 2**64 if number >= 2**63 else number


def _check_device(name, tensor):
    device = getattr(tensor, "device", None)
    if device is not None and getattr(device, "type", "cuda") != "cuda":
        raise AotritonError(INVALID_VALUE, f"{name} is on device {device}; accepted: a GPU")


def same_device(**tensors):
    """The one device of `tensors` (those that are not None), or None if they tell none.

    Raises:
      AotritonError: two devices.
    """
    found = None
    for name, tensor in tensors.items():
        device = getattr(tensor, "device", None)
        if device is None:
            continue
        if found is None:
            found = name, device
        elif device != found[1]:
            raise AotritonError(
                INVALID_VALUE, f"{name} is on device {device} and {found[0]} on {found[1]}; accepted: one device")
    return found and found[1]


def empty(shape, like, dtype=None):
    """A new contiguous torch tensor on the device of `like`; dtype None: that of `like`."""
    import torch

    return torch.empty(shape, dtype=getattr(torch, dtype) if dtype else like.dtype, device=like.device)


def stream_handle(stream, device):
    """The stream as an int. None: torch's current stream of `device` if torch is loaded, else 0."""
    if stream is None:
        torch = sys.modules.get("torch")
        if torch is None or device is None:
            return 0
        stream = torch.cuda.current_stream(device)
    return getattr(stream, "cuda_stream", stream)


def on_device(device, handle):
    """A context in which stream `handle` means a stream of `device`.

    Handle 0, the default stream, belongs to whichever device is current.
    """
    torch = sys.modules.get("torch")
    if handle or device is None or torch is None or torch.cuda.current_device() == device.index:
        return contextlib.nullcontext()
    return torch.cuda.device(device)
