"""The backward kernels in Triton's interpreter against the gradients of the plain formula in float64.

Every case runs both ways: bwd_preprocess, bwd_dkdv and bwd_dq, and bwd_fused.
"""

import math

import pytest
import torch

from tests.kernels.attention_case import COMPACT, PADDED, STRIDED, Case, check_backward, run_backward
from tests.kernels.launch_attn_fwd import INT_MAX, Dropout
from tests.kernels.reference import BOTTOM_RIGHT_ALIGNED, TOP_LEFT_ALIGNED

FP16, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
CAUSAL_TL = (TOP_LEFT_ALIGNED, TOP_LEFT_ALIGNED)
CAUSAL_BR = (BOTTOM_RIGHT_ALIGNED, BOTTOM_RIGHT_ALIGNED)
UNBOUNDED = (INT_MAX, INT_MAX)


@pytest.mark.parametrize("case", [
    # Head dimensions, most of them in pieces; group sizes; ragged lengths.
    Case(FP16, 16, (65, 63), heads=(2, 1), batch=2),
    Case(FP32, 32, (63, 65), CAUSAL_TL, layout="bshd"),
    Case(BF16, 48, (63, 127), CAUSAL_BR, heads=(4, 2)),
    Case(FP16, 64, (127, 65), CAUSAL_TL, layout="bshd", blocks=(16, 64)),
    Case(FP32, 80, (33, 65), (20, 11)),
    Case(BF16, 80, (65, 33), batch=2),
    Case(FP16, 96, (33, 65), CAUSAL_BR, heads=(2, 1), layout="bshd"),
    Case(BF16, 128, (127, 63), CAUSAL_TL, heads=(3, 1), blocks=(32, 32)),
    Case(FP16, 160, (7, 63), heads=(3, 1)),
    Case(BF16, 224, (63, 7), (5, 0)),
    Case(FP16, 256, (33, 65), heads=(1, 1)),
    Case(BF16, 512, (17, 33), CAUSAL_TL, heads=(1, 1), blocks=(16, 16)),
    # Head dimensions that fill no tile, V's unlike Q's, rows at odd addresses.
    Case(FP16, 5, (65, 63), CAUSAL_TL, layout="odd"),
    Case(FP32, 1, (65, 33), heads=(3, 1), layout="odd"),
    Case(BF16, (72, 40), (65, 127), CAUSAL_BR, heads=(2, 1), layout="odd"),
    Case(FP32, (24, 40), (63, 33), (-3, 30), layout="odd"),
    Case(FP16, (40, 120), (7, 65)),
    # Short and long.
    Case(FP16, 16, (1, 1), layout="odd"),
    Case(FP32, 16, (1, 127), CAUSAL_BR, heads=(4, 2), batch=2),
    Case(BF16, 16, (127, 1), CAUSAL_TL, heads=(4, 1)),
    Case(FP32, 16, (300, 7), CAUSAL_TL),
], ids=lambda case: f"{case.dtype}-{case.d}-{case.seqlens}".replace("torch.", ""))
def test_axes(case):
    check_backward(case)


@pytest.mark.parametrize("window", [
    CAUSAL_TL,
    CAUSAL_BR,
    (0, 0),
    (50, 1),
    (-5, 20),  # keys after the query only
    (40, -8),  # keys before the query only
    (-3, -9),  # nothing at all
    UNBOUNDED,
    (-INT_MAX - 1, INT_MAX),  # -2147483648 is no sentinel: nothing is kept
    (INT_MAX, 3),
    (2, INT_MAX),
    (7, BOTTOM_RIGHT_ALIGNED),
    (BOTTOM_RIGHT_ALIGNED, TOP_LEFT_ALIGNED),
], ids=str)
@pytest.mark.parametrize("seqlens", [(75, 101), (90, 40)], ids=str)
def test_windows(window, seqlens):
    check_backward(Case(FP16, 16, seqlens, window, heads=(1, 1), blocks=(16, 32), general=seqlens[0] == 90))


@pytest.mark.parametrize("case", [
    Case(FP16, 16, (33, 63), bias="bhsd", batch=2),
    Case(BF16, 64, (63, 33), CAUSAL_BR, bias="bshd", heads=(4, 2)),
    Case(FP32, 32, (33, 65), (7, 3), bias="odd"),
    Case(FP16, (72, 40), (33, 33), bias="transposed", layout="odd"),
    Case(BF16, 48, (65, 90), (-40, 60), bias="bhsd", has_db=False),
    Case(FP32, 16, (90, 40), (-3, -9), bias="bhsd"),  # nothing is kept: dB is 0 everywhere
], ids=lambda case: f"{case.dtype}-{case.bias}".replace("torch.", ""))
def test_bias(case):
    check_backward(case)


@pytest.mark.parametrize("case", [
    Case(FP16, 32, (33, 63), dropout=Dropout(0.5), batch=2, heads=(2, 1)),
    Case(BF16, 64, (65, 33), CAUSAL_TL, dropout=Dropout(0.5), blocks=(16, 64)),
    Case(FP32, 16, (33, 66), CAUSAL_BR, dropout=Dropout(0.25), layout="odd"),
    Case(FP16, 48, (33, 65), bias="bhsd", dropout=Dropout(0.5)),
    Case(BF16, (72, 40), (33, 65), (20, 5), bias="odd", dropout=Dropout(0.5)),
], ids=lambda case: f"{case.dtype}-{case.d}-{case.dropout.p}".replace("torch.", ""))
def test_dropout(case):
    check_backward(case)


