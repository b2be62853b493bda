"""Dropout: which elements of P are kept.

Philox-4x32-10 (J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011) with

    key     = seed
    counter = offset + ((i * num_head_q + h) * max_seqlen_q + m) * ceil(max_seqlen_k / 4) + n // 4

gives four words, and element (m, n) of head h of sequence i is decided by word n % 4: it is
kept iff int32(word) > int32((p - 0.5) * 2^32), p in fp32. So the mask depends on
no block size, and tests/kernels/philox.py makes the same one on the host. Key and counter are 64 bits:
words (low, high) of the key, (low, high, 0, 0) of the counter.
"""

import triton
import triton.language as tl


@triton.jit
def row_counters(offset, head_index, rows, max_seqlen_q, max_seqlen_k):
    """Counters of column 0, int64 like rows [M]. head_index = i * num_head_q + h."""
    row = head_index.to(tl.int64) * max_seqlen_q + rows
    return offset + row * tl.cdiv(max_seqlen_k, 4)


@triton.jit
def drop_threshold(dropout_p):
    """A word is kept iff it is greater, as int32. p = 1 keeps none."""
    threshold = (tl.cast(dropout_p, tl.float32) - 0.5) * 4294967296.0
    return tl.minimum(threshold.to(tl.int64), 2147483647).to(tl.int32)


@triton.jit
def keep_scale(dropout_p):
    """1 / (1 - p), by which kept elements are multiplied; finite for p = 1."""
    return 1.0 / tl.where(dropout_p < 1.0, 1.0 - dropout_p, 1.0)


@triton.jit
def interleave_4(a, b, c, d):
    """Four [M, N / 4] as [M, N]: columns a0 b0 c0 d0 a1 b1 ..."""
    return tl.interleave(tl.interleave(a, c), tl.interleave(b, d))


@triton.jit
def philox_4(seed, counters, first_column, COLUMNS: tl.constexpr):
    """The words of the columns from first_column (a multiple of 4) on, as four int32 [M, COLUMNS / 4]."""
    groups = first_column // 4 + tl.arange(0, COLUMNS // 4)
    a, b, c, d = tl.randint4x(seed, counters[:, None] + groups[None, :])  # uint32
    return (a.to(tl.int32, bitcast=True), b.to(tl.int32, bitcast=True),
            c.to(tl.int32, bitcast=True), d.to(tl.int32, bitcast=True))


@triton.jit
def random_words(seed, counters, first_column, COLUMNS: tl.constexpr):
    """int32 [M, COLUMNS]: the words that decide. counters: row_counters() [M]."""
    a, b, c, d = philox_4(seed, counters, first_column, COLUMNS)
    return interleave_4(a, b, c, d)


@triton.jit
def keep_tile(seed, counters, first_column, threshold, COLUMNS: tl.constexpr):
    """bool [M, COLUMNS]: what dropout keeps. Compared before interleaving: a bit moves more cheaply than a word."""
    a, b, c, d = philox_4(seed, counters, first_column, COLUMNS)
    return interleave_4(a > threshold, b > threshold, c > threshold, d > threshold)
