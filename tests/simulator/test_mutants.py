"""Real kernels with one instruction changed: what the simulator and the contract find of them.

A mutant whose results have the same bits on this input changed nothing that can be seen. Of the others, those that stop
and those whose results are outside the contract are found.
"""

import collections
import os
import random

import aotriton
import pytest
import torch

from tests.simulator import host_memory, simulated_gpu
from tests.simulator.functionals import Problem
from tests.simulator.simulated_gpu import ARCHS, MUTATIONS

MUTANTS = int(os.environ["AOTRITON_SIM_MUTANTS"])
TARGET = 0.85
# Kernel: the functional, whose problem is run, and the op that launches it.
KERNELS = {
    "attn_fwd": ("bf16.d64.bias.dropout", "forward"),
    "bwd_dkdv": ("bf16.d64.causal", "split"),
    "bwd_dq": ("bf16.d64.causal", "split"),
    "bwd_fused": ("bf16.d64.causal", "fused"),
}


class _Run:
    """An op of a problem: its results by name, and whether they keep the contract."""

    def __init__(self, name, op):
        self.case, self.op = Problem(name), op
        self.case.forward()

    def results(self):
        """By name, each in its buffer. Raises AssertionError if something else was written."""
        if self.op == "forward":
            return dict(zip(("out", "lse"), self.case.run_forward()))
        return self.case.run_backward(self.op)

    def is_right(self, results):
        self.case.ratios.clear()
        try:
            self.case.check_forward() if self.op == "forward" else self.case.check_backward(results, self.op)
        except AssertionError:
            return False
        return all(ratio <= (2 if self.op == "forward" else 3) for ratio in self.case.ratios.values())


def _bits(results):
    return {name: one.bits() for name, one in results.items()}


def _become_of(run, due):
    """What becomes of one mutant."""
    try:
        results = run.results()
    except aotriton.AotritonError:
        return "stopped"
    except AssertionError:
        return "wrong"
    if all(torch.equal(bits, due[name]) for name, bits in _bits(results).items()):
        return "the same"
    return "within the contract" if run.is_right(results) else "wrong"


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("arch", ARCHS)
def test_mutants_are_found(arch, kernel, capfd):
    simulated_gpu.use(arch)
    run = _Run(*KERNELS[kernel])
    results = run.results()
    due = _bits(results)
    assert run.is_right(results)
    host_memory.release()
    rng = random.Random(f"{arch} {kernel}")
    reached = simulated_gpu.reached(kernel)
    chosen = set()
    counts = collections.Counter()
    survived = []
    try:
        while len(chosen) < min(MUTANTS, reached):
            mutant = rng.randrange(reached), rng.choice(MUTATIONS)
            text = mutant not in chosen and simulated_gpu.mutate(kernel, *mutant)
            if not text:
                continue
            chosen.add(mutant)
            became = _become_of(run, due)
            counts[became] += 1
            if became == "within the contract":
                survived.append(f"{mutant[1]}: {text}")
            simulated_gpu.restore(kernel)
            host_memory.release()
    finally:
        simulated_gpu.restore(kernel)
    capfd.readouterr()  # what the stopped ones said
    found = counts["stopped"] + counts["wrong"]
    visible = found + counts["within the contract"]
    with capfd.disabled():  # the rate is a result, of tests that pass too
        print(f"\n{arch} {kernel}: {len(chosen)} mutants of {reached} instructions: {dict(counts)}; found {found / visible:.1%} of the visible, "
              f"{found / len(chosen):.0%} of all" + "".join(f"\n    survived, {one}" for one in survived), flush=True)
    assert found >= TARGET * visible
