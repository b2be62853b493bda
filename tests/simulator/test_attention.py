"""Real packs through the library's API on simulated GPUs, against float64 by the contract of tests/kernels/reference.py.

The archs are those of AOTRITON_SIM_DEVICES, device after device.
"""

import time

import aotriton
import pytest
import torch

from tests.kernels import reference
from tests.simulator import simulated_gpu
from tests.simulator.problem import ARCHS, OFFSET, SEED, Problem
from tests.simulator.simulated_gpu import DeviceTensor, on_device


def check_forward(problem, **more):
    begin, before = time.process_time(), simulated_gpu.wave_instructions()
    out, logsumexp = problem.forward(**more)
    seconds, count = time.process_time() - begin, simulated_gpu.wave_instructions() - before
    want, want_lse = reference.attention(problem.q, problem.k, problem.v, problem.sm_scale, problem.window, **problem.inputs)
    floor, floor_lse = reference.floors(problem.q, problem.k, problem.v, problem.sm_scale, problem.window, **problem.inputs)
    print(f"out {reference.error(out, want) / floor:.2f} lse {reference.error(logsumexp, want_lse) / floor_lse:.2f} of the floor; "
          f"{count} wave instructions, {count / seconds / 1e6:.2f} M/s")
    assert reference.error(out, want) <= 2 * floor
    assert reference.error(logsumexp, want_lse) <= 2 * floor_lse


@pytest.fixture(params=range(len(ARCHS)), ids=ARCHS)
def device(request):
    assert simulated_gpu.HIP.hipSetDevice(request.param) == 0
    return request.param


FORWARDS = [
    ("fp16", 64, {}),
    ("bf16", 128, {"causal": True}),
    ("bf16", 64, {"bias": True, "dropout_p": 0.25}),
    ("bf16", 72, {"causal": True, "bias": True, "dropout_p": 0.25}),
    ("fp32", 24, {"causal": True, "bias": True, "dropout_p": 0.25}),
]


@pytest.mark.parametrize("dtype,head_dim,options", FORWARDS, ids=lambda x: "-".join(x) if isinstance(x, dict) else str(x))
def test_forward(device, dtype, head_dim, options):
    check_forward(Problem(dtype, head_dim, **options))


def test_persistent_forward(device):
    counter = on_device(torch.zeros((), dtype=torch.int32))
    check_forward(Problem("bf16", 64, causal=True, seqlen=(300, 200)), persistent_counter=counter)
    assert counter.get() == 0


def test_dropout_mask(device):
    shape = 2, 3, 37, 50
    mask = DeviceTensor(shape, torch.bfloat16)
    aotriton.debug_simulate_encoded_softmax(mask, dropout_p=0.25, philox_seed=on_device(torch.tensor(SEED)),
                                            philox_offset1=on_device(torch.tensor(OFFSET)))
    keep = torch.frombuffer(aotriton.dropout_mask(SEED, OFFSET, 0.25, *shape), dtype=torch.uint8).reshape(shape)
    assert torch.equal(mask.get(), keep.to(torch.bfloat16) - 0.5)


@pytest.mark.parametrize("backend", ["split", "fused"])
def test_backward(device, backend):
    problem = Problem("bf16", 64, causal=True)
    got = problem.backward(backend)
    want = reference.gradients(problem.q, problem.k, problem.v, problem.do, problem.sm_scale, problem.window, **problem.inputs)
    floors = reference.gradient_floors(problem.q, problem.k, problem.v, problem.do, problem.sm_scale, problem.window, **problem.inputs)
    for name, x, y, floor in zip(("dq", "dk", "dv"), got, want, floors):
        print(name, reference.error(x, y) / floor)
        assert reference.error(x, y) <= 3 * floor, name
