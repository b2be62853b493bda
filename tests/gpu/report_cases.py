"""Public bug reports as tests (the ids of shared/cases/public_cases.md), and 32-bit limits."""

import itertools
import math

import aotriton
import torch

from tests.gpu import ledger
from tests.gpu.checks import check_forward, compare
from tests.gpu.placing import DEVICE, Placed, random_qkv

BF16 = torch.bfloat16
BOTTOM_RIGHT = (aotriton.WINDOW_BOTTOM_RIGHT,) * 2


def k05_huge_equal_scores():
    """ROCm/aotriton#54: the maximum and the exponent must come from one rounded score."""
    for seqlen in (1, 4):
        for sm_scale in (0.25, None):
            q, k, v = random_qkv(1, 1, 1, seqlen, seqlen, 64, 64, BF16)
            for one in (q, k, v):
                one.view.fill_(133120.0)
            out, lse = check_forward(q, k, v, sm_scale=sm_scale)
            assert lse.view.isfinite().all()


def k11_rows_without_keys():
    """pytorch#103749: bottom-right causal with more queries than keys empties the first rows."""
    for seqlen_q, seqlen_k in ((337, 143), (65, 1), (300, 64)):
        q, k, v = random_qkv(2, 4, 2, seqlen_q, seqlen_k, 64, 64, torch.float16)
        out, lse = check_forward(q, k, v, window=BOTTOM_RIGHT)
        rows = seqlen_q - seqlen_k
        assert (out.view[:, :, :rows] == 0).all() and (lse.view[:, :, :rows] == math.inf).all()
        assert lse.view[:, :, rows:].isfinite().all()


def k12_first_tiles_masked():
    """aiter#5364: the window begins far from key 0, whole tiles before it are masked."""
    q, k, v = random_qkv(1, 2, 2, 512, 1063, 128, 128, BF16)
    check_forward(q, k, v, window=(-400, 500))


def k18_value_dim_differs():
    """aotriton#135: Out follows V's head dim; a given Out of Q's is refused."""
    q, k, v = random_qkv(1, 2, 2, 65, 65, 192, 128, BF16)
    out, _ = aotriton.attn_fwd(q.view, k.view, v.view)
    assert out.shape == (1, 2, 65, 128)
    assert aotriton.supported(q.view, k.view, v.view, out=torch.empty_like(q.view))


def k23_logsumexp_is_natural():
    """aotriton#108: one score 0.25 and fifteen 0."""
    q, k, v = random_qkv(1, 1, 1, 1, 16, 16, 16, torch.float32)
    q.view.zero_()[..., 0] = 1.0
    k.view.zero_()[0, 0, 3, 0] = 0.25
    # Not Out: all its errors, and all those of the floor, hang on how two probabilities happen to round.
    _, lse = aotriton.attn_fwd(q.view, k.view, v.view, sm_scale=1.0)
    ledger.value("K23", lse.item(), 2.79018449783325195)
    assert abs(lse.item() - 2.79018449783325195) < 1e-6, lse.item()


def v05_empty():
    """pytorch#133780: an empty output launches nothing; no keys give 0 and +inf."""
    for b, h, sq, sk in ((0, 10, 16, 16), (2, 3, 0, 16), (0, 1, 0, 0), (2, 3, 16, 0)):
        for is_causal in (False, True):
            q, k, v = random_qkv(b, h, h, sq, sk, 64, 64, BF16)
            out, lse = check_forward(q, k, v, is_causal=is_causal)
            if sk == 0:
                assert (out.view == 0).all() and (lse.view == math.inf).all()


def masked_nan():
    """Keys that no query keeps hold NaN: none of it may reach the result."""
    for dtype in (torch.float16, BF16, torch.float32):
        q, k, v = random_qkv(2, 4, 2, 100, 337, 64, 64, dtype)
        clean = [one.view.clone() for one in (q, k, v)]
        for one in (k, v):
            one.view[:, :, 100:] = math.nan
        check_forward(q, k, v, is_causal=True, clean=clean)


def head_dims_to_512():
    """257 to 512 are right, more is refused with a text that names the size."""
    for d, dtype in itertools.product((257, 384, 511, 512), (torch.float16, BF16, torch.float32)):
        check_forward(*random_qkv(2, 4, 2, 143, 337, d, d, dtype), is_causal=d % 2 == 0)
    q, k, v = random_qkv(1, 1, 1, 65, 65, 513, 513, BF16)
    assert "513" in aotriton.supported(q.view, k.view, v.view)


def many_heads():
    """More heads, and more batches, than a grid's second dimension can count (65535)."""
    for b, h in ((8, 8200), (65600, 1)):
        q, k, v = random_qkv(b, h, h, 9, 9, 16, 16, torch.float16)
        check_forward(q, k, v, is_causal=True)


def _far_apart(odd):
    """K and V rows 2**23 elements apart, Q heads and Out heads 2**31: offsets need 64 bits."""
    sq, sk, d = 130, 300, 64
    row, head = 2**23 + odd, 2**31 + 8 + odd
    big = torch.empty(300 * (row + 8), dtype=BF16, device=DEVICE)  # 5 GB
    out_big = torch.empty(head + sq * d + 128, dtype=BF16, device=DEVICE)  # 4 GB
    k = big.as_strided((1, 1, sk, d), (0, 0, row, 1), 0)
    v = big.as_strided((1, 1, sk, d), (0, 0, row, 1), 2**20)
    q = big.as_strided((1, 2, sq, d), (0, head, d, 1), 2**21)
    out = out_big.as_strided((1, 2, sq, d), (0, head, d, 1), 0)
    for one in (q, k, v):
        one.normal_()
    out.fill_(math.nan)
    _, lse = aotriton.attn_fwd(q, k, v, out=out, is_causal=True)
    compare(q, k, v, out, lse, window=(aotriton.WINDOW_TOP_LEFT,) * 2)


def offsets_past_32_bits_aligned():
    _far_apart(0)


def offsets_past_32_bits_any():
    _far_apart(1)


def packed_qkv_shared_buffer():
    """Q, K and V are slices of one (B, S, 3, H, D) projection, as a model has them."""
    qkv = Placed((2, 143, 3 * 4, 80), BF16)
    qkv.view.normal_()
    q, k, v = qkv.view.view(2, 143, 3, 4, 80).permute(2, 0, 3, 1, 4)
    out, lse = aotriton.attn_fwd(q, k, v, is_causal=True)
    compare(q, k, v, out, lse, window=(aotriton.WINDOW_TOP_LEFT,) * 2)


def _noted(function):
    """The test, whose worst ratio goes to the table of public cases, those of a public report under its id."""
    words = function.__name__.split("_")
    if words[0][1:].isdigit():
        words = [words[0].upper(), "forward", *words[1:]]

    def test():
        with ledger.equals_formula(" ".join(words)):
            function()

    return test


def tests():
    functions = [
        k05_huge_equal_scores, k11_rows_without_keys, k12_first_tiles_masked, k18_value_dim_differs,
        k23_logsumexp_is_natural, v05_empty, masked_nan, head_dims_to_512, many_heads,
        offsets_past_32_bits_aligned, offsets_past_32_bits_any, packed_qkv_shared_buffer,
    ]
    return [(f"report/{one.__name__}", _noted(one)) for one in functions]
