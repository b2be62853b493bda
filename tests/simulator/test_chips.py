"""Every RDNA chip takes the images that are for it, or for a chip of the same code, or for its family, and computes with them.

The chips are those of AOTRITON_SIM_DEVICES, device after device.
"""

import json
import os

import pytest

from tests.kernels import reference
from tests.simulator import simulated_gpu
from tests.simulator.problem import ARCHS, Problem

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
