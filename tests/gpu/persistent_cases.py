"""The persistent schedule: the bits of the plain one, and its counter is 0 again after every call."""

import itertools

import torch

from tests.gpu import lengths
from tests.gpu.attention_case import Case
from tests.gpu.family_cases import HEAD_DIMS
from tests.gpu.forward_cases import WINDOWS, short
from tests.gpu.placing import DEVICE

SEQLENS = [(1063, 1063), (143, 337), (337, 143), (1, 127), (4097, 2048)]


def _agrees(case):
    counter = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    case.forward()
    plain = case.out.bits(), case.lse.bits()
    for _ in range(3):
        out, lse = case.run_forward(persistent_counter=counter)
        assert counter.item() == 0, f"the counter is {counter.item()}"
        assert torch.equal(out.bits(), plain[0]) and torch.equal(lse.bits(), plain[1]), "not the bits of the plain schedule"


def tests():
    def test_of(name, shape, dtype, **options):
        return f"persistent/{name}", lambda: _agrees(Case(shape, dtype, **options))

    windows = [name for name, window in WINDOWS.items() if window is not None]
    found = []
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
