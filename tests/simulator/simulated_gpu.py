"""The library on simulated GPUs: tensors in their memory, and calls by the Python binding."""

import ctypes
import os
import pathlib

import torch

ARCHS = os.environ["AOTRITON_SIM_DEVICES"].split(",")  # device by device


def _load():
    """The simulator as the process's libamdhip64, before the library looks for one."""
    root = pathlib.Path.cwd()  # of the runfiles
    runtime = os.environ.get("AOTRITON_SIM_RUNTIME", str(root / "simulator/libamdhip64.so"))
    os.environ.setdefault("AOTRITON_LIBRARY", str(next(iter(root.glob("libaotriton_v2.so.*")), "")))
    os.environ.setdefault("AOTRITON_IMAGES_DIR", str(root / "aotriton.images"))
    hip = ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
    hip.aotriton_simulator_last_fault.restype = ctypes.c_char_p
    hip.aotriton_simulator_launches.restype = ctypes.c_char_p
    hip.aotriton_simulator_mutate.restype = ctypes.c_char_p
    hip.hipMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    hip.hipFree.argtypes = hip.hipHostUnregister.argtypes = [ctypes.c_void_p]
    hip.hipHostRegister.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]
    hip.hipMalloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return hip


HIP = _load()


def use(arch):
    """Makes the device of that arch the current one."""
    assert HIP.hipSetDevice(ARCHS.index(arch)) == 0


def fault():
    return HIP.aotriton_simulator_last_fault().decode()


def reached(kernel):
    """How many instructions of the kernel of that name that was launched last were reached."""
    return HIP.aotriton_simulator_reached(kernel.encode())


# What of an instruction is changed: simulator/program.h, Mutation.
MUTATIONS = ("left out", "sources swapped", "immediate", "register")


def mutate(kernel, number, mutation):
    """Changes one instruction of the kernel in its next launches: the instruction before, or None where nothing can change."""
    text = HIP.aotriton_simulator_mutate(kernel.encode(), number, MUTATIONS.index(mutation))
    return text and text.decode()


def restore(kernel):
    HIP.aotriton_simulator_restore(kernel.encode())


def launches():
    """(kernel, wave instructions, seconds) of each launch since it was asked last."""
    lines = HIP.aotriton_simulator_launches().decode().splitlines()
    return [(kernel, int(count), float(seconds)) for kernel, count, seconds in map(str.split, lines)]


class DeviceTensor:
    """A tensor in simulated memory, as the binding reads tensors. Its elements are undefined until set."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tuple(shape), dtype
        self.contiguous = torch.empty(self.shape, dtype=dtype, device="meta")
        self.nbytes = self.contiguous.numel() * self.contiguous.element_size()
        address = ctypes.c_void_p()
        assert HIP.hipMalloc(ctypes.byref(address), max(self.nbytes, 1)) == 0
        self.address = address.value

    def __del__(self):
        if getattr(self, "address", None):
            HIP.hipFree(self.address)

    def data_ptr(self):
        return self.address

    def stride(self):
        return self.contiguous.stride()

    def set(self, tensor):
        tensor = tensor.to(self.dtype).contiguous()
        assert tuple(tensor.shape) == self.shape
        HIP.hipMemcpy(self.address, tensor.data_ptr(), self.nbytes, 1)
        return self

    def get(self):
        tensor = torch.empty(self.shape, dtype=self.dtype)
        HIP.hipMemcpy(tensor.data_ptr(), self.address, self.nbytes, 2)
        return tensor


def on_device(tensor):
    return DeviceTensor(tensor.shape, tensor.dtype).set(tensor)
