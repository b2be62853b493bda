"""Random problems for Hypothesis: any layouts, windows, lengths and head dims."""

import torch
from hypothesis import strategies as st

from tests.kernels.attention_case import COMPACT, PADDED, STRIDED, Case
from tests.kernels.launch_attn_fwd import HEAD_DIMS, INT_MAX, Dropout, Layout
from tests.kernels.reference import BOTTOM_RIGHT_ALIGNED, TOP_LEFT_ALIGNED

ROW_TENSORS = ("q", "k", "v", "out", "do", "dq", "dk", "dv")
LONGEST = 90

head_dims = st.integers(1, 72) | st.sampled_from([d for d in HEAD_DIMS if d <= 128])
bounds = st.one_of(
    st.sampled_from([TOP_LEFT_ALIGNED, BOTTOM_RIGHT_ALIGNED, INT_MAX, -INT_MAX - 1, 0, -1]),
    st.integers(-4, 4),
    st.integers(-LONGEST, LONGEST),
    st.integers(-2**31, 2**31 - 1),
)
windows = st.none() | st.tuples(bounds, bounds)
lengths = st.integers(1, 4) | st.integers(1, LONGEST)
seeds = st.integers(0, 2**64 - 1)
dropouts = st.none() | st.builds(Dropout, st.sampled_from([0.1, 0.5, 0.9]), seeds, seeds, st.integers(0, 2**20))


@st.composite
def layouts(draw, unit, columns_anywhere=False, may_share=False):
    """Dimensions in any order; the columns innermost, unless columns_anywhere."""
    order = tuple(draw(st.permutations(range(4)))) if columns_anywhere else (3, *draw(st.permutations(range(3))))
    gaps = draw(st.tuples(*[st.sampled_from([0, 1, 3, 9])] * 3))
    shared = tuple(i for i in range(4) if draw(st.booleans())) if may_share else ()
    return Layout(order, (*gaps, 0), unit, draw(st.integers(0, 3)), shared)


@st.composite
def cases(draw, varlen=False, bias=False):
    """A Case of random everything; varlen: with sequences of varying length, a tenth of them empty."""
    dtype = draw(st.sampled_from([torch.float16, torch.bfloat16, torch.float32]))
    d_qk = draw(head_dims)
    d_vo = draw(st.just(d_qk) | head_dims)
    # What the aligned kernels are given is aligned, and fills their tile.
    general = dtype == torch.float32 or d_qk != d_vo or d_qk not in HEAD_DIMS or draw(st.booleans())
    unit = 1 if general else 8
    heads_k = draw(st.integers(1, 2))
    problem = {"heads": (heads_k * draw(st.sampled_from([1, 1, 2, 3])), heads_k)}
    if varlen:
        length = st.integers(0, 9).flatmap(lambda number: lengths if number else st.just(0))
        pairs = draw(st.lists(st.tuples(length, length), min_size=1, max_size=5).filter(lambda x: all(map(any, zip(*x)))))
        problem.update(seqlens=pairs, varlen_type=draw(st.sampled_from([COMPACT, PADDED, STRIDED])),
                       spare_rows=draw(st.integers(0, 3)))
        problem["lse_compact"] = problem["varlen_type"] != PADDED and draw(st.booleans())
    else:
        problem.update(seqlens=(draw(lengths), draw(lengths)), batch=draw(st.integers(1, 2)))
    layout_of = {name: draw(layouts(unit)) for name in ROW_TENSORS}
    if bias:
        problem.update(bias=draw(layouts(unit, general, may_share=True)), has_db=draw(st.booleans()))
        layout_of["db"] = draw(layouts(unit, general))
    return Case(
        dtype, (d_qk, d_vo), window=draw(windows), layouts=layout_of, dropout=draw(dropouts), base2=draw(st.booleans()),
        sm_scale=draw(st.sampled_from([None, 0.0, -0.1, 0.3])), general=general,
        blocks=draw(st.sampled_from([(32, 16), (16, 32), (32, 32), (64, 16)])), numbers=draw(st.integers(0, 2**32)), **problem)
