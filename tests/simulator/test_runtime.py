"""The runtime of simulated GPUs by itself, and the tool that shows a code object."""

import ctypes
import pathlib
import re
import struct
import subprocess

import pytest
import torch

import aotriton
from tests.simulator import simulated_gpu
from tests.simulator.simulated_gpu import ARCHS, HIP, DeviceTensor, on_device
from tools.pack import format as pack_format

IMAGES = pathlib.Path.cwd() / "aotriton.images"
MATRIX_CLASSES = {"gfx90a": "v_mfma", "gfx942": "v_mfma", "gfx950": "v_mfma", "gfx1100": "v_wmma", "gfx1201": "v_wmma"}
NO_BINARY_FOR_GPU = 209


def code_of(arch):
    return pack_format.read_pack(str(IMAGES / f"amd-{arch}/flash/attn_fwd.pack")).functionals[0].variants[0].code


def show(tmp_path, code):
    path = tmp_path / "kernel.hsaco"
    path.write_bytes(code)
    return subprocess.run(["simulator/run", "--print", str(path)], capture_output=True, text=True)


@pytest.mark.parametrize("arch", ARCHS)
def test_tool_shows_a_code_object(arch, tmp_path):
    done = show(tmp_path, code_of(arch))
    assert done.returncode == 0, done.stderr
    assert f"{arch} attn_fwd, " in done.stdout
    counts = dict(line.split() for line in done.stdout.splitlines() if line.startswith("  "))
    assert int(counts[MATRIX_CLASSES[arch]]) > 0
    assert int(counts["all"]) == sum(int(count) for name, count in counts.items() if name != "all")


def test_tool_says_what_is_wrong(tmp_path):
    code = code_of(ARCHS[0])
    done = show(tmp_path, code[:1000])
    assert done.returncode == 1 and "lie outside its 1000 bytes" in done.stderr
    done = show(tmp_path, b"no ELF file" * 20)
    assert done.returncode == 1 and "no 64-bit ELF file" in done.stderr


def test_a_float_mode_that_flushes_is_refused(tmp_path):
    code = bytearray(code_of(ARCHS[0]))
    size = int(re.search(r"(\d+) bytes of arguments", show(tmp_path, bytes(code)).stdout)[1])
    # The kernel descriptor is aligned to 64 bytes; it has the size of the arguments and, in a word of flags, the mode.
    at = next(i for i in range(0, len(code), 64)
              if struct.unpack_from("<I", code, i + 8) == (size,) and struct.unpack_from("<I", code, i + 48)[0] >> 12 & 0xFF == 0xF0)
    struct.pack_into("<I", code, at + 48, struct.unpack_from("<I", code, at + 48)[0] & ~0x30000)
    done = show(tmp_path, bytes(code))
    assert done.returncode == 1 and "float mode 0xc0 is not modelled" in done.stderr


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
