"""The backward kernels in Triton's interpreter against the gradients of the plain formula in float64.

Every case runs both ways: bwd_preprocess, bwd_dkdv and bwd_dq, and bwd_fused.
"""

import dataclasses
import math

import pytest
import torch

from kernels.flash.bwd_dkdv import bwd_dkdv
from kernels.flash.bwd_dq import bwd_dq
from kernels.flash.bwd_fused import bwd_fused
from kernels.flash.bwd_preprocess import bwd_preprocess
from tests.kernels import interpreter_fixes
from tests.kernels.launch_attn_fwd import HEAD_DIMS, INT_MAX, NULL, Dropout, Guarded, Varlen, bits, int32, normal
from tests.kernels.launch_attn_fwd import run as run_attn_fwd
from tests.kernels.reference import (
    BOTTOM_RIGHT_ALIGNED,
    TOP_LEFT_ALIGNED,
    error,
    gradient_floors,
    gradients,
    rows_of,
)

interpreter_fixes.install()

FP16, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
CAUSAL_TL = (TOP_LEFT_ALIGNED, TOP_LEFT_ALIGNED)
CAUSAL_BR = (BOTTOM_RIGHT_ALIGNED, BOTTOM_RIGHT_ALIGNED)
UNBOUNDED = (INT_MAX, INT_MAX)
COMPACT, PADDED, STRIDED = 1, 2, 3
GRADIENTS = ("dQ", "dK", "dV", "dB")


@dataclasses.dataclass
class Case:
    """One call. seqlens: (q, k), or with varlen_type a list of pairs."""

    dtype: torch.dtype
    d: int | tuple
    seqlens: tuple | list
    window: tuple | None = None
    heads: tuple = (2, 2)
    batch: int = 1
    layout: str = "bhsd"
    bias: str | None = None  # its layout
    has_db: bool = True
    dropout_p: float = 0.0
    varlen_type: int = 0
    lse_compact: bool = False
    base2: bool = False
    sm_scale: float | None = None
    general: bool | None = None  # None: if it has to be
    blocks: tuple = (32, 16)

    def __post_init__(self):
        self.d_qk, self.d_vo = self.d if isinstance(self.d, tuple) else (self.d, self.d)
        self.head_dim = min(d for d in HEAD_DIMS if d >= max(self.d_qk, self.d_vo))
        if self.general is None:
            self.general = (self.dtype == FP32 or "odd" in (self.layout, self.bias) or self.bias == "transposed"
                            or (self.d_qk, self.d_vo) != (self.head_dim, self.head_dim))
        if self.sm_scale is None:
            self.sm_scale = self.d_qk**-0.5
        self.sm_scale = torch.tensor(self.sm_scale, dtype=FP32).item()  # what the kernels are given
        pairs = self.seqlens if self.varlen_type else [self.seqlens] * self.batch
        self.count = len(pairs)
        self.lengths = list(zip(*pairs))
        self.max_q, self.max_k = (max(lengths) for lengths in self.lengths)
        batch, rows = self.count, (self.max_q, self.max_k)
        self.varlen = None
        if self.varlen_type:
            cu = [[sum(x[:i]) for i in range(self.count + 1)] for x in self.lengths]
            self.varlen = Varlen(self.varlen_type, *cu)
        if self.varlen_type == COMPACT:
            batch, rows = 1, (cu[0][-1], cu[1][-1])
        if self.varlen_type == STRIDED:  # in reverse order, with two rows between sequences
            starts = [[sum(x[i + 1:]) + 2 * (self.count - 1 - i) for i in range(self.count)] for x in self.lengths]
            self.varlen.starts_q, self.varlen.starts_k = starts
            batch, rows = 1, tuple(x[0] + x_0[0] for x, x_0 in zip(starts, self.lengths))
        generator = torch.Generator().manual_seed(1)
        heads_q, heads_k = self.heads
        self.q = normal((batch, heads_q, rows[0], self.d_qk), self.dtype, self.layout, generator).view
        self.k = normal((batch, heads_k, rows[1], self.d_qk), self.dtype, self.layout, generator).view
        self.v = normal((batch, heads_k, rows[1], self.d_vo), self.dtype, self.layout, generator).view
        self.do = normal((batch, heads_q, rows[0], self.d_vo), self.dtype, self.layout, generator).view
        self.b = None
        if self.bias:
            self.b = self.like_bias(batch, rows)
            self.b.copy_(torch.randn(self.b.shape, generator=generator))
        self.dropout = Dropout(self.dropout_p) if self.dropout_p else None
        self.keep = self.dropout.keep(self.count, heads_q, self.max_q, self.max_k) if self.dropout else None

    def like_bias(self, batch, rows):
        """B or dB; transposed: its second last stride is 1."""
        self.bias_buffer = Guarded((batch, self.heads[0], *(rows if self.bias != "transposed" else rows[::-1])),
                                   self.dtype, "bhsd" if self.bias == "transposed" else self.bias)
        return self.bias_buffer.view.transpose(2, 3) if self.bias == "transposed" else self.bias_buffer.view

    def rows(self, tensor, i, side):
        """The rows of sequence i: side 0, of the queries; 1, of the keys."""
        if self.varlen is None:
            return tensor[i:i + 1]
        cu, starts = (self.varlen.cu_q, self.varlen.starts_q) if side == 0 else (self.varlen.cu_k, self.varlen.starts_k)
        return rows_of(tensor, i, cu, starts, self.varlen_type)

    def inputs(self, i):
        """Arguments of the reference for sequence i: (q, k, v, do), and by name."""
        q, k, v, do = (self.rows(x, i, side) for x, side in ((self.q, 0), (self.k, 1), (self.v, 1), (self.do, 0)))
        keep = None if self.keep is None else self.keep[i:i + 1, :, :q.shape[2], :k.shape[2]]
        bias = None if self.b is None else self.b[i:i + 1]
        return (q, k, v, do), {"bias": bias, "keep": keep, "dropout_p": self.dropout_p}

    def forward(self):
        """Out and LSE of attn_fwd."""
        return run_attn_fwd(
            self.q, self.k, self.v, self.sm_scale, self.window, base2=self.base2, general=self.general, bias=self.b,
            dropout=self.dropout, varlen=self.varlen, lse_compact=self.lse_compact)


