"""What the tests of the kernels are checked with: bounds, the ledger, layouts."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu import ledger
from tests.kernels.bounds import within
from tests.kernels.launch_attn_fwd import LAYOUTS, Guarded, elements, normal
from tests.kernels.strategies import layouts


@pytest.fixture
def rows(monkeypatch):
    """What the ledger of this test alone has: [(op, dtype, output, worst)]."""
    monkeypatch.setattr(ledger, "_worst", {})
    return lambda: [tuple(row[name] for name in ("op", "dtype", "output", "worst")) for row in ledger.report()["ratios"]]


def test_within(rows):
    within("attn_fwd", torch.float16, "out", 1.5, 1.0, 2.0)
    within("attn_fwd", torch.float16, "out", 0.0, 0.0, 2.0)
    assert rows() == [("attn_fwd", "float16", "out", 1.5)]
    with pytest.raises(AssertionError, match="out of attn_fwd errs 2.50 x the floor; allowed 2.0"):
        within("attn_fwd", torch.float16, "out", 2.5, 1.0, 2.0)
    assert rows() == [("attn_fwd", "float16", "out", 2.5)]  # the table has what failed, too


@pytest.mark.parametrize("worst, floor", [(math.nan, 1.0), (math.inf, 1.0), (1e-30, 0.0), (math.nan, 0.0)])
def test_never_within(worst, floor, rows):
    with pytest.raises(AssertionError):
        within("attn_bwd split", torch.float32, "dq", worst, floor, 3.0)
    assert not rows()[0][3] <= 3.0


shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 5), st.integers(1, 5))


# Each element of a tensor has a place of its own, with guards before and after.
@settings(max_examples=100)
@given(shapes, layouts(1, columns_anywhere=True) | layouts(8) | st.sampled_from(sorted(LAYOUTS)))
def test_layouts(shape, layout):
    guarded = Guarded(shape, torch.float32, layout)
    count = math.prod(shape)
    guarded.view.copy_(torch.arange(count).view(shape))
    assert guarded.view.flatten().tolist() == list(range(count))
    assert int((~guarded.buffer.isnan()).sum()) == count
    assert guarded.buffer[:32].isnan().all() and guarded.buffer[-32:].isnan().all()
    guarded.buffer[3] = 1.0
    assert not guarded.untouched_around()


@given(shapes, layouts(1, columns_anywhere=True, may_share=True))
def test_shared_elements(shape, layout):
    view = normal(shape, torch.float32, layout, torch.Generator().manual_seed(0)).view
    assert [view.stride(i) == 0 for i in range(4)] == [i in layout.shared for i in range(4)]
    assert torch.equal(view, elements(view).expand(shape)) and not view.isnan().any()


@given(shapes, layouts(8))
def test_aligned_layouts(shape, layout):
    view = Guarded(shape, torch.float16, layout).view
    assert all(step % 8 == 0 for step in view.stride()[:3]) and view.storage_offset() % 8 == 0 and view.stride(3) == 1
