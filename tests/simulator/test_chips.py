"""Every RDNA chip takes the images that are for it, or for a chip of the same code, or for its family, and computes with them.

The chips are those of AOTRITON_SIM_DEVICES, device after device.
"""

import ctypes
import json
import os
import struct
import subprocess
import sys

import pytest

from tests.kernels import reference
from tests.simulator import simulated_gpu
from tests.simulator.problem import ARCHS, Problem
from tools.pack.format import read_pack

NO_DEVICE, INVALID_IMAGE, NO_BINARY_FOR_GPU = 100, 200, 209
E_FLAGS = 48  # where ELF's header has them: the low byte names the machine, the high one the version of a family

with open("platforms/archs.json") as file:
    TABLE = json.load(file)["archs"]


def images_of(chip):
    """Whose images serve it, of those that are here."""
    row = TABLE[chip]
    choices = [chip, row.get("code_of", chip), row["family"] + "-generic"]
    return next(name for name in choices if os.path.isdir(f"aotriton.images/amd-{name}"))


@pytest.fixture(params=range(len(ARCHS)), ids=ARCHS)
def chip(request):
    assert simulated_gpu.HIP.hipSetDevice(request.param) == 0
    return ARCHS[request.param]


def test_the_chips_are_served_in_three_ways():
    assert {name: images_of(name) for name in ARCHS} == {
        "gfx1100": "gfx1100", "gfx1101": "gfx11-generic", "gfx1102": "gfx11-generic", "gfx1103": "gfx11-generic",
        "gfx1150": "gfx11-generic", "gfx1151": "gfx11-generic", "gfx1152": "gfx11-generic", "gfx1153": "gfx11-generic",
        "gfx1200": "gfx1201", "gfx1201": "gfx1201"}


@pytest.mark.parametrize("dtype,head_dim,options", [
    ("fp16", 64, {}),
    ("bf16", 72, {"causal": True, "bias": True, "dropout_p": 0.25}),
], ids=["aligned", "any"])
def test_forward(chip, capfd, dtype, head_dim, options):
    problem = Problem(dtype, head_dim, **options)
    out, logsumexp = problem.forward()
    # AOTRITON_DEBUG_LEVEL makes the library tell what it loads.
    assert f"aotriton.images/amd-{images_of(chip)}/flash/attn_fwd.pack on device {ARCHS.index(chip)}" in capfd.readouterr().err
    args = problem.q, problem.k, problem.v, problem.sm_scale, problem.window
    floor, floor_lse = reference.floors(*args, **problem.inputs)
    want, want_lse = reference.attention(*args, **problem.inputs)
    assert reference.error(out, want) <= 2 * floor and reference.error(logsumexp, want_lse) <= 2 * floor_lse


def test_backward(chip):
    problem = Problem("bf16", 64, causal=True)
    args = problem.q, problem.k, problem.v, problem.do, problem.sm_scale, problem.window
    want, floors = reference.gradients(*args, **problem.inputs), reference.gradient_floors(*args, **problem.inputs)
    for name, x, y, floor in zip(("dq", "dk", "dv"), problem.backward("split"), want, floors):
        assert reference.error(x, y) <= 3 * floor, name


def load(code):
    module = ctypes.c_void_p()
    status = simulated_gpu.HIP.hipModuleLoadData(ctypes.byref(module), bytes(code))
    if status == 0:
        simulated_gpu.HIP.hipModuleUnload(module)
    return status


def test_a_family_serves_its_chips_only(capfd):
    pack = read_pack("aotriton.images/amd-gfx11-generic/flash/attn_fwd.pack")
    code = bytearray(pack.functionals[0].variants[0].code)
    for device, arch in enumerate(ARCHS):
        assert simulated_gpu.HIP.hipSetDevice(device) == 0
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
