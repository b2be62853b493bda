"""attn_fwd in Triton's interpreter against the plain formula in float64."""

import math

import pytest
import torch

from kernels.flash.attn_fwd import attn_fwd
from tests.kernels import interpreter_fixes
from tests.kernels.reference import (
    BOTTOM_RIGHT_ALIGNED,
    TOP_LEFT_ALIGNED,
    attention,
    error,
    tolerance,
)

interpreter_fixes.install()

HEAD_DIMS = [16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256]
FP16, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
CAUSAL_TL = (TOP_LEFT_ALIGNED, TOP_LEFT_ALIGNED)
CAUSAL_BR = (BOTTOM_RIGHT_ALIGNED, BOTTOM_RIGHT_ALIGNED)
INT_MAX = 2**31 - 1


class Guarded:
    """A (batch, head, seqlen, head_dim) view in a larger buffer of NaN.

    bhsd, bshd: how its dimensions lie. odd: bshd, from an odd address, with a gap of an
    odd number of elements after every row.
    """

    def __init__(self, shape, dtype, layout="bhsd"):
        b, h, s, d = shape
        gap = 3 if layout == "odd" else 16
        sizes = (b, h, s + 2, d + gap) if layout == "bhsd" else (b, s + 2, h, d + gap)
        self.buffer = torch.full((math.prod(sizes) + 64,), math.nan, dtype=dtype)
        start = 33 if layout == "odd" else 32
        whole = self.buffer[start:start + math.prod(sizes)].view(sizes)
        if layout != "bhsd":
            whole = whole.transpose(1, 2)
        self.view = whole[:, :, 1:1 + s, :d]

    def untouched_around(self):
        self.view.fill_(math.nan)
        return bool(self.buffer.isnan().all())


def normal(shape, dtype, layout, generator):
    guarded = Guarded(shape, dtype, layout)
    guarded.view.copy_(torch.randn(shape, generator=generator))
    return guarded


