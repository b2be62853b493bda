"""Attention by its plain formula, and the error that the plain formula itself makes.

Torch only and device independent: the CPU tests and the GPU driver share it.
Tensors are (batch, head, seqlen, head_dim), whatever their strides.
"""

import math

import torch

TOP_LEFT_ALIGNED = -2147483647
BOTTOM_RIGHT_ALIGNED = -2147483646


def keep_mask(seqlen_q, seqlen_k, window=None, device="cpu"):
    """[seqlen_q, seqlen_k] bool: m - left <= n <= m + right. window None keeps all."""
    m = torch.arange(seqlen_q, device=device)[:, None]
    n = torch.arange(seqlen_k, device=device)[None, :]
    if window is None:
        return torch.ones(seqlen_q, seqlen_k, dtype=torch.bool, device=device)
    left, right = window
    if left in (TOP_LEFT_ALIGNED, BOTTOM_RIGHT_ALIGNED):
        left = seqlen_q
    if right == TOP_LEFT_ALIGNED:
        right = 0
    elif right == BOTTOM_RIGHT_ALIGNED:
        right = seqlen_k - seqlen_q
    return (n >= m - left) & (n <= m + right)


def attention(q, k, v, sm_scale, window=None, dtype=torch.float64, order=None):
    """Out in dtype and the natural logsumexp; every step is computed in dtype.

    A row that keeps no key has Out 0 and logsumexp +inf. order: a permutation of the keys,
    which changes nothing but the rounding.
    """
    group = q.shape[1] // k.shape[1]
    keep = keep_mask(q.shape[2], k.shape[2], window, q.device)
    if order is not None:
        k, v, keep = k[:, :, order], v[:, :, order], keep[:, order]
    q = q.to(dtype)
    k = k.to(dtype).repeat_interleave(group, dim=1)
    v = v.to(dtype).repeat_interleave(group, dim=1)
    scores = torch.matmul(q, k.transpose(2, 3)) * sm_scale
    scores = scores.masked_fill(~keep, -math.inf)
    empty = ~keep.any(dim=1)[:, None]
    p = torch.softmax(scores, dim=-1).masked_fill(empty, 0)
    out = torch.matmul(p, v)
    lse = torch.logsumexp(scores, dim=-1).masked_fill(empty[:, 0], math.inf)
    return out, lse


def largest(difference):
    """The largest absolute value; 0 if there is none."""
    return difference.abs().max().item() if difference.numel() else 0.0


def error(got, want):
    """Largest absolute error; NaN if there is one."""
    return largest(got.double() - want)


def floor(q, k, v, sm_scale, window=None, measure=largest):
    """What the plain formula errs in the precision of its inputs, by `measure`.

    The worst of a few orders of the keys, since the order of a sum is no part of the formula
    and one order is a matter of luck; and at least half a unit in the last place of the
    result, which storing it costs.
    """
    want, _ = attention(q, k, v, sm_scale, window)
    keys = torch.arange(k.shape[2], device=q.device)
    shuffled = torch.randperm(k.shape[2], generator=torch.Generator().manual_seed(0)).to(q.device)
    errors = [measure(torch.finfo(q.dtype).eps / 2 * want)]
    for order in (keys, keys.flip(0), shuffled):
        out, _ = attention(q, k, v, sm_scale, window, dtype=q.dtype, order=order)
        errors.append(measure(out.double() - want))
    return max(errors)


def tolerance(q, k, v, sm_scale, window=None, factor=2.0):
    """The largest error allowed of Out and of LSE: factor times the floor."""
    _, want_lse = attention(q, k, v, sm_scale, window)
    # LSE is fp32 for every input type.
    _, lse = attention(q, k, v, sm_scale, window, dtype=torch.float32)
    finite = want_lse.isfinite()
    # logsumexp adds to the scores, whose rounding scales with |q| |k| before any cancels.
    largest_score = abs(sm_scale) * (q.double().norm(dim=-1).max() * k.double().norm(dim=-1).max()).item() if k.numel() else 0.0
    eps = torch.finfo(torch.float32).eps
    floor_lse = max(error(lse[finite], want_lse[finite]), eps * (1.0 + largest(want_lse[finite]) + largest_score))
    return factor * floor(q, k, v, sm_scale, window), factor * floor_lse
