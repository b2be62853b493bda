"""What the contract allows, in floors; every comparison goes into the ledger."""

import math

from tests.gpu import ledger
from tests.kernels.reference import attention, error, floors

FORWARD, BACKWARD = 2.0, 3.0


def within(op, dtype, output, worst, floor, factor):
    """Checks that the error `worst` is at most factor times the floor."""
    ratio = worst / floor if floor else math.inf if worst else 0.0
    ledger.ratio(op, dtype, output, ratio)
    assert ratio <= factor, f"{output} of {op} errs {ratio:.2f} x the floor; allowed {factor}"


def compare_forward(out, lse, q, k, v, sm_scale, window, **inputs):
    """Out and LSE of sequences, each (batch, ...), against float64."""
    want, want_lse = attention(q, k, v, sm_scale, window, **inputs)
    floor, floor_lse = floors(q, k, v, sm_scale, window, **inputs)
    within("attn_fwd", q.dtype, "out", error(out, want), floor, FORWARD)
    empty = want_lse.isinf()
    assert (lse[empty] == math.inf).all() and (out[empty] == 0).all()
    within("attn_fwd", q.dtype, "lse", error(lse[~empty], want_lse[~empty]), floor_lse, FORWARD)
