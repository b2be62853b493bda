"""The persistent schedule: the bits of the plain one, and its counter is 0 again after every call."""

import itertools
import math

import torch

from tests.gpu import calls, lengths
from tests.gpu.attention_case import Case
from tests.gpu.family_cases import HEAD_DIMS
from tests.gpu.forward_cases import WINDOWS, short
from tests.gpu.placing import DEVICE, Placed

SEQLENS = [(1063, 1063), (143, 337), (337, 143), (1, 127), (4097, 2048)]


def _agrees(case):
    counter = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    case.forward()
    plain = case.out.bits(), case.lse.bits()
    for _ in range(3):
        out, lse = case.run_forward(persistent_counter=counter)
        assert counter.item() == 0, f"the counter is {counter.item()}"
        assert torch.equal(out.bits(), plain[0]) and torch.equal(lse.bits(), plain[1]), "not the bits of the plain schedule"


def graph():
    """Through v3, two calls of one graph take turns on one counter, in every replay."""
    case = Case((4, 16, 4, 1063, 1063, 64, 64), torch.bfloat16, window=WINDOWS["causal_bottom_right"], way="v3", fwd_backend="triton")
    case.forward()
    outputs = [(Placed(case.shapes["out"], case.dtype), Placed(case.lse_shape(), torch.float32)) for _ in range(2)]
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for out, lse in outputs:
            calls.attn_fwd("v3", case.q.view, case.k.view, case.v.view, out=out.view, logsumexp=lse.view,
                           persistent_counter=case.counter, backend="triton", **case.options)
    for _ in range(3):
        for one in itertools.chain(*outputs):
            one.view.fill_(math.nan)
        captured.replay()
        torch.cuda.synchronize()
        assert case.counter.item() == 0, f"the counter is {case.counter.item()}"
        for out, lse in outputs:
            assert torch.equal(out.bits(), case.out.bits()) and torch.equal(lse.bits(), case.lse.bits())


def tests():
    def test_of(name, shape, dtype, **options):
        return f"persistent/{name}", lambda: _agrees(Case(shape, dtype, fwd_backend="triton", **options))

    windows = [name for name, window in WINDOWS.items() if window is not None]
    found = [("persistent/graph", graph)]
    for i, (d, dtype) in enumerate(itertools.product(HEAD_DIMS, (torch.float16, torch.bfloat16))):
        window, (sq, sk) = windows[i % len(windows)], SEQLENS[i % len(SEQLENS)]
        found.append(test_of(f"{short(dtype)}-d{d}-{window}-s{sq}/{sk}", (2, 8, 2, sq, sk, d, d), dtype, window=WINDOWS[window]))
    # Sequences of which some are empty: most tiles of the grid have no rows.
    for kind in ("compact", "padded", "strided"):
        rows = lengths.make(kind, [700, 0, 1, 65, 0, 3000]), lengths.make(kind, [700, 20, 0, 130, 0, 1000]), kind
        found.append(test_of(kind, (6, 4, 4, 0, 0, 64, 64), torch.bfloat16, window=WINDOWS["causal_bottom_right"], varlen=rows))
    # More tiles than run at once, many times over.
    found.append(test_of("many_tiles", (8, 16, 16, 2048, 2048, 64, 64), torch.bfloat16, is_causal=True))
    # What it does not serve takes the plain schedule, and leaves the counter alone.
    for name, options in {"bias": {"bias": True}, "dropout": {"dropout_p": 0.3}, "odd": {"layouts": {"q": "odd"}}}.items():
        found.append(test_of(f"not_with_{name}", (1, 2, 2, 143, 143, 64, 64), torch.float16, is_causal=True, **options))
    return found
