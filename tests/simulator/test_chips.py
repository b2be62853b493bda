"""Every RDNA chip takes the images that are for it, or for a chip of the same code, or for its family, and computes with them."""

import ctypes
import json
import os
import struct
import subprocess
import sys

import pytest
import torch

from tests.gpu.attention_case import Case
from tests.simulator import host_memory, simulated_gpu
from tests.simulator.simulated_gpu import ARCHS
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


@pytest.fixture(params=ARCHS)
def chip(request):
    simulated_gpu.use(request.param)
    yield request.param
    host_memory.release()


def test_the_chips_are_served_in_three_ways():
    assert {name: images_of(name) for name in ARCHS} == {
        "gfx1100": "gfx1100", "gfx1101": "gfx11-generic", "gfx1102": "gfx11-generic", "gfx1103": "gfx11-generic",
        "gfx1150": "gfx11-generic", "gfx1151": "gfx11-generic", "gfx1152": "gfx11-generic", "gfx1153": "gfx11-generic",
        "gfx1200": "gfx1201", "gfx1201": "gfx1201"}


@pytest.mark.parametrize("shape,dtype,options", [
    ((1, 2, 1, 71, 67, 64, 64), torch.float16, {}),
    ((1, 2, 1, 71, 67, 72, 72), torch.bfloat16, {"is_causal": True, "bias": True, "dropout_p": 0.25}),
], ids=["aligned", "any"])
def test_forward(chip, capfd, shape, dtype, options):
    Case(shape, dtype, **options).forward()
    # The library tells what it loads.
    assert f"aotriton.images/amd-{images_of(chip)}/flash/attn_fwd.pack on device {ARCHS.index(chip)}" in capfd.readouterr().err


def test_backward(chip):
    case = Case((1, 2, 1, 71, 67, 64, 64), torch.bfloat16, is_causal=True)
    case.forward()
    case.backward("split")


def load(code):
    module = ctypes.c_void_p()
    status = simulated_gpu.HIP.hipModuleLoadData(ctypes.byref(module), bytes(code))
    if status == 0:
        simulated_gpu.HIP.hipModuleUnload(module)
    return status


def test_a_family_serves_its_chips_only(capfd):
    pack = read_pack("aotriton.images/amd-gfx11-generic/flash/attn_fwd.pack")
    code = bytearray(pack.functionals[0].variants[0].code)
    for arch in ARCHS:
        simulated_gpu.use(arch)
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
