"""Scores and what is made of them, the same in forward and backward.

Without a bias a score is in base 2, S = (sm_scale * log2(e)) * Q K^T, and P = 2^(S - m): one
multiplication a score. With a bias (and in GENERAL kernels, which are compiled with one) it is in
natural units, S = sm_scale * Q K^T + bias, and P = 2^((S - m) * log2(e)). There the scores are those of
the plain formula to the bit: fp32 keeps its accuracy at large scores, and a mask of the lowest finite
number of bf16 or fp32 stays finite, which in base 2 it would not.
"""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def score_scale(sm_scale, BIAS: tl.constexpr):
    """What Q K^T is multiplied by."""
    if BIAS:
        return sm_scale
    else:
        return sm_scale * LOG2E


@triton.jit
def load_bias(base, rows, cols, stride_m, stride_n, keep):
    """[rows, cols] of base as fp32; what is not kept reads as 0 and is not touched in memory."""
    ptrs = base + rows.to(tl.int64)[:, None] * stride_m + cols.to(tl.int64)[None, :] * stride_n
    return tl.load(ptrs, mask=keep, other=0.0).to(tl.float32)


@triton.jit
def scores(qk, scale, bias):
    """S, rounded once. bias: fp32 like qk, or None."""
    if bias is None:
        return qk * scale
    else:
        return tl.fma(qk, tl.full(qk.shape, scale, tl.float32), bias)


@triton.jit
def power(difference, BIAS: tl.constexpr):
    """e to the difference of two scores."""
    if BIAS:
        return tl.exp2(difference * LOG2E)
    else:
        return tl.exp2(difference)


@triton.jit
def lse_unit(lse_scale, BIAS: tl.constexpr):
    """The unit of a stored logsumexp in that of scores; lse_scale: attn_fwd.py."""
    if BIAS:
        return lse_scale * LOG2E  # ln(2) in fp32 gives exactly 1
    else:
        return lse_scale


@triton.jit
def lse_of_scores(stored, lse_scale, BIAS: tl.constexpr):
    """A stored logsumexp in the unit of scores."""
    if BIAS:
        return tl.div_rn(stored, lse_unit(lse_scale, BIAS))
    else:
        return stored * tl.div_rn(1.0, lse_scale)


@triton.jit
def logsumexp(m, l, BIAS: tl.constexpr):
    """Of scores with maximum m, in their unit; l is the sum of power(S - m)."""
    if BIAS:
        return m + tl.log(l)
    else:
        return m + tl.log2(l)
