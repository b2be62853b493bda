"""Small attention problems, in host memory and on the current simulated device."""

import math
import os

import aotriton
import torch

from tests.kernels import reference
from tests.simulator.simulated_gpu import DeviceTensor, on_device

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
