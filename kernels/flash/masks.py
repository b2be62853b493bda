"""Which keys a query sees, and which blocks of keys a tile of queries must visit.

Query m keeps key n iff  m - window_left <= n <= m + window_right  and  0 <= n < seqlen_k.
Windows may be negative or huge, so sums are taken in 64 bits and clamped to the
sequence before they become 32-bit key indices.
"""

import triton
import triton.language as tl

# A causal window on one side; the other side is unbounded as far as it is concerned.
TOP_LEFT_ALIGNED = tl.constexpr(-2147483647)
BOTTOM_RIGHT_ALIGNED = tl.constexpr(-2147483646)


@triton.jit
def resolve_window(window_left, window_right, seqlen_q, seqlen_k):
    """Sentinels become numbers, each side by itself; both as int64."""
    left = window_left.to(tl.int64)
    right = window_right.to(tl.int64)
    left_sentinel = (window_left == TOP_LEFT_ALIGNED) | (window_left == BOTTOM_RIGHT_ALIGNED)
    left = tl.where(left_sentinel, seqlen_q.to(tl.int64), left)
    right = tl.where(window_right == TOP_LEFT_ALIGNED, 0, right)
    right = tl.where(window_right == BOTTOM_RIGHT_ALIGNED, seqlen_k.to(tl.int64) - seqlen_q, right)
    return left, right


@triton.jit
def first_key(m, left, seqlen_k):
    """The first key that query m keeps, as int32 in [0, seqlen_k]."""
    n = m.to(tl.int64) - left
    return tl.minimum(tl.maximum(n, 0), seqlen_k).to(tl.int32)


@triton.jit
def end_key(m, right, seqlen_k):
    """One past the last key that query m keeps, as int32 in [0, seqlen_k]."""
    n = m.to(tl.int64) + right + 1
    return tl.minimum(tl.maximum(n, 0), seqlen_k).to(tl.int32)


@triton.jit
def key_blocks(first, end, full_first, full_end, BLOCK_N: tl.constexpr):
    """Cuts the keys [first, end) that some query of a tile keeps into blocks of BLOCK_N.

    Every query keeps [full_first, full_end). Returns (a, b, c, d): blocks [b, c) need no
    mask; [a, b), cut by the left edge of the window, and [c, d) need one. When no block
    is free of a mask, all are in [c, d).
    """
    a = first // BLOCK_N
    d = tl.maximum(tl.cdiv(end, BLOCK_N), a)
    b = tl.cdiv(full_first, BLOCK_N)
    c = full_end // BLOCK_N
    none_full = b >= c
    b = tl.where(none_full, a, b)
    c = tl.where(none_full, a, c)
    return a, b, c, d
