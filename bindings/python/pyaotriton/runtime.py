"""Streams, errors, and device memory by HIP itself."""

import ctypes
import enum
import functools
import pathlib
import threading

from aotriton.library import load


class hipError_t(enum.IntEnum):  # noqa: N801, its name in C
    """HIP's error codes; a number that is none of them is still one."""

    hipSuccess = 0
    hipErrorInvalidValue = 1
    hipErrorOutOfMemory = 2
    hipErrorMemoryAllocation = 2
    hipErrorNotInitialized = 3
    hipErrorInitializationError = 3
    hipErrorDeinitialized = 4
    hipErrorProfilerDisabled = 5
    hipErrorProfilerNotInitialized = 6
    hipErrorProfilerAlreadyStarted = 7
    hipErrorProfilerAlreadyStopped = 8
    hipErrorInvalidConfiguration = 9
    hipErrorInvalidPitchValue = 12
    hipErrorInvalidSymbol = 13
    hipErrorInvalidDevicePointer = 17
    hipErrorInvalidMemcpyDirection = 21
    hipErrorInsufficientDriver = 35
    hipErrorMissingConfiguration = 52
    hipErrorPriorLaunchFailure = 53
    hipErrorInvalidDeviceFunction = 98
    hipErrorNoDevice = 100
    hipErrorInvalidDevice = 101
    hipErrorInvalidImage = 200
    hipErrorInvalidContext = 201
    hipErrorContextAlreadyCurrent = 202
    hipErrorMapFailed = 205
    hipErrorMapBufferObjectFailed = 205
    hipErrorUnmapFailed = 206
    hipErrorArrayIsMapped = 207
    hipErrorAlreadyMapped = 208
    hipErrorNoBinaryForGpu = 209
    hipErrorAlreadyAcquired = 210
    hipErrorNotMapped = 211
    hipErrorNotMappedAsArray = 212
    hipErrorNotMappedAsPointer = 213
    hipErrorECCNotCorrectable = 214
    hipErrorUnsupportedLimit = 215
    hipErrorContextAlreadyInUse = 216
    hipErrorPeerAccessUnsupported = 217
    hipErrorInvalidKernelFile = 218
    hipErrorInvalidGraphicsContext = 219
    hipErrorInvalidSource = 300
    hipErrorFileNotFound = 301
    hipErrorSharedObjectSymbolNotFound = 302
    hipErrorSharedObjectInitFailed = 303
    hipErrorOperatingSystem = 304
    hipErrorInvalidHandle = 400
    hipErrorInvalidResourceHandle = 400
    hipErrorIllegalState = 401
    hipErrorNotFound = 500
    hipErrorNotReady = 600
    hipErrorIllegalAddress = 700
    hipErrorLaunchOutOfResources = 701
    hipErrorLaunchTimeOut = 702
    hipErrorPeerAccessAlreadyEnabled = 704
    hipErrorPeerAccessNotEnabled = 705
    hipErrorSetOnActiveProcess = 708
    hipErrorContextIsDestroyed = 709
    hipErrorAssert = 710
    hipErrorHostMemoryAlreadyRegistered = 712
    hipErrorHostMemoryNotRegistered = 713
    hipErrorLaunchFailure = 719
    hipErrorCooperativeLaunchTooLarge = 720
    hipErrorNotSupported = 801
    hipErrorStreamCaptureUnsupported = 900
    hipErrorStreamCaptureInvalidated = 901
    hipErrorStreamCaptureMerge = 902
    hipErrorStreamCaptureUnmatched = 903
    hipErrorStreamCaptureUnjoined = 904
    hipErrorStreamCaptureIsolation = 905
    hipErrorStreamCaptureImplicit = 906
    hipErrorCapturedEvent = 907
    hipErrorStreamCaptureWrongThread = 908
    hipErrorGraphExecUpdateFailure = 910
    hipErrorInvalidChannelDescriptor = 911
    hipErrorInvalidTexture = 912
    hipErrorUnknown = 999
    hipErrorRuntimeMemory = 1052
    hipErrorRuntimeOther = 1053

    def __str__(self):
        return f"hipError_t.{self.name}"

    @classmethod
    def _missing_(cls, value):
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_, member._value_ = f"hipError{value}", value
        return member


