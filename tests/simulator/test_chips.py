"""Chips that have no code objects of their own run those of their family, or of a chip of the same code."""

import ctypes
import os
import pathlib
import struct
import subprocess
import sys

import pytest

from tests.kernels import reference
from tests.simulator.problem import ARCHS, Problem
from tests.simulator.simulated_gpu import HIP
from tools.pack.format import read_pack

NO_DEVICE, INVALID_IMAGE, NO_BINARY_FOR_GPU = 100, 200, 209
E_FLAGS = 48  # where ELF's header has them: the low byte names the machine, the high one the version of a family


@pytest.mark.parametrize("device", range(len(ARCHS)), ids=ARCHS)
@pytest.mark.parametrize("dtype,head_dim,options", [("fp16", 64, {}), ("bf16", 64, {"bias": True, "dropout_p": 0.25})],
                         ids=["fp16", "bf16-bias-dropout"])
def test_forward(device, dtype, head_dim, options):
    assert HIP.hipSetDevice(device) == 0
    problem = Problem(dtype, head_dim, **options)
    out, logsumexp = problem.forward()
    inputs = problem.q, problem.k, problem.v, problem.sm_scale, problem.window
    want, want_lse = reference.attention(*inputs, **problem.inputs)
    floor, floor_lse = reference.floors(*inputs, **problem.inputs)
    assert reference.error(out, want) <= 2 * floor
    assert reference.error(logsumexp, want_lse) <= 2 * floor_lse


def load(code):
    module = ctypes.c_void_p()
    status = HIP.hipModuleLoadData(ctypes.byref(module), bytes(code))
    if status == 0:
        HIP.hipModuleUnload(module)
    return status


def test_a_family_serves_its_chips_only(capfd):
    pack = read_pack(str(pathlib.Path.cwd() / "aotriton.images/amd-gfx11-generic/flash/attn_fwd.pack"))
    code = bytearray(pack.functionals[0].variants[0].code)
    for device, arch in enumerate(ARCHS):
        assert HIP.hipSetDevice(device) == 0
        assert load(code) == (0 if arch.startswith("gfx11") else NO_BINARY_FOR_GPU)
    (flags,) = struct.unpack_from("<I", code, E_FLAGS)
    assert flags & 0xFF == 0x54 and flags >> 24 == 1
    for wrong, message in [(flags & 0xFFFFFF, "version 0 of a generic target"), (flags ^ 0x54 ^ 0x41, "its ELF flags machine 0x41")]:
        struct.pack_into("<I", code, E_FLAGS, wrong)
        assert load(code) == INVALID_IMAGE
        assert message in capfd.readouterr().err


def test_an_unknown_chip_is_no_device():
    program = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).hipGetDeviceCount(ctypes.byref(ctypes.c_int())))"
    done = subprocess.run([sys.executable, "-c", program, "simulator/libamdhip64.so"], capture_output=True, text=True,
                          env=os.environ | {"AOTRITON_SIM_DEVICES": "gfx1100,gfx1250"})
    assert done.returncode == NO_DEVICE
    assert "AOTRITON_SIM_DEVICES: arch gfx1250 is not modelled; these are: gfx90a gfx942" in done.stderr
