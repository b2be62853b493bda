"""Real packs through the library's API on simulated GPUs, against float64 by the contract of tests/kernels/reference.py.

The archs are those of AOTRITON_SIM_DEVICES, device after device.
"""

import math
import os
import time

import pytest
import torch

from tests.simulator import simulated_gpu
from tests.simulator.simulated_gpu import DeviceTensor, on_device

import aotriton
from tests.kernels import philox, reference

ARCHS = os.environ["AOTRITON_SIM_DEVICES"].split(",")
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
# Small, and no size is a whole number of tiles.
BATCH, SEED, OFFSET = 1, 1234567, 89


class Problem:
    """One attention in host memory; `arguments` are the binding's words for it."""

    def __init__(self, dtype, head_dim, causal=False, bias=False, dropout_p=0.0, heads=(2, 1), seqlen=(70, 90)):
        generator = torch.Generator().manual_seed(head_dim + 2 * causal + 3 * bias)
        random = lambda *shape: torch.randn(shape, generator=generator).to(DTYPES[dtype])
        (head_q, head_k), (seqlen_q, seqlen_k) = heads, seqlen
        self.q = random(BATCH, head_q, seqlen_q, head_dim)
        self.k, self.v = (random(BATCH, head_k, seqlen_k, head_dim) for _ in range(2))
        self.do = random(BATCH, head_q, seqlen_q, head_dim)
        self.sm_scale = 1 / math.sqrt(head_dim)
        self.inputs = {}
        self.arguments = {"sm_scale": self.sm_scale, "is_causal": causal}
        self.window = (seqlen_q, 0) if causal else None
        if bias:
            self.inputs["bias"] = random(BATCH, head_q, seqlen_q, seqlen_k)
            self.arguments["bias"] = on_device(self.inputs["bias"])
        if dropout_p:
            keep = aotriton.dropout_mask(SEED, OFFSET, dropout_p, BATCH, head_q, seqlen_q, seqlen_k)
            self.inputs |= {"keep": torch.frombuffer(keep, dtype=torch.uint8).reshape(BATCH, head_q, seqlen_q, seqlen_k).bool(),
                            "dropout_p": dropout_p}
            self.arguments |= {"dropout_p": dropout_p, "philox_seed": on_device(torch.tensor(SEED)),
                               "philox_offset1": on_device(torch.tensor(OFFSET))}

    def forward(self, **more):
        out = DeviceTensor(self.q.shape, self.q.dtype)
        logsumexp = DeviceTensor(self.q.shape[:3], torch.float32)
        aotriton.attn_fwd(on_device(self.q), on_device(self.k), on_device(self.v), out=out, logsumexp=logsumexp,
                          **more, **self.arguments)
        return out.get(), logsumexp.get()

    def backward(self, backend):
        out, logsumexp = reference.attention(self.q, self.k, self.v, self.sm_scale, self.window, **self.inputs)
        device = [on_device(x) for x in (self.do, self.q, self.k, self.v, out.to(self.q.dtype), logsumexp.float())]
        results = {name: DeviceTensor(x.shape, x.dtype) for name, x in (("dq", self.q), ("dk", self.k), ("dv", self.v))}
        if backend == "split":
            results["delta"] = DeviceTensor(logsumexp.shape, torch.float32)
        aotriton.attn_bwd(*device, backend=backend, **results, **self.arguments)
        return [results[name].get() for name in ("dq", "dk", "dv")]


def check_forward(problem, record_property, **more):
    begin, before = time.time(), simulated_gpu.wave_instructions()
    out, logsumexp = problem.forward(**more)
    seconds, count = time.time() - begin, simulated_gpu.wave_instructions() - before
    want, want_lse = reference.attention(problem.q, problem.k, problem.v, problem.sm_scale, problem.window, **problem.inputs)
    floor, floor_lse = reference.floors(problem.q, problem.k, problem.v, problem.sm_scale, problem.window, **problem.inputs)
    record_property("errors", f"{reference.error(out, want) / floor:.2f} {reference.error(logsumexp, want_lse) / floor_lse:.2f}")
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
def test_forward(device, dtype, head_dim, options, record_property):
    check_forward(Problem(dtype, head_dim, **options), record_property)


@pytest.mark.parametrize("backend", ["split", "fused"])
def test_backward(device, backend, record_property):
    problem = Problem("bf16", 64, causal=True)
    got = problem.backward(backend)
    want = reference.gradients(problem.q, problem.k, problem.v, problem.do, problem.sm_scale, problem.window, **problem.inputs)
    floors = reference.gradient_floors(problem.q, problem.k, problem.v, problem.do, problem.sm_scale, problem.window, **problem.inputs)
    for name, x, y, floor in zip(("dq", "dk", "dv"), got, want, floors):
        print(name, reference.error(x, y) / floor)
        assert reference.error(x, y) <= 3 * floor, name