class Stream:
    """A stream of the GPU runtime. Without arguments: the default stream.

    Args:
      handle: an int (hipStream_t, CUstream), or an object with `cuda_stream`, a torch stream.
    """

    def __init__(self, handle=0):
        self.handle = int(getattr(handle, "cuda_stream", handle) or 0)


_last = threading.local()


def report(status, text=None):
    """The status as hipError_t, after keeping the text that belongs to it. None: the library's."""
    if status and text is None:
        text = load().aotriton_last_error().decode(errors="replace")
    _last.text = text if status else ""
    return hipError_t(status)


def last_error():
    """Why the last call of this thread was refused; "" if it was not."""
    return getattr(_last, "text", "")


def get_name_suffix():
    """What sets this library apart from another AOTriton in the process, such as PyTorch's.

    Upstream's answer is the suffix of its C++ namespace. Here nothing can clash: the library is
    loaded privately and called through its C ABI.
    """
    return "_c"


_HIP_NAMES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so")


def _loaded_hip():
    """The libamdhip64 that the process has already, by whatever name; torch brings its own."""
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[2]
        if path.rpartition("/")[2].startswith("libamdhip64"):
            return ("/" + path,)
    return ()


@functools.cache
def _hip():
    problems = []
    for name in (*_loaded_hip(), *_HIP_NAMES):
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            problems.append(str(error))
            continue
        address, size = ctypes.c_void_p, ctypes.c_size_t
        for function, arguments in {
            "hipMalloc": [ctypes.POINTER(address), size], "hipFree": [address],
            "hipMemcpy": [address, address, size, ctypes.c_int], "hipMemset": [address, ctypes.c_int, size],
            "hipDeviceSynchronize": [], "hipGetLastError": [],
        }.items():
            getattr(library, function).argtypes = arguments
        return library
    raise OSError("HIP's runtime is not here: " + "; ".join(problems))


def hipDeviceSynchronize():  # noqa: N802, its name in C
    return hipError_t(_hip().hipDeviceSynchronize())


def hipGetLastError():  # noqa: N802, its name in C
    return hipError_t(_hip().hipGetLastError())


class HipMemory:
    """A piece of device memory of the current device; it is freed with the object."""

    _HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2

    def __init__(self):
        self._address, self._size, self._state = ctypes.c_void_p(), 0, hipError_t.hipSuccess

    def alloc(self, size):
        """Takes new memory in place of what there is."""
        self.free()
        self._state = hipError_t(_hip().hipMalloc(ctypes.byref(self._address), size))
        self._size = 0 if self._state else size

    def free(self):
        address, self._address, self._size = self._address, ctypes.c_void_p(), 0
        self._state = hipError_t(_hip().hipFree(address)) if address else hipError_t.hipSuccess

    def get_pointer(self):
        return self._address.value or 0

    def last_state(self):
        """What HIP answered last."""
        return self._state

    def load_from_host(self, ptr, size):
        self._copy(self._address, ptr, size, self._HOST_TO_DEVICE)

    def store_to_host(self, ptr, size):
        self._copy(ptr, self._address, size, self._DEVICE_TO_HOST)

    def zero_memory(self):
        self._state = hipError_t(_hip().hipMemset(self._address, 0, self._size))

    def _copy(self, to, source, size, direction):
        if size > self._size:
            self._state = hipError_t.hipErrorInvalidValue
        else:
            self._state = hipError_t(_hip().hipMemcpy(to, source, size, direction))

    def __del__(self):
        if self._address:
            self.free()
