"""What dropout does, written out: for tests, and for callers that replay a mask.

debug_simulate_encoded_softmax: R = +0.5 where an element of P is kept, -0.5 where it is dropped.
debug_fill_dropout_rng: R = the 32-bit word that decides (rng.py), or a number in [0, 1) made of it.

One program makes BLOCK_M rows of one head of R (batch, num_head_q, max_seqlen_q, max_seqlen_k).
"""

import triton
import triton.language as tl

from kernels.flash.rng import drop_threshold, keep_tile, random_words, row_counters


@triton.jit
def rows_of_program(R, stride_rz, stride_rh, stride_rm, num_head_q, max_seqlen_q, BLOCK_M: tl.constexpr):
    """(pointers [BLOCK_M, 1], batch * num_head_q + head, rows [BLOCK_M])"""
    num_tiles = tl.cdiv(max_seqlen_q, BLOCK_M)
    program = tl.program_id(0)
    head_index = program // num_tiles
    rows = program % num_tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    R += (head_index // num_head_q).to(tl.int64) * stride_rz + (head_index % num_head_q).to(tl.int64) * stride_rh
    return R + rows.to(tl.int64)[:, None] * stride_rm, head_index, rows


@triton.jit
def debug_simulate_encoded_softmax(
    R, stride_rz, stride_rh, stride_rm, stride_rn,
    dropout_p,
    num_head_q, max_seqlen_q, max_seqlen_k,
    philox_seed, philox_offset1,  # *int64: the bits of uint64
    philox_offset2,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    ptrs, head_index, rows = rows_of_program(R, stride_rz, stride_rh, stride_rm, num_head_q, max_seqlen_q, BLOCK_M)
    drops = dropout_p > 0  # else callers leave anything in the two pointers
    seed = tl.load(philox_seed, mask=drops, other=0)
    offset = tl.load(philox_offset1, mask=drops, other=0) + philox_offset2
    counters = row_counters(offset, head_index, rows, max_seqlen_q, max_seqlen_k)
    threshold = drop_threshold(dropout_p)
    for start in tl.range(0, max_seqlen_k, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        keep = keep_tile(seed, counters, start, threshold, BLOCK_N)  # [BLOCK_M, BLOCK_N]
        tile = tl.where(keep, 0.5, -0.5).to(R.dtype.element_ty)
        inside = (rows < max_seqlen_q)[:, None] & (cols < max_seqlen_k)[None, :]
        tl.store(ptrs + cols.to(tl.int64)[None, :] * stride_rn, tile, mask=inside)


@triton.jit
def uniform(words):
    """fp32 in [0, 1): min(ceil((word + 2^31) / 2^8), 2^24 - 1) / 2^24, of int32 words.

    Rounded up, so that it is greater than a dropout_p that is a multiple of 2^-24 (any from 0.5 on is)
    exactly where the word is greater than that p's drop_threshold.
    """
    steps = (words.to(tl.int64) + 2147483648 + 255) // 256
    return tl.minimum(steps, 16777215).to(tl.float32) * (1 / 16777216)


@triton.jit
def debug_fill_dropout_rng(
    R, stride_rz, stride_rh, stride_rm, stride_rn,
    num_head_q, max_seqlen_q, max_seqlen_k,
    philox_seed, philox_offset,  # int64: the bits of uint64
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    ptrs, head_index, rows = rows_of_program(R, stride_rz, stride_rh, stride_rm, num_head_q, max_seqlen_q, BLOCK_M)
    counters = row_counters(philox_offset, head_index, rows, max_seqlen_q, max_seqlen_k)
    for start in tl.range(0, max_seqlen_k, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        words = random_words(philox_seed, counters, start, BLOCK_N)  # [BLOCK_M, BLOCK_N]
        if R.dtype.element_ty == tl.float32:
            numbers = uniform(words)
        else:
            numbers = words
        inside = (rows < max_seqlen_q)[:, None] & (cols < max_seqlen_k)[None, :]
        tl.store(ptrs + cols.to(tl.int64)[None, :] * stride_rn, numbers, mask=inside)
