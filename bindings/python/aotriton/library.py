"""libaotriton_v2.so: where it is, its functions, its structs (api/c/aotriton/aotriton.h)."""

import ctypes
import functools
import os
import pathlib

LIBRARY_NAME = "libaotriton_v2.so"

# A window bound may be one of these in place of a number: causal, from the top left or the
# bottom right corner. It leaves the left side unbounded and resolves for each sequence.
WINDOW_TOP_LEFT = -2147483647
WINDOW_BOTTOM_RIGHT = -2147483646

VARLEN_TYPES = {None: 0, "compact": 1, "padded": 2, "strided": 3}
FWD_BACKENDS = {None: 0, "triton": 1, "hopper": 2}
BACKENDS = {None: 0, "split": 1, "fused": 2}

# hipErrorInvalidValue: the status of the few refusals that are made on this side of the C ABI.
INVALID_VALUE = 1


class AotritonError(RuntimeError):
    """The library refused a call.

    Attributes:
      status: the hipError_t value that names the refusal (the same numbers on NVIDIA).
    """

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Tensor(ctypes.Structure):
    """aotriton_tensor. `data` is None for "no tensor"."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * 4),
        ("strides", ctypes.c_int64 * 4),
    ]


class AttnFwdArgs(ctypes.Structure):
    """aotriton_attn_fwd_args."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("is_windowed", ctypes.c_int32),
        ("q", Tensor),
        ("k", Tensor),
        ("v", Tensor),
        ("out", Tensor),
        ("logsumexp", Tensor),
        ("sm_scale", ctypes.c_float),
        ("window_left", ctypes.c_int32),
        ("window_right", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("bias", Tensor),
        ("cu_seqlens_q", Tensor),
        ("cu_seqlens_k", Tensor),
        ("seq_starts_q", Tensor),
        ("seq_starts_k", Tensor),
        ("varlen_type", ctypes.c_int32),
        ("max_seqlen_q", ctypes.c_int32),
        ("max_seqlen_k", ctypes.c_int32),
        ("dropout_p", ctypes.c_float),
        ("philox_seed", ctypes.c_void_p),
        ("philox_offset1", ctypes.c_void_p),
        ("philox_offset2", ctypes.c_uint64),
        ("philox_seed_output", ctypes.c_void_p),
        ("philox_offset_output", ctypes.c_void_p),
        ("persistent_counter", ctypes.c_void_p),
        ("backend", ctypes.c_int32),
    ]


class AttnBwdArgs(ctypes.Structure):
    """aotriton_attn_bwd_args."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("is_windowed", ctypes.c_int32),
        ("q", Tensor),
        ("k", Tensor),
        ("v", Tensor),
        ("bias", Tensor),
        ("out", Tensor),
        ("logsumexp", Tensor),
        ("dout", Tensor),
        ("dq", Tensor),
        ("dk", Tensor),
        ("dv", Tensor),
        ("dbias", Tensor),
        ("delta", Tensor),
        ("sm_scale", ctypes.c_float),
        ("window_left", ctypes.c_int32),
        ("window_right", ctypes.c_int32),
        ("backend", ctypes.c_int32),
        ("cu_seqlens_q", Tensor),
        ("cu_seqlens_k", Tensor),
        ("seq_starts_q", Tensor),
        ("seq_starts_k", Tensor),
        ("varlen_type", ctypes.c_int32),
        ("max_seqlen_q", ctypes.c_int32),
        ("max_seqlen_k", ctypes.c_int32),
        ("dropout_p", ctypes.c_float),
        ("philox_seed", ctypes.c_void_p),
        ("philox_offset1", ctypes.c_void_p),
        ("philox_offset2", ctypes.c_uint64),
    ]


def _declare(lib):
    """Types the functions of aotriton.h. AttributeError: the library lacks one."""
    pointer, handle, status = ctypes.POINTER, ctypes.c_void_p, ctypes.c_int32
    signatures = {
        "aotriton_last_error": (ctypes.c_char_p, []),
        "aotriton_version": (ctypes.c_char_p, []),
        "aotriton_gpu_arch": (status, [handle, ctypes.c_char_p, ctypes.c_size_t]),
        "aotriton_gpu_level": (status, [handle, ctypes.c_char_p, ctypes.c_size_t]),
        "aotriton_debug_simulate_encoded_softmax": (
            status, [pointer(Tensor), ctypes.c_float, handle, handle, ctypes.c_uint64, handle]),
        "aotriton_debug_fill_dropout_rng": (status, [pointer(Tensor), ctypes.c_uint64, ctypes.c_uint64, handle]),
        "aotriton_dropout_mask": (
            status, [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_float, *[ctypes.c_int64] * 4, ctypes.c_char_p]),
    }
    for name, args in (("aotriton_attn_fwd", AttnFwdArgs), ("aotriton_attn_bwd", AttnBwdArgs)):
        for goal in ("", "_supported", "_prepare"):
            signatures[name + goal] = status, [pointer(args), handle]
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments


def find_library():
    """Path of the library.

    Raises:
      AotritonError: it is in none of the places; the text lists them.
    """
    chosen = os.environ.get("AOTRITON_LIBRARY")
    if chosen:
        if not os.path.isfile(chosen):
            raise AotritonError(INVALID_VALUE, f"AOTRITON_LIBRARY={chosen}: there is no such file")
        return chosen
    package = pathlib.Path(__file__).resolve().parent
    places = [folder / "lib" / LIBRARY_NAME for folder in (package, *package.parents[:2])]
    for place in places:
        if place.is_file():
            return str(place)
    raise AotritonError(
        INVALID_VALUE,
        f"{LIBRARY_NAME} not found; set AOTRITON_LIBRARY to its path or put it at one of: "
        + ", ".join(map(str, places)),
    )


# Two threads may both load it: dlopen gives both the same library.
@functools.cache
def load():
    """The library as a ctypes.CDLL with typed functions; loaded once.

    Raises:
      AotritonError: not found, or the loader refuses it.
    """
    path = find_library()
    try:
        lib = ctypes.CDLL(path)
        _declare(lib)
    except (OSError, AttributeError) as error:
        raise AotritonError(INVALID_VALUE, f"{path} cannot be used: {error}") from error
    return lib


def check(status):
    """Raises AotritonError, with the library's text, unless `status` is 0."""
    if status:
        text = load().aotriton_last_error().decode(errors="replace")
        raise AotritonError(status, text or f"aotriton returned status {status}")


def version():
    """The library's version, "major.minor.patch"."""
    return load().aotriton_version().decode()


def gpu_arch(stream=None):
    """The arch of a GPU, "gfx942" or "sm_90".

    Args:
      stream: an int (hipStream_t, CUstream) or an object with `cuda_stream`, a torch stream.
        None: the current device's.

    Raises:
      AotritonError: no driver, no GPU, or one that the library does not know.
    """
    return _text_about_gpu(load().aotriton_gpu_arch, stream)


def gpu_level(stream=None):
    """How well the arch of a GPU is supported: "supported", "experimental", "tech_preview" or "compile_only".

    Args and errors are those of gpu_arch().
    """
    return _text_about_gpu(load().aotriton_gpu_level, stream)


def _text_about_gpu(function, stream):
    text = ctypes.create_string_buffer(64)
    check(function(getattr(stream, "cuda_stream", stream), text, len(text)))
    return text.value.decode()
