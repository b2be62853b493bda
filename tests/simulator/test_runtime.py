"""The runtime of simulated GPUs by itself."""

import ctypes
import pathlib

import pytest
import torch

import aotriton
from tests.simulator import simulated_gpu
from tests.simulator.simulated_gpu import ARCHS, HIP, DeviceTensor, on_device
from tools.pack import format as pack_format

IMAGES = pathlib.Path.cwd() / "aotriton.images"
NO_BINARY_FOR_GPU = 209


def code_of(arch):
    return pack_format.read_pack(str(IMAGES / f"amd-{arch}/flash/attn_fwd.pack")).functionals[0].variants[0].code


def test_a_device_takes_code_of_its_arch_only():
    module = ctypes.c_void_p()
    for device, arch in enumerate(ARCHS):
        assert HIP.hipSetDevice(device) == 0
        assert HIP.hipModuleLoadData(ctypes.byref(module), code_of(arch)) == 0
        assert HIP.hipModuleUnload(module) == 0
        assert HIP.hipModuleLoadData(ctypes.byref(module), code_of(ARCHS[device - 1])) == NO_BINARY_FOR_GPU
    assert HIP.hipSetDevice(len(ARCHS)) != 0


@pytest.mark.parametrize("arch", ARCHS)
def test_a_launch_that_faults_says_so(arch):
    simulated_gpu.use(arch)
    shape = 1, 2, 90, 64
    q, k, v = (torch.randn(shape, dtype=torch.float16) for _ in range(3))
    on_gpu, out = [on_device(q), on_device(k)], DeviceTensor(shape, torch.float16)
    with pytest.raises(aotriton.AotritonError, match="hipErrorLaunchFailure"):
        aotriton.attn_fwd(*on_gpu, DeviceTensor(shape, torch.float16), out=out, logsumexp=False)
    assert "undefined value as what a store writes" in simulated_gpu.fault()
    # Half as long as it says.
    short = on_device(v[:, :, :45].contiguous())
    short.shape, short.contiguous = shape, v
    with pytest.raises(aotriton.AotritonError, match="hipErrorLaunchFailure"):
        aotriton.attn_fwd(*on_gpu, short, out=out, logsumexp=False)
    assert f"of an allocation of {2 * 45 * 64 * 2} bytes" in simulated_gpu.fault()
    # The next one runs.
    aotriton.attn_fwd(*on_gpu, on_device(v), out=out, logsumexp=False)
