"""One forward call against float64, and what it may not touch."""

import aotriton
import torch

from tests.gpu.placing import Placed
from tests.kernels.reference import attention, floor, keep_mask, largest

LSE_TOLERANCE = 1e-5


def check_forward(q, k, v, *, sm_scale=None, window=None, is_causal=False, out_layout="bhsd",
                  with_lse=True, clean=None):
    """Runs attn_fwd on Placed q, k, v with poisoned outputs and checks everything it promises.

    Args:
      clean: (q, k, v) views for the reference, where the placed ones hold NaN that is masked off.

    Returns:
      (out, lse) Placed.

    Raises:
      AssertionError: says which promise and by how much.
    """
    out = Placed((*q.view.shape[:3], v.view.shape[3]), q.view.dtype, out_layout)
    lse = Placed(q.view.shape[:3], torch.float32)
    inputs_before = [one.bits() for one in (q, k, v)]
    outside_before = [one.bits_outside() for one in (out, lse)]
    aotriton.attn_fwd(
        q.view, k.view, v.view, sm_scale=sm_scale, window=window, is_causal=is_causal,
        out=out.view, logsumexp=lse.view if with_lse else False)
    for name, one, before in zip("qkv", (q, k, v), inputs_before):
        assert torch.equal(one.bits(), before), f"{name} was written"
    for name, one, before in zip(("out", "logsumexp"), (out, lse), outside_before):
        assert torch.equal(one.bits_outside(), before), f"something was written outside {name}"
    if is_causal:
        window = (aotriton.WINDOW_TOP_LEFT, aotriton.WINDOW_TOP_LEFT)
    compare(*(clean or (q.view, k.view, v.view)), out.view, lse.view if with_lse else None, sm_scale, window)
    return out, lse


def compare(q, k, v, out, lse, sm_scale=None, window=None):
    """Checks out and lse (None: not looked at) of one call against float64."""
    if sm_scale is None:
        sm_scale = q.shape[3] ** -0.5
    want, want_lse = attention(q, k, v, sm_scale, window)
    empty = ~keep_mask(q.shape[2], k.shape[2], window, q.device).any(dim=1)
    assert not out.isnan().any(), f"out has {int(out.isnan().sum())} NaN of {out.numel()}"
    assert (out[:, :, empty] == 0).all(), "out is not 0 where a row keeps no key"
    for name, measure in (("largest", largest), ("norm", lambda difference: difference.norm().item())):
        error, allowed = measure(out.double() - want), floor(q, k, v, sm_scale, window, measure)
        assert error <= 2 * allowed, f"out: {name} error {error:.3e} is {error / (allowed or 1e-300):.2f} x the floor {allowed:.3e}"
    if lse is None:
        return
    assert not lse.isnan().any(), f"logsumexp has {int(lse.isnan().sum())} NaN of {lse.numel()}"
    assert (lse[:, :, empty] == float("inf")).all(), "logsumexp is not +inf where a row keeps no key"
    got, want_lse = lse[:, :, ~empty].double(), want_lse[:, :, ~empty]
    error = (got - want_lse).abs() / want_lse.abs().clamp(min=1)
    assert (error <= LSE_TOLERANCE).all(), f"logsumexp is off by {error.max().item():.2e} > {LSE_TOLERANCE:.0e}"

