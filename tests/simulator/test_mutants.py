"""Real kernels with one instruction left out: what the simulator and the contract find of them.

A mutant whose results have the same bits on this input changed nothing that can be seen. Of the others, those that stop
and those whose results are outside the contract are found.
"""

import os
import random

import aotriton
import pytest
import torch

from tests.kernels import reference
from tests.simulator import simulated_gpu
from tests.simulator.problem import ARCHS, Problem

# AOTRITON_SIM_MUTANTS=1000 for a closer look.
MUTANTS = int(os.environ.get("AOTRITON_SIM_MUTANTS", "60"))
TARGET = 0.85


@pytest.mark.parametrize("device", range(len(ARCHS)), ids=ARCHS)
def test_mutants_are_found(device, capfd):
    assert simulated_gpu.HIP.hipSetDevice(device) == 0
    problem = Problem("bf16", 64, bias=True, dropout_p=0.25, seqlen=(33, 47), heads=(1, 1))
    out, logsumexp = problem.forward()
    want, want_lse = reference.attention(problem.q, problem.k, problem.v, problem.sm_scale, problem.window, **problem.inputs)
    floor, floor_lse = reference.floors(problem.q, problem.k, problem.v, problem.sm_scale, problem.window, **problem.inputs)
    count = simulated_gpu.leave_out(-1)
    chosen = random.Random(device).sample(range(count), min(MUTANTS, count))
    counts = {"stopped": 0, "wrong": 0, "within the contract": 0, "the same": 0}
    try:
        for number in chosen:
            simulated_gpu.leave_out(number)
            try:
                got, got_lse = problem.forward()
            except aotriton.AotritonError:
                counts["stopped"] += 1
                continue
            if torch.equal(got, out) and torch.equal(got_lse, logsumexp):
                counts["the same"] += 1
            elif not (reference.error(got, want) <= 2 * floor and reference.error(got_lse, want_lse) <= 2 * floor_lse):
                counts["wrong"] += 1
            else:
                counts["within the contract"] += 1
    finally:
        simulated_gpu.leave_out(-1)
    capfd.readouterr()  # what the stopped ones said
    found = counts["stopped"] + counts["wrong"]
    visible = found + counts["within the contract"]
    print(f"{ARCHS[device]}: {len(chosen)} of {count} instructions left out: {counts}; found {found / visible:.0%} of the visible")
    assert found >= TARGET * visible