def run(q, k, v, sm_scale, window=None, layout="bhsd", blocks=(32, 32), store_lse=True, base2=False,
        padded=None):
    """Out and LSE, after checking that nothing but them was written."""
    batch, heads, seqlen_q, d_qk = q.shape
    d_vo, seqlen_k = v.shape[3], k.shape[2]
    head_dim = min(d for d in HEAD_DIMS if d >= max(d_qk, d_vo))
    if padded is None:
        padded = (d_qk, d_vo) != (head_dim, head_dim)
    out = Guarded((batch, heads, seqlen_q, d_vo), q.dtype, layout)
    lse = torch.full((batch * heads * seqlen_q + 16,), math.nan)
    left, right = window or (0, 0)
    grid = -(-seqlen_q // blocks[0]) * heads * batch
    attn_fwd[(grid,)](
        q, k, v, out.view, lse[8:], sm_scale,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.view.stride()[:3],
        heads, k.shape[1], seqlen_q, seqlen_k, d_qk, d_vo, left, right,
        1.0 if base2 else math.log(2), int(store_lse),
        HEAD_DIM=head_dim, WINDOWED=window is not None, PADDED_HEAD=padded,
        BLOCK_M=blocks[0], BLOCK_N=blocks[1],
    )
    result = out.view.clone()
    assert out.untouched_around()
    result_lse = lse[8:-8].view(batch, heads, seqlen_q).clone()
    lse[8:-8] = math.nan
    assert lse.isnan().all()
    return result, result_lse


def check(dtype, d, seqlens, window=None, heads=(2, 2), batch=1, layout="bhsd", sm_scale=None, **kwargs):
    d_qk, d_vo = d if isinstance(d, tuple) else (d, d)
    generator = torch.Generator().manual_seed(1)
    q = normal((batch, heads[0], seqlens[0], d_qk), dtype, layout, generator).view
    k = normal((batch, heads[1], seqlens[1], d_qk), dtype, layout, generator).view
    v = normal((batch, heads[1], seqlens[1], d_vo), dtype, layout, generator).view
    if sm_scale is None:
        sm_scale = d_qk**-0.5
    sm_scale = torch.tensor(sm_scale, dtype=FP32).item()  # what the kernel is given
    want, want_lse = attention(q, k, v, sm_scale, window)
    out_tolerance, lse_tolerance = tolerance(q, k, v, sm_scale, window)
    out, lse = run(q, k, v, sm_scale, window, layout, **kwargs)
    assert error(out, want) <= out_tolerance
    empty = want_lse.isinf()
    assert (lse[empty] == math.inf).all() and (out[empty] == 0).all()
    assert error(lse[~empty], want_lse[~empty]) <= lse_tolerance


@pytest.mark.parametrize("dtype, d, seqlens, window, heads, layout", [
    # Every head dimension, most of them in pieces.
    (FP16, 16, (65, 63), None, (2, 2), "bhsd"),
    (FP32, 32, (63, 65), CAUSAL_TL, (2, 1), "bshd"),
    (BF16, 48, (63, 127), CAUSAL_BR, (4, 2), "bhsd"),
    (FP16, 64, (143, 337), CAUSAL_TL, (1, 1), "bshd"),
    (FP32, 80, (65, 143), (20, 11), (2, 2), "bhsd"),
    (FP16, 96, (127, 65), CAUSAL_BR, (2, 1), "bshd"),
    (BF16, 128, (127, 143), CAUSAL_TL, (2, 1), "bhsd"),
    (FP32, 160, (7, 63), None, (3, 1), "bshd"),
    (FP16, 192, (63, 7), (0, 5), (2, 2), "bhsd"),
    (FP32, 224, (65, 65), CAUSAL_BR, (2, 1), "bhsd"),
    (FP16, 256, (63, 65), None, (2, 2), "bshd"),
    # Head dimensions that fill no tile, V's unlike Q's, rows at odd addresses (K17, K18).
    (FP16, 5, (65, 63), CAUSAL_TL, (2, 2), "odd"),
    (FP32, 1, (65, 143), None, (3, 1), "bhsd"),
    (FP32, 5, (143, 337), None, (2, 2), "bhsd"),
    (FP32, 40, (63, 65), (-3, 30), (4, 2), "odd"),
    (FP16, (72, 40), (65, 127), CAUSAL_BR, (2, 1), "odd"),
    (FP16, (24, 152), (7, 65), None, (2, 2), "odd"),
    (BF16, (120, 8), (63, 63), (15, TOP_LEFT_ALIGNED), (2, 2), "bshd"),
    (FP32, (192, 128), (65, 33), CAUSAL_TL, (2, 2), "bhsd"),
    (FP16, (64, 128), (1, 143), None, (4, 1), "bshd"),
    # Long and short.
    (FP32, 64, (337, 127), CAUSAL_TL, (1, 1), "odd"),
    (FP16, 16, (1, 1), None, (2, 2), "odd"),
    (FP16, 16, (1, 337), CAUSAL_BR, (2, 1), "bhsd"),
    (FP32, 16, (337, 1), CAUSAL_TL, (1, 1), "bhsd"),
], ids=lambda value: str(value).removeprefix("torch."))
def test_axes(dtype, d, seqlens, window, heads, layout):
    # An odd layout keeps no promise of alignment, so it runs the padded kernel.
    padded = True if layout == "odd" else None
    check(dtype, d, seqlens, window, heads, batch=2 if max(seqlens) < 128 else 1, layout=layout, padded=padded)


@pytest.mark.parametrize("blocks", [(16, 16), (16, 64), (64, 16)])
@pytest.mark.parametrize("window", [
    (0, 0),
    (50, 1),
    (-5, 20),  # keys after the query only
    (40, -8),  # keys before the query only
    (-3, -9),  # nothing at all
    (INT_MAX, INT_MAX),
    (-INT_MAX - 1, INT_MAX),  # -2147483648 is no sentinel: nothing is kept
    (INT_MAX, 3),
    (2, INT_MAX),
    (TOP_LEFT_ALIGNED, 4),
    (7, BOTTOM_RIGHT_ALIGNED),
    (BOTTOM_RIGHT_ALIGNED, TOP_LEFT_ALIGNED),
    (TOP_LEFT_ALIGNED, BOTTOM_RIGHT_ALIGNED),
], ids=str)
def test_windows(window, blocks):
    check(FP16, 16, (75, 101), window, heads=(1, 1), blocks=blocks)


# K13: both alignments, each way round, and the shortest sequences.
@pytest.mark.parametrize("window", [CAUSAL_TL, CAUSAL_BR], ids=["top_left", "bottom_right"])
@pytest.mark.parametrize("seqlens", [(40, 90), (90, 40), (64, 64), (1, 70), (70, 1), (1, 1)], ids=str)
def test_causal(seqlens, window):
    check(FP32, 16, seqlens, window, heads=(1, 1))


@pytest.mark.parametrize("sm_scale", [0.0, -0.0, -0.25, 1e-30, 8.0])
@pytest.mark.parametrize("window", [None, CAUSAL_BR], ids=["full", "causal"])
def test_scale(sm_scale, window):
    check(FP32, 32, (65, 50), window, sm_scale=sm_scale)
    check(FP16, 32, (65, 50), window, sm_scale=sm_scale)


# K05: raw scores near 1e12, where a rounding of max * scale alone is worth thousands.
@pytest.mark.parametrize("seqlen", [1, 4])
@pytest.mark.parametrize("sm_scale", [0.25, 0.125])
def test_huge_scores(seqlen, sm_scale):
    x = torch.full((1, 1, seqlen, 64), 133120.0, dtype=BF16)
    out, lse = run(x, x, x, sm_scale)
    assert (out == 133120.0).all()
    want = attention(x, x, x, sm_scale)[1]
    assert error(lse, want) <= 1e-6 * want.max()


# K11: bottom-right causal with more queries than keys leaves the first rows with no key,
# in tiles that are skipped and in tiles that other rows share.
@pytest.mark.parametrize("sm_scale", [0.25, 0.0])
def test_fully_masked_rows(sm_scale):
    q = torch.randn(1, 1, 90, 16)
    k = torch.randn(1, 1, 45, 16)
    out, lse = run(q, k, k, sm_scale, CAUSAL_BR)
    assert (out[:, :, :45] == 0).all() and (lse[:, :, :45] == math.inf).all()
    assert lse[:, :, 45:].isfinite().all()


# K23
@pytest.mark.parametrize("base2", [False, True])
def test_lse_value(base2):
    q = torch.zeros(1, 1, 1, 16)
    k = torch.zeros(1, 1, 16, 16)
    q[..., 0] = k[0, 0, 3, 0] = 1.0
    _, lse = run(q, k, k, 0.25, base2=base2)
    assert lse.item() * (math.log(2) if base2 else 1) == pytest.approx(2.79018449783325195, abs=3e-7)


# V05: no keys. (An empty output is launched by nobody.)
@pytest.mark.parametrize("window", [None, CAUSAL_TL, CAUSAL_BR], ids=str)
def test_no_keys(window):
    q = torch.randn(1, 2, 10, 64).half()
    k = torch.empty(1, 2, 0, 64).half()
    out, lse = run(q, k, k, 0.125, window)
    assert (out == 0).all() and (lse == math.inf).all()


def test_null_lse():
    q = torch.randn(1, 1, 20, 16)
    out, lse = run(q, q, q, 0.25, store_lse=False)
    assert lse.isnan().all() and not out.isnan().any()


# Keys that no row of a tile keeps are not used, even when they hold NaN.
def test_nan_in_unused_keys():
    q = torch.randn(1, 1, 32, 16)
    k = torch.randn(1, 1, 64, 16)
    want, _ = attention(q, k[:, :, :32], k[:, :, :32], 0.25, CAUSAL_TL)
    k[:, :, 32:] = math.nan
    out, _ = run(q, k, k, 0.25, CAUSAL_TL, blocks=(32, 64))
    assert error(out, want) < 1e-6


# An unmasked NaN is not hidden.
def test_nan_propagates():
    q = torch.randn(1, 1, 32, 16)
    k = torch.randn(1, 1, 40, 16)
    k[0, 0, 5] = math.nan
    out, _ = run(q, k, q.new_ones(1, 1, 40, 16), 0.25)
    assert out.isnan().all()