def strides(*tensors):
    return [stride for x in tensors for stride in x.stride()[:3]]


def run(case, forward=None, fused=False):
    """(dQ, dK, dV, dB) of each sequence, after checking that nothing but them was written."""
    forward_out, forward_lse = forward or case.forward()
    out = Guarded(forward_out.shape, case.dtype, case.layout).view
    out.copy_(forward_out)
    lse, delta = (torch.full((forward_lse.numel() + 16,), math.nan) for _ in "ld")
    lse[8:-8] = forward_lse.flatten()
    lse_strides = (0, forward_lse.stride(0)) if case.lse_compact else forward_lse.stride()[:2]
    buffers = [Guarded(x.shape, case.dtype, case.layout) for x in (case.q, case.k, case.v)]
    dq, dk, dv = (x.view for x in buffers)
    db = None
    if case.bias and case.has_db:
        db = case.like_bias(case.b.shape[0], case.b.shape[2:])
        buffers.append(case.bias_buffer)

    q, k, v, do, scale = case.q, case.k, case.v, case.do, case.sm_scale
    b, b_strides = (NULL, (0, 0, 0, 1)) if case.b is None else (case.b, case.b.stride())
    db_or_null, db_strides = (NULL, (0, 0, 0, 1)) if db is None else (db, db.stride())
    varlen, dropout = case.varlen, case.dropout
    arrays = [int32(x) for x in (varlen.cu_q, varlen.cu_k, varlen.starts_q, varlen.starts_k)] if varlen else [NULL] * 4
    heads_q, heads_k = case.heads
    common = (*lse_strides, heads_q, heads_k, case.max_q, case.max_k, *arrays, case.varlen_type,
              case.d_qk, case.d_vo, *(case.window or (INT_MAX, INT_MAX)), int(case.b is not None))
    rest = (int(dropout is not None), case.dropout_p, bits(dropout.seed) if dropout else NULL,
            bits(dropout.offset1) if dropout else NULL, dropout.offset2 if dropout else 0,
            1.0 if case.base2 else math.log(2), int(case.lse_compact))
    block_m, block_n = case.blocks
    constants = {
        "HEAD_DIM": case.head_dim, "WINDOWED": case.general or case.window is not None, "GENERAL": case.general,
        "BIAS": case.general or case.b is not None, "DROPOUT": case.general or dropout is not None,
        "BLOCK_M": block_m, "BLOCK_N": block_n,
    }
    tiles_q, tiles_k = -(-case.max_q // block_m), -(-case.max_k // block_n)
    if fused:
        bwd_fused[((tiles_k + tiles_q * (heads_q // heads_k)) * heads_k * case.count,)](
            q, k, v, b, out, do, dq, dk, dv, db_or_null, lse[8:], scale,
            *strides(q, k, v), *b_strides, *strides(out, do, dq, dk, dv), *db_strides,
            *common, int(db is not None), *rest, **constants)
    else:
        bwd_preprocess[(tiles_q * heads_q * case.count,)](
            out, do, delta[8:], *strides(out, do), *lse_strides, heads_q, case.max_q, arrays[0], arrays[2],
            case.varlen_type, case.d_vo, int(case.lse_compact),
            HEAD_DIM=case.head_dim, GENERAL=case.general, BLOCK_M=block_m)
        assert delta[lse.isnan()].isnan().all()
        bwd_dkdv[(tiles_k * heads_k * case.count,)](
            q, k, v, b, do, dk, dv, lse[8:], delta[8:], scale,
            *strides(q, k, v), *b_strides, *strides(do, dk, dv), *common, *rest, **constants)
        bwd_dq[(tiles_q * heads_q * case.count,)](
            q, k, v, b, do, dq, db_or_null, lse[8:], delta[8:], scale,
            *strides(q, k, v), *b_strides, *strides(do, dq), *db_strides,
            *common, int(db is not None), *rest, **constants)
    gradient_rows = [[case.rows(dq, i, 0), case.rows(dk, i, 1), case.rows(dv, i, 1)] + ([] if db is None else [db[i:i + 1]])
                     for i in range(case.count)]
    results = [[x.clone() for x in rows] for rows in gradient_rows]
    for rows in gradient_rows:
        for x in rows:
            x.fill_(math.nan)
    assert all(x.buffer.isnan().all() for x in buffers)
    return results


def check(case):
    """The error of each gradient, over all sequences, is at most 3 times the floor."""
    forward = case.forward()
    ways = {"split": run(case, forward), "fused": run(case, forward, fused=True)}
    wants, floors, roundings = [], [0.0] * 4, [0.0] * 4
    for i in range(case.count):
        operands, inputs = case.inputs(i)
        if 0 in (operands[0].shape[2], operands[1].shape[2]):
            wants.append([torch.zeros_like(x) for x in operands[:3]])  # of a sum of nothing
            continue
        wants.append(gradients(*operands, case.sm_scale, case.window, **inputs))
        floor = gradient_floors(*operands, case.sm_scale, case.window, **inputs)
        floors = [max(a, b or 0.0) for a, b in zip(floors, floor)]
        # A row of one key has dS = dP - dP = 0. The kernels subtract Delta, another sum of the same products.
        q, k, v, do = (x.double().norm(dim=-1).max().item() for x in operands)
        ds = torch.finfo(FP32).eps * v * do
        roundings = [max(a, b) for a, b in zip(roundings, (ds * k, ds * q, 0.0, ds))]
    for way, got in ways.items():
        for j in range(len(got[0])):
            worst = max(error(got[i][j], wants[i][j]) for i in range(case.count))
            assert all(not got[i][j].isnan().any() for i in range(case.count)), (way, GRADIENTS[j])
            allowed = 3 * floors[j] if floors[j] else roundings[j]
            assert worst <= allowed, (way, GRADIENTS[j], worst, floors[j])


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
    check(case)


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
    check(Case(FP16, 16, seqlens, window, heads=(1, 1), blocks=(16, 32), general=seqlens[0] == 90))


@pytest.mark.parametrize("case", [
    Case(FP16, 16, (33, 63), bias="bhsd", batch=2),
    Case(BF16, 64, (63, 33), CAUSAL_BR, bias="bshd", heads=(4, 2)),
    Case(FP32, 32, (33, 65), (7, 3), bias="odd"),
    Case(FP16, (72, 40), (33, 33), bias="transposed", layout="odd"),
    Case(BF16, 48, (65, 90), (-40, 60), bias="bhsd", has_db=False),
    Case(FP32, 16, (90, 40), (-3, -9), bias="bhsd"),  # nothing is kept: dB is 0 everywhere
], ids=lambda case: f"{case.dtype}-{case.bias}".replace("torch.", ""))
def test_bias(case):
    check(case)


@pytest.mark.parametrize("case", [
    Case(FP16, 32, (33, 63), dropout_p=0.5, batch=2, heads=(2, 1)),
    Case(BF16, 64, (65, 33), CAUSAL_TL, dropout_p=0.5, blocks=(16, 64)),
    Case(FP32, 16, (33, 66), CAUSAL_BR, dropout_p=0.25, layout="odd"),
    Case(FP16, 48, (33, 65), bias="bhsd", dropout_p=0.5),
    Case(BF16, (72, 40), (33, 65), (20, 5), bias="odd", dropout_p=0.5),
], ids=lambda case: f"{case.dtype}-{case.d}-{case.dropout_p}".replace("torch.", ""))
def test_dropout(case):
    check(case)


LENGTHS = [(33, 17), (0, 20), (40, 0), (7, 50), (1, 1), (0, 0)]


@pytest.mark.parametrize("case", [
    Case(FP16, 32, LENGTHS, varlen_type=COMPACT, lse_compact=True, heads=(2, 1)),
    Case(BF16, 16, LENGTHS, CAUSAL_BR, varlen_type=COMPACT, lse_compact=True, layout="bshd"),
    Case(FP32, 16, LENGTHS, CAUSAL_TL, varlen_type=COMPACT, lse_compact=False, dropout_p=0.5),
    Case(FP16, 16, LENGTHS, (9, 4), varlen_type=PADDED, base2=True),
    Case(FP32, 40, LENGTHS, varlen_type=PADDED, layout="odd"),
    Case(FP16, 16, LENGTHS, CAUSAL_BR, varlen_type=STRIDED, lse_compact=True, heads=(2, 1), dropout_p=0.5),
    Case(BF16, 48, LENGTHS, varlen_type=STRIDED, layout="bshd"),
], ids=lambda case: f"{case.varlen_type}-{case.dtype}-{case.window}".replace("torch.", ""))
def test_varlen(case):
    check(case)


@pytest.mark.parametrize("sm_scale", [0.0, -0.0, -0.25, 1e-30, 4.0])
def test_scale(sm_scale):
    check(Case(FP16, 32, (65, 50), CAUSAL_BR, sm_scale=sm_scale))
    check(Case(FP32, 32, (65, 50), bias="bhsd", sm_scale=sm_scale))


# Bottom-right causal with more queries than keys: the first rows see no key, and L is +inf.
@pytest.mark.parametrize("general", [False, True])
def test_fully_masked_rows(general):
    case = Case(FP16, 16, (90, 45), CAUSAL_BR, bias="bhsd", general=general)
    # What such a row holds is used by nobody.
    case.q[:, :, :45] = math.nan
    case.do[:, :, :45] = math.nan
    case.b[:, :, :45] = math.nan
    for fused in (False, True):
        _, dk, dv, _ = run(case, fused=fused)[0]
        assert not dk.isnan().any() and not dv.isnan().any()
    case.q[:, :, :45] = 1.0
    case.do[:, :, :45] = 1.0
    case.b[:, :, :45] = 0.0
    for fused in (False, True):
        dq, _, _, db = run(case, fused=fused)[0]
        assert (dq[:, :, :45] == 0).all() and (db[:, :, :45] == 0).all()
    check(case)


# Keys that no query of a tile sees are not used, even when they hold NaN; their own gradients are 0.
@pytest.mark.parametrize("general", [False, True])
def test_nan_in_unseen_keys(general):
    case = Case(FP16, 16, (32, 64), CAUSAL_TL, general=general)
    case.k[:, :, 32:] = math.nan
    case.v[:, :, 32:] = math.nan
    finite = Case(FP16, 16, (32, 64), CAUSAL_TL, general=general)
    for fused in (False, True):
        (dq, dk, dv), want = run(case, fused=fused)[0], run(finite, fused=fused)[0]
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
            assert all(x.isfinite().all() for x in run(case, fused=fused)[0])


def test_nan_propagates():
    case = Case(FP32, 16, (20, 33))
    case.q[0, 0, 3] = math.nan
    for fused in (False, True):
        dq, dk, dv = run(case, fused=fused)[0]
        assert dq[0, 0, 3].isnan().all() and dk[0, 0].isnan().all() and dv[0, 0].isnan().all()
        assert not any(x[0, 1].isnan().any() for x in (dq, dk, dv))


# Sums have one order, whatever else runs: twice the same is the same to the bit.
def test_deterministic():
    case = Case(BF16, 32, (65, 63), CAUSAL_TL, heads=(4, 2), dropout_p=0.5, bias="bhsd")
    first, second = run(case)[0], run(case)[0]
    assert all(torch.equal(a, b) for a, b in zip(first, second))


@pytest.mark.parametrize("blocks", [(16, 16), (16, 64), (64, 16), (64, 32)], ids=str)
def test_blocks(blocks):
    check(Case(FP16, 16, (70, 101), (30, 9), heads=(2, 1), dropout_p=0.5, bias="bhsd", blocks=blocks))


def test_inputs_are_not_written():
    case = Case(FP16, (24, 40), (33, 40), CAUSAL_BR, bias="odd", dropout_p=0.5, layout="odd")
    before = [x.clone() for x in (case.q, case.k, case.v, case.b, case.do)]
    run(case)
    run(case, fused=True)
    assert all(torch.equal(a, b) for a, b in zip(before, (case.q, case.k, case.v, case.b, case.do)))
