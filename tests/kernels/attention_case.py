"""One problem: its tensors, its calls in Triton's interpreter, and what is due.

The backward runs both ways: bwd_preprocess, bwd_dkdv and bwd_dq ("split"), and bwd_fused.
"""

import dataclasses
import math

import torch

from kernels.flash.bwd_dkdv import bwd_dkdv
from kernels.flash.bwd_dq import bwd_dq
from kernels.flash.bwd_fused import bwd_fused
from kernels.flash.bwd_preprocess import bwd_preprocess
from tests.kernels import interpreter_fixes
from tests.kernels.bounds import BACKWARD, FORWARD, within
from tests.kernels.launch_attn_fwd import (
    HEAD_DIMS,
    INT_MAX,
    NULL,
    Dropout,
    Guarded,
    Layout,
    Varlen,
    bits,
    elements,
    fp32,
    int32,
)
from tests.kernels.launch_attn_fwd import run as run_attn_fwd
from tests.kernels.reference import (
    attention,
    error,
    floors,
    gradient_floors,
    gradient_roundings,
    gradients,
    largest,
    rows_of,
    stored_out_floors,
)

interpreter_fixes.install()

COMPACT, PADDED, STRIDED = 1, 2, 3
GRADIENTS = ("dq", "dk", "dv", "db")


@dataclasses.dataclass
class Case:
    """One call. seqlens: (q, k), or with varlen_type a list of pairs.

    layout: of every tensor but bias and db, a name or a Layout; layouts: of tensors by name, before
    layout and bias. spare_rows: rows of no sequence, between two of them or at the end.
    """

    dtype: torch.dtype
    d: int | tuple
    seqlens: tuple | list
    window: tuple | None = None
    heads: tuple = (2, 2)
    batch: int = 1
    layout: str | Layout = "bhsd"
    layouts: dict = dataclasses.field(default_factory=dict)
    bias: str | Layout | None = None  # its layout
    has_db: bool = True
    dropout: Dropout | None = None
    varlen_type: int = 0
    spare_rows: int = 2
    lse_compact: bool = False
    base2: bool = False
    sm_scale: float | None = None
    general: bool | None = None  # None: if it has to be
    blocks: tuple = (32, 16)
    numbers: int = 1  # what the inputs are filled from

    def __post_init__(self):
        self.d_qk, self.d_vo = self.d if isinstance(self.d, tuple) else (self.d, self.d)
        self.head_dim = min(d for d in HEAD_DIMS if d >= max(self.d_qk, self.d_vo))
        if self.general is None:
            self.general = (self.dtype == torch.float32 or "odd" in (self.layout, self.bias) or self.bias == "transposed"
                            or (self.d_qk, self.d_vo) != (self.head_dim, self.head_dim))
        if self.sm_scale is None:
            self.sm_scale = self.d_qk**-0.5
        self.sm_scale = fp32(self.sm_scale)
        pairs = self.seqlens if self.varlen_type else [self.seqlens] * self.batch
        self.count = len(pairs)
        self.lengths = list(zip(*pairs))
        self.max_q, self.max_k = (max(lengths) for lengths in self.lengths)
        self._place_sequences()
        generator = torch.Generator().manual_seed(self.numbers)
        heads_q, heads_k = self.heads
        self.q = self._filled("q", (self.z, heads_q, self.rows_q, self.d_qk), 0, generator)
        self.k = self._filled("k", (self.z, heads_k, self.rows_k, self.d_qk), 1, generator)
        self.v = self._filled("v", (self.z, heads_k, self.rows_k, self.d_vo), 1, generator)
        self.do = self._filled("do", (self.z, heads_q, self.rows_q, self.d_vo), 0, generator)
        self.b = self._filled("bias", (self.z, heads_q, self.rows_q, self.rows_k), 0, generator) if self.bias else None
        self.dropout_p = fp32(self.dropout.p) if self.dropout else 0.0
        self.keep = self.dropout.keep(self.count, heads_q, self.max_q, self.max_k) if self.dropout else None

    def _place_sequences(self):
        """The sizes of the tensors, and where the sequences lie in them."""
        self.varlen = None
        self.z, self.rows_q, self.rows_k = self.count, self.max_q, self.max_k
        if not self.varlen_type:
            return
        spare = self.spare_rows
        cu = [[sum(lengths[:i]) for i in range(self.count + 1)] for lengths in self.lengths]
        self.varlen = Varlen(self.varlen_type, *cu)
        if self.varlen_type == PADDED:
            self.rows_q, self.rows_k = self.max_q + spare, self.max_k + spare
        else:
            self.z = 1
            gaps = spare if self.varlen_type == COMPACT else spare * (self.count - 1)
            self.rows_q, self.rows_k = (max(one[-1] + gaps, 1) for one in cu)
        if self.varlen_type == STRIDED:  # in reverse order
            self.varlen.starts_q, self.varlen.starts_k = (
                [sum(lengths[i + 1:]) + spare * (self.count - 1 - i) for i in range(self.count)] for lengths in self.lengths)

    def guarded(self, name, shape):
        """A new tensor of NaN in the layout of tensor `name`."""
        default = self.bias if name in ("bias", "db") else self.layout
        return Guarded(shape, self.dtype, self.layouts.get(name, default))

    def _filled(self, name, shape, side, generator):
        """NaN wherever no sequence is."""
        tensor = self.guarded(name, shape).view
        for i in range(1 if name == "bias" else self.count):
            rows = elements(tensor if name == "bias" else self.rows(tensor, i, side))
            rows.copy_(torch.randn(rows.shape, generator=generator))
        return tensor

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
            self.q, self.k, self.v, self.sm_scale, self.window, self.layouts.get("out", self.layout), base2=self.base2,
            general=self.general, bias=self.b, dropout=self.dropout, varlen=self.varlen, lse_compact=self.lse_compact)

    def rows_of_lse(self, lse, i):
        """LSE of sequence i, (1, head, length)."""
        rows = self.lengths[0][i]
        if not self.lse_compact:
            return lse[i:i + 1, :, :rows]
        first = (self.varlen.starts_q or self.varlen.cu_q)[i]
        return lse[None, :, first:first + rows]