LENGTHS = [(33, 17), (0, 20), (40, 0), (7, 50), (1, 1), (0, 0)]


@pytest.mark.parametrize("case", [
    Case(FP16, 32, LENGTHS, varlen_type=COMPACT, lse_compact=True, heads=(2, 1)),
    Case(BF16, 16, LENGTHS, CAUSAL_BR, varlen_type=COMPACT, lse_compact=True, layout="bshd"),
    Case(FP32, 16, LENGTHS, CAUSAL_TL, varlen_type=COMPACT, lse_compact=False, dropout=Dropout(0.5)),
    Case(FP16, 16, LENGTHS, (9, 4), varlen_type=PADDED, base2=True),
    Case(FP32, 40, LENGTHS, varlen_type=PADDED, layout="odd"),
    Case(FP16, 16, LENGTHS, CAUSAL_BR, varlen_type=STRIDED, lse_compact=True, heads=(2, 1), dropout=Dropout(0.5)),
    Case(BF16, 48, LENGTHS, varlen_type=STRIDED, layout="bshd"),
], ids=lambda case: f"{case.varlen_type}-{case.dtype}-{case.window}".replace("torch.", ""))
def test_varlen(case):
    check_backward(case)


@pytest.mark.parametrize("sm_scale", [0.0, -0.0, -0.25, 1e-30, 4.0])
def test_scale(sm_scale):
    check_backward(Case(FP16, 32, (65, 50), CAUSAL_BR, sm_scale=sm_scale))
    check_backward(Case(FP32, 32, (65, 50), bias="bhsd", sm_scale=sm_scale))


# Bottom-right causal with more queries than keys: the first rows see no key, and L is +inf.
@pytest.mark.parametrize("general", [False, True])
def test_fully_masked_rows(general):
    case = Case(FP16, 16, (90, 45), CAUSAL_BR, bias="bhsd", general=general)
    # What such a row holds is used by nobody.
    case.q[:, :, :45] = math.nan
    case.do[:, :, :45] = math.nan
    case.b[:, :, :45] = math.nan
    for fused in (False, True):
        _, dk, dv, _ = run_backward(case, fused=fused)[0]
        assert not dk.isnan().any() and not dv.isnan().any()
    case.q[:, :, :45] = 1.0
    case.do[:, :, :45] = 1.0
    case.b[:, :, :45] = 0.0
    for fused in (False, True):
        dq, _, _, db = run_backward(case, fused=fused)[0]
        assert (dq[:, :, :45] == 0).all() and (db[:, :, :45] == 0).all()
    check_backward(case)


# Keys that no query of a tile sees are not used, even when they hold NaN; their own gradients are 0.
@pytest.mark.parametrize("general", [False, True])
def test_nan_in_unseen_keys(general):
    case = Case(FP16, 16, (32, 64), CAUSAL_TL, general=general)
    case.k[:, :, 32:] = math.nan
    case.v[:, :, 32:] = math.nan
    finite = Case(FP16, 16, (32, 64), CAUSAL_TL, general=general)
    for fused in (False, True):
        (dq, dk, dv), want = run_backward(case, fused=fused)[0], run_backward(finite, fused=fused)[0]
        assert all(torch.equal(x, y) for x, y in zip((dq, dk, dv), want))
        assert (dk[:, :, 32:] == 0).all() and (dv[:, :, 32:] == 0).all()


# Scores near 1e12, where L cannot tell P from 0 or 1; and a bias that masks a row by the lowest finite number.
def test_no_nan_from_huge_scores():
    case = Case(BF16, 16, (4, 4), sm_scale=0.25, bias="bhsd")
    case.q.fill_(266240.0)
    case.k.fill_(266240.0)
    for lowest in (0.0, torch.finfo(BF16).min):
        case.b.fill_(lowest)
        for fused in (False, True):
            assert all(x.isfinite().all() for x in run_backward(case, fused=fused)[0])


def test_nan_propagates():
    case = Case(FP32, 16, (20, 33))
    case.q[0, 0, 3] = math.nan
    for fused in (False, True):
        dq, dk, dv = run_backward(case, fused=fused)[0]
        assert dq[0, 0, 3].isnan().all() and dk[0, 0].isnan().all() and dv[0, 0].isnan().all()
        assert not any(x[0, 1].isnan().any() for x in (dq, dk, dv))


# Sums have one order, whatever else runs: twice the same is the same to the bit.
def test_deterministic():
    case = Case(BF16, 32, (65, 63), CAUSAL_TL, heads=(4, 2), dropout=Dropout(0.5), bias="bhsd")
    first, second = run_backward(case)[0], run_backward(case)[0]
    assert all(torch.equal(a, b) for a, b in zip(first, second))


@pytest.mark.parametrize("blocks", [(16, 16), (16, 64), (64, 16), (64, 32)], ids=str)
def test_blocks(blocks):
    check_backward(Case(FP16, 16, (70, 101), (30, 9), heads=(2, 1), dropout=Dropout(0.5), bias="bhsd", blocks=blocks))


def test_inputs_are_not_written():
    case = Case(FP16, (24, 40), (33, 40), CAUSAL_BR, bias="odd", dropout=Dropout(0.5), layout="odd")
    before = [x.clone() for x in (case.q, case.k, case.v, case.b, case.do)]
    run_backward(case)
    run_backward(case, fused=True)
    assert all(torch.equal(a, b) for a, b in zip(before, (case.q, case.k, case.v, case.b, case.do)))
