"""The ways to make one call on the same tensors: from Python, and from C++ by the C ABI, v2 and v3.

Those of C++ are libaotriton_cxx_calls.so's (cxx_calls.cc).
"""

import ctypes
import functools
import pathlib

import aotriton
import torch
from aotriton import attention, library
from aotriton.tensors import pack

# v3_lazy: v3, whose backward gets its workspace by callbacks.
WAYS = ("python", "c", "v2", "v3", "v3_lazy")

_NAME = "libaotriton_cxx_calls.so"
_INEXPRESSIBLE = -1


class GpuAnswers(ctypes.Structure):
    """What the functions of aotriton/util.h say, and check_gpu."""

    _fields_ = [
        ("gpu", ctypes.c_uint64),
        ("check_gpu", ctypes.c_int32),
        ("is_experimental", ctypes.c_int32),
        ("is_tech_preview", ctypes.c_int32),
        ("multiprocessors", ctypes.c_int32),
    ]


@functools.cache
def load():
    """The C++ caller as a ctypes.CDLL with typed functions."""
    ours = library.load()
    places = [folder / _NAME for folder in (pathlib.Path(library.find_library()).parent, pathlib.Path(__file__).parent)]
    found = next((place for place in places if place.is_file()), None)
    assert found, f"{_NAME} is at none of: " + ", ".join(map(str, places))
    lib = ctypes.CDLL(str(found))
    # Two copies of the library in one process would prove nothing about this one.
    address = [ctypes.cast(one.aotriton_version, ctypes.c_void_p).value for one in (ours, lib)]
    assert address[0] == address[1], f"{found} calls another copy of the library than {library.find_library()}"
    pointer, handle = ctypes.POINTER, ctypes.c_void_p
    forward = [pointer(library.AttnFwdArgs), pointer(library.Tensor), handle]
    backward = [pointer(library.AttnBwdArgs), handle]
    signatures = {
        "c_attn_fwd": forward, "v2_attn_fwd": forward, "v3_attn_fwd": forward,
        "c_attn_bwd": backward, "v2_attn_bwd": backward, "v3_attn_bwd": backward,
        "v3_attn_bwd_lazy": [*backward, pointer(ctypes.c_int32)],
        "v2_debug_simulate_encoded_softmax":
            [pointer(library.Tensor), ctypes.c_float, handle, handle, ctypes.c_uint64, handle],
    }
    for name, arguments in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = ctypes.c_int32, arguments
    lib.ask_about_gpu.restype, lib.ask_about_gpu.argtypes = None, [handle, pointer(GpuAnswers)]
    return lib


def attn_fwd(way, q, k, v, *, out, logsumexp, encoded_softmax=None, philox_seed_output=None, philox_offset_output=None,
             persistent_counter=None, backend=None, **problem):
    """aotriton.attn_fwd, made in one of WAYS."""
    if way == "python":
        aotriton.attn_fwd(q, k, v, out=out, logsumexp=logsumexp, encoded_softmax=encoded_softmax,
                          philox_seed_output=philox_seed_output, philox_offset_output=philox_offset_output,
                          persistent_counter=persistent_counter, backend=backend, **problem)
        return
    call = attention._Forward(q, k, v, out, logsumexp, philox_seed_output, philox_offset_output, persistent_counter, None,
                              backend, **problem)
    function = getattr(load(), way.removesuffix("_lazy") + "_attn_fwd")
    encoded = pack("encoded_softmax", encoded_softmax)
    call.run(lambda args, stream: _expressed(way, function(args, encoded, stream)))


def attn_bwd(way, do, q, k, v, out, logsumexp, *, backend, dq, dk, dv, dbias=False, delta=None, **problem):
    """aotriton.attn_bwd, made in one of WAYS."""
    if way == "python":
        aotriton.attn_bwd(do, q, k, v, out, logsumexp, backend=backend, dq=dq, dk=dk, dv=dv, dbias=dbias, delta=delta,
                          **problem)
        return
    call = attention._Backward(do, q, k, v, out, logsumexp, backend, dq, dk, dv, dbias, delta, None, **problem)
    if way != "v3_lazy":
        function = getattr(load(), way + "_attn_bwd")
        call.run(lambda args, stream: _expressed(way, function(args, stream)))
        return
    counts = (ctypes.c_int32 * 2)()
    call.run(lambda args, stream: load().v3_attn_bwd_lazy(args, stream, counts))
    # A call that launches nothing needs no workspace.
    due = [0] if backend == "fused" else [1] if dq.numel() and dk.numel() else [0, 1]
    assert counts[0] == counts[1] and counts[0] in due, f"D was acquired {counts[0]} and disposed of {counts[1]} times"


def debug_simulate_encoded_softmax(encoded_softmax, *, dropout_p, philox_seed, philox_offset1, philox_offset2):
    """The same by v2; the numbers are tensors."""
    stream = torch.cuda.current_stream(encoded_softmax.device).cuda_stream
    library.check(load().v2_debug_simulate_encoded_softmax(
        pack("encoded_softmax", encoded_softmax), dropout_p, philox_seed.data_ptr(), philox_offset1.data_ptr(),
        philox_offset2, stream))


def ask_about_gpu(stream):
    """GpuAnswers about the GPU of a torch stream."""
    answers = GpuAnswers()
    load().ask_about_gpu(stream.cuda_stream, answers)
    return answers


def has_counter(way):
    """Whether calls in this way bring a persistent counter: only some do, so that both schedules are checked."""
    return way in ("c", "v2", "v3")


def expresses(way, *, window=None, is_causal=False, varlen=None, backend=None):
    """Whether the API of `way` has words for a call; `varlen` is its kind."""
    causal = (aotriton.WINDOW_TOP_LEFT,) * 2
    return way != "v2" or (
        (is_causal or window in (None, causal)) and varlen in (None, "compact") and not (varlen and backend == "fused"))


def _expressed(way, status):
    assert status != _INEXPRESSIBLE, f"{way} has no words for this call"
    return status