def strides(*tensors):
    return [stride for x in tensors for stride in x.stride()[:3]]


def run_backward(case, forward=None, fused=False):
    """(dQ, dK, dV, dB) of each sequence, after checking that nothing but them was written."""
    forward_out, forward_lse = forward or case.forward()
    out = case.guarded("out", forward_out.shape).view
    out.copy_(forward_out)
    lse, delta = (torch.full((forward_lse.numel() + 16,), math.nan) for _ in "ld")
    lse[8:-8] = forward_lse.flatten()
    lse_strides = (0, forward_lse.stride(0)) if case.lse_compact else forward_lse.stride()[:2]
    written = {"dq": case.q, "dk": case.k, "dv": case.v, **({"db": case.b} if case.bias and case.has_db else {})}
    buffers = [case.guarded(name, x.shape) for name, x in written.items()]
    dq, dk, dv, db = (*(x.view for x in buffers), None)[:4]

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


def check_forward(case):
    """Runs attn_fwd: the errors of Out and LSE, over all sequences, are at most twice the floor. Returns both."""
    out, lse = case.forward()
    errors, due = [0.0, 0.0], [0.0, 0.0]
    for i in range(case.count):
        (q, k, v, _), inputs = case.inputs(i)
        got, got_lse = case.rows(out, i, 0), case.rows_of_lse(lse, i)
        got_lse = got_lse * math.log(2) if case.base2 else got_lse
        want, want_lse = attention(q, k, v, case.sm_scale, case.window, **inputs)
        empty = want_lse.isinf()
        assert (got_lse[empty] == math.inf).all() and (got[empty] == 0).all(), "a row without a key"
        assert not got.isnan().any() and not got_lse.isnan().any()
        errors = [max(errors[0], error(got, want)), max(errors[1], error(got_lse[~empty], want_lse[~empty]))]
        due = [max(pair) for pair in zip(due, floors(q, k, v, case.sm_scale, case.window, **inputs))]
    for output, worst, floor in zip(("out", "lse"), errors, due):
        within("attn_fwd", case.dtype, output, worst, floor, FORWARD)
    return out, lse


def check_backward(case, forward=None):
    """The error of each gradient, over all sequences, is at most 3 times the floor."""
    forward = forward or case.forward()
    ways = {"split": run_backward(case, forward), "fused": run_backward(case, forward, fused=True)}
    wants, due, roundings = [], [0.0] * 4, [0.0] * 4
    # P is found again from the logsumexp, which is stored in fp32.
    lse = forward[1][forward[1].isfinite()] * (math.log(2) if case.base2 else 1)
    stored = torch.finfo(torch.float32).eps * largest(lse)
    for i in range(case.count):
        operands, inputs = case.inputs(i)
        if 0 in (operands[0].shape[2], operands[1].shape[2]):
            wants.append([torch.zeros_like(x) for x in operands[:3]])  # of a sum of nothing
            continue
        wants.append(gradients(*operands, case.sm_scale, case.window, **inputs))
        floor = gradient_floors(*operands, case.sm_scale, case.window, **inputs)
        of_out = stored_out_floors(*operands, case.sm_scale, case.window, **inputs)
        due = [max(a, b or 0.0, c, 0.0 if want is None else stored * largest(want))
               for a, b, c, want in zip(due, floor, of_out, wants[-1])]
        rounding = gradient_roundings(*operands, case.sm_scale)
        roundings = [max(pair) for pair in zip(roundings, rounding)]
    for way, got in ways.items():
        for j in range(len(got[0])):
            assert all(not got[i][j].isnan().any() for i in range(case.count)), (way, GRADIENTS[j])
            worst = max(error(got[i][j], wants[i][j]) for i in range(case.count))
            floor = due[j] if due[j] >= roundings[j] / 1000 else roundings[j]
            within(f"attn_bwd {way}", case.dtype, GRADIENTS[j], worst, floor, BACKWARD)
