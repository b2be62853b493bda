"""Every functional of every kernel on each simulated arch that the images are for, through the API, against float64.

    ./bazelw test --config=gate //tests/simulator/...
    ./bazelw run //tests/simulator:table

What is right: tests/gpu/attention_case.py. One test is a problem on all archs, so what is due is computed once.
"""

import aotriton
import pytest
import torch

from tests.gpu import rng_cases
from tests.gpu.placing import Placed
from tests.simulator import functionals, host_memory, simulated_gpu
from tests.simulator.functionals import BUILT, DTYPES, Problem

HELD = {arch: functionals.named(arch) for arch in BUILT}
_SCORES = ("attn_fwd", "bwd_dkdv", "bwd_dq")
SEED, OFFSET = 1234567, 89


def _cost(name):
    """About: the slowest first and then by turns, so that shards are alike."""
    dtype, head_dim, *flags = name.split(".")
    return int(head_dim[1:]) * (8 if dtype == "fp32" else 2 if "any" in flags else 1), name


NAMES = sorted({name.split(".", 1)[1] for held in HELD.values() for name in held if name.split(".")[0] in _SCORES}, key=_cost)


def _due(name):
    """By op, the functionals that a problem may be served by."""
    dtype, head_dim, *flags = name.split(".")
    general = ".".join([dtype, head_dim, "causal", "bias", "dropout", "any"])
    either = [name, general] if name != general else [name]
    layouts = ["", ".any"] if "any" not in flags else [".any"]
    due = {
        "forward": [f"attn_fwd.{one}" for one in either],
        "split": [f"bwd_preprocess.{dtype}.{head_dim}{layout}" for layout in layouts] +
                 [f"{kernel}.{one}" for kernel in ("bwd_dkdv", "bwd_dq") for one in either],
        "fused": [f"bwd_fused.{one}" for one in either],
    }
    if flags == ["causal"]:
        due["persistent"] = [f"attn_fwd_persistent.{dtype}.{head_dim}"]
    return due


def _of_dropout():
    return [f"debug_simulate_encoded_softmax.{dtype}" for dtype in DTYPES] + ["debug_fill_dropout_rng.fp32", "debug_fill_dropout_rng.i32"]


def test_every_functional_has_a_problem():
    asked = {one for name in NAMES for names in _due(name).values() for one in names} | set(_of_dropout())
    assert BUILT and not set().union(*HELD.values()) - asked


@pytest.mark.parametrize("name", NAMES)
def test_functional(name, capfd):
    case, found = Problem(name), []
    for arch in BUILT:
        simulated_gpu.use(arch)
        for op, names in _due(name).items():
            # What the packs were built without is refused, and no matter of this test.
            if not {one.split(".")[0] for one in names} <= {one.split(".")[0] for one in HELD[arch] & set(names)}:
                continue
            launched, wrong = functionals.run(arch, op, case, capfd)
            assert wrong or set(launched) <= set(names)
            found += [wrong] * bool(wrong)
            if wrong and op == "forward":
                break  # the backward needs its results
    assert not found, "\n".join(found)


@pytest.mark.parametrize("arch", BUILT)
def test_dropout_can_be_seen(arch):
    simulated_gpu.use(arch)
    shape = 2, 3, 37, 50
    keep = torch.frombuffer(aotriton.dropout_mask(SEED, OFFSET, 0.25, *shape), dtype=torch.uint8).reshape(shape)
    simulated_gpu.launches()
    try:
        for name, dtype in DTYPES.items():
            if f"debug_simulate_encoded_softmax.{name}" not in HELD[arch]:
                continue
            mask = Placed(shape, dtype)
            aotriton.debug_simulate_encoded_softmax(mask.view, dropout_p=0.25, philox_seed=SEED, philox_offset1=OFFSET)
            assert torch.equal(mask.view, keep.to(dtype) - 0.5)
            functionals.note(arch, f"debug_simulate_encoded_softmax.{name}", "right", counts=simulated_gpu.launches()[0])
        rng_cases.numbers_are_the_hosts()
        for i, counts in enumerate(simulated_gpu.launches()):
            functionals.note(arch, "debug_fill_dropout_rng." + ("fp32", "i32")[i % 2], "right", counts=counts)
    finally:
        host_memory.release()
