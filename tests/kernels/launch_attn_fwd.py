"""Launches attn_fwd in the interpreter, and checks that it writes nothing but its outputs."""

import dataclasses
import math

import numpy as np
import torch

from kernels.flash.attn_fwd import attn_fwd
from kernels.flash.attn_fwd_persistent import attn_fwd_persistent
from tests.kernels import philox

HEAD_DIMS = [16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256, 512]
INT_MAX = 2**31 - 1
NULL = torch.empty(0, dtype=torch.int64)  # its address is 0


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a (batch, head, row, column) view lies in memory.

    order: its dimensions from the innermost, which has stride 1, outwards. gaps: elements left free
    after each of them, in that order. unit: what the other strides and the offset are multiples of.
    offset: units before the first element. shared: dimensions of stride 0.
    """

    order: tuple = (3, 2, 1, 0)
    gaps: tuple = (16, 32, 32, 0)
    unit: int = 1
    offset: int = 0
    shared: tuple = ()

    def strides(self, shape):
        steps, step = [0] * 4, 1
        for i, gap in zip(self.order, self.gaps):
            if i not in self.shared:
                steps[i] = step
                step = -(-(step * max(shape[i], 1) + gap) // self.unit) * self.unit
        return steps


# odd: no base and no stride but the last is even. transposed: a row is a column in memory.
LAYOUTS = {
    "bhsd": Layout(),
    "bshd": Layout((3, 1, 2, 0)),
    "odd": Layout((3, 1, 2, 0), (3, 5, 7, 0), offset=1),
    "transposed": Layout((2, 3, 1, 0), (3, 5, 7, 0), offset=1),
}
GUARD = 32  # elements of NaN before and after


class Guarded:
    """A (batch, head, row, column) view in a larger buffer of NaN. layout: a Layout or the name of one."""

    def __init__(self, shape, dtype, layout="bhsd"):
        layout = LAYOUTS[layout] if isinstance(layout, str) else layout
        steps = layout.strides(shape)
        first = GUARD + layout.unit * layout.offset
        last = first + sum(max(size - 1, 0) * step for size, step in zip(shape, steps))
        self.buffer = torch.full((last + 1 + GUARD,), math.nan, dtype=dtype)
        self.view = self.buffer.as_strided(shape, steps, first)

    def untouched_around(self):
        self.view.fill_(math.nan)
        return bool(self.buffer.isnan().all())


def elements(view):
    """The view with size 1 in dimensions of stride 0: each element once."""
    return view[tuple(slice(0, 1) if step == 0 else slice(None) for step in view.stride())]


def normal(shape, dtype, layout, generator):
    guarded = Guarded(shape, dtype, layout)
    elements(guarded.view).copy_(torch.randn(elements(guarded.view).shape, generator=generator))
    return guarded


@dataclasses.dataclass(frozen=True)
class Dropout:
    p: float = 0.3
    seed: int = 0x9BF58476D1CE4E5B  # as int64 it is negative
    offset1: int = 2**32 - 20  # the counters pass 2^32
    offset2: int = 7

    def keep(self, sequences, heads, max_seqlen_q, max_seqlen_k):
        offset = self.offset1 + self.offset2
        return torch.from_numpy(philox.keep_mask(self.p, self.seed, offset, sequences, heads, max_seqlen_q, max_seqlen_k))


@dataclasses.dataclass
class Varlen:
    type: int
    cu_q: list
    cu_k: list
    starts_q: list | None = None
    starts_k: list | None = None

    def lengths(self, cu):
        return [end - begin for begin, end in zip(cu, cu[1:])]

    @property
    def max_q(self):
        return max(self.lengths(self.cu_q))

    @property
    def max_k(self):
        return max(self.lengths(self.cu_k))


def fp32(number):
    """What a kernel is given for a Python number."""
    return torch.tensor(number, dtype=torch.float32).item()


def bits(number):
    """A uint64 as the int64 tensor that the kernel reads."""
    return torch.from_numpy(np.array([number % 2**64], dtype=np.uint64).view(np.int64))


def int32(values):
    return NULL if values is None else torch.tensor(values, dtype=torch.int32)


def run(q, k, v, sm_scale, window=None, layout="bhsd", blocks=(32, 32), store_lse=True, base2=False,
        general=None, bias=None, dropout=None, varlen=None, lse_compact=False, persistent=None):
    """Out and LSE, NaN where nothing was written, after checking that nothing but them was written.

    LSE is (sequences, heads, max_seqlen_q), or (heads, rows) if lse_compact.
    persistent: the number of programs of the persistent schedule.
    """
    heads, d_qk, d_vo = q.shape[1], q.shape[3], v.shape[3]
    sequences, max_q, max_k = q.shape[0], q.shape[2], k.shape[2]
    cu_q = cu_k = starts_q = starts_k = NULL
    if varlen:
        sequences, max_q, max_k = len(varlen.cu_q) - 1, varlen.max_q, varlen.max_k
        cu_q, cu_k = int32(varlen.cu_q), int32(varlen.cu_k)
        starts_q, starts_k = int32(varlen.starts_q), int32(varlen.starts_k)
    head_dim = min(d for d in HEAD_DIMS if d >= max(d_qk, d_vo))
    if general is None:
        general = (d_qk, d_vo) != (head_dim, head_dim) or q.dtype == torch.float32
    out = Guarded((*q.shape[:3], d_vo), q.dtype, layout)
    lse_shape = (heads, q.shape[2]) if lse_compact else (sequences, heads, max_q)
    lse_buffer = torch.full((math.prod(lse_shape) + 16,), math.nan)
    lse = lse_buffer[8:-8].view(lse_shape)
    left, right = window or ((INT_MAX, INT_MAX) if general else (0, 0))
    outputs = bits(-1), bits(-1)
    grid = -(-max_q // blocks[0]) * heads * sequences
    strides = [*q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.view.stride()[:3]]
    lse_strides = (0, lse.stride(0)) if lse_compact else lse.stride()[:2]
    lengths = [heads, k.shape[1], max_q, max_k, cu_q, cu_k, starts_q, starts_k, varlen.type if varlen else 0]
    lse_flags = [1.0 if base2 else math.log(2), int(store_lse), int(lse_compact)]
    if persistent:
        counter = torch.zeros(1, dtype=torch.int32)
        attn_fwd_persistent[(persistent,)](
            q, k, v, out.view, lse_buffer[8:], sm_scale, *strides, *lse_strides, sequences, *lengths, *window, *lse_flags,
            persistent, counter, HEAD_DIM=head_dim, BLOCK_M=blocks[0], BLOCK_N=blocks[1])
        assert counter == 0
    else:
        attn_fwd[(grid,)](
            q, k, v, NULL if bias is None else bias, out.view, lse_buffer[8:], sm_scale,
            *strides, *((0,) * 4 if bias is None else bias.stride()), *lse_strides, *lengths,
            d_qk, d_vo, left, right, int(bias is not None), int(dropout is not None),
            dropout.p if dropout else 0.0,
            bits(dropout.seed) if dropout else NULL, bits(dropout.offset1) if dropout else NULL,
            dropout.offset2 if dropout else 0, *outputs, *lse_flags,
            HEAD_DIM=head_dim, WINDOWED=general or window is not None, GENERAL=general,
            BIAS=general or bias is not None, DROPOUT=general or dropout is not None,
            BLOCK_M=blocks[0], BLOCK_N=blocks[1],
        )
    written = (dropout.seed, dropout.offset1 + dropout.offset2) if dropout else (-1, -1)
    assert outputs == tuple(bits(number) for number in written)
    result, result_lse = out.view.clone(), lse.clone()
    assert out.untouched_around()
    lse.fill_(math.nan)
    assert lse_buffer.isnan().all()
    return result, result_lse
