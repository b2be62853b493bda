"""Flash attention, backward: what the kernels share.

With the scores S and P = power(S - lse) as in the forward (scores.py), and a dropout mask K whose
kept elements are 1 / (1 - p):

    Delta = rowsum(Out * dO)             dP = dO V^T
    dS = P * (K * dP - Delta)            dV = (K * P)^T dO
    dQ = sm_scale * dS K                 dK = sm_scale * dS^T Q              dBias = dS

T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning",
arXiv:2307.08691, algorithm 2, without its atomic additions to dQ: dK and dV are summed over the
queries by programs that own keys, dQ over the keys by programs that own queries, and both
compute S and dP again. So every sum has one order, and results are the same from run to run.

Both kinds of program walk the other side in blocks. A tile here is [OWN, BLOCK]: own rows of
the program times rows of the block; queries times keys for dQ, keys times queries for dK and dV.
"""

import triton
import triton.language as tl

from kernels.flash.masks import end_key, first_key, key_blocks
from kernels.flash.rng import drop_threshold, keep_scale
from kernels.flash.scores import power, scores
from kernels.flash.tiles import dot_pieces


@triton.jit
def seen_blocks(own_first, own_last, own, back, ahead, seqlen, WINDOWED: tl.constexpr, BLOCK: tl.constexpr):
    """What rows own_first..own_last of one side see of the `seqlen` rows of the other side.

    Row i sees [i - back, i + ahead]: a query with (window_left, window_right), a key, the window
    being turned over, with (window_right, window_left).
    Returns the [first, end) of each row in own, of the tile (some row sees it), and the blocks
    (a, b, c, d) of masks.key_blocks.
    """
    if WINDOWED:
        row_first = first_key(own, back, seqlen)[:, None]
        row_end = end_key(own, ahead, seqlen)[:, None]
        tile_first = first_key(own_first, back, seqlen)
        tile_end = end_key(own_last, ahead, seqlen)
        full_first = first_key(own_last, back, seqlen)
        full_end = end_key(own_first, ahead, seqlen)
    else:
        row_first = 0
        row_end = seqlen
        tile_first = 0
        tile_end = seqlen
        full_first = 0
        full_end = seqlen
    # A tile past the end of its sequence (varlen) sees nothing.
    tile_end = tl.where(own_last < own_first, 0, tile_end)
    full_end = tl.where(own_last < own_first, 0, full_end)
    a, b, c, d = key_blocks(tile_first, tile_end, full_first, full_end, BLOCK)
    return row_first, row_end, tile_first, tile_end, a, b, c, d


@triton.jit
def masked_block(i, a, b, c):
    """Block i of those that need a mask: [a, b), then [c, d)."""
    return tl.where(i < b - a, a + i, c + i - (b - a))


@triton.jit
def dropout_state(
    dropout_p, philox_seed, philox_offset1, philox_offset2, has_dropout, DROPOUT: tl.constexpr,
):
    """(seed, offset, threshold, 1 / (1 - p)); the latter is 1 without dropout, and the others are not used."""
    if DROPOUT:
        dropped = has_dropout != 0
        seed = tl.load(philox_seed, mask=dropped, other=0)
        offset = tl.load(philox_offset1, mask=dropped, other=0) + philox_offset2
        return seed, offset, drop_threshold(dropout_p), tl.where(dropped, keep_scale(dropout_p), 1.0)
    else:
        return 0, 0, 0, 1.0


@triton.jit
def gradients(
    own_qk, block_qk,  # Q and K, or K and Q
    own_vo, block_vo,  # dO and V, or V and dO
    bias,  # fp32, or None
    lse, delta,  # of the queries, [OWN, 1] or [1, BLOCK]; lse in the unit of scores
    visible,  # what the window keeps; read if MASKED
    kept, kept_scale,  # what dropout keeps, or None, and 1 / (1 - p)
    scale,
    MASKED: tl.constexpr,
):
    """K * P without its factor 1 / (1 - p), and dS: fp32 [OWN, BLOCK]."""
    qk = dot_pieces(own_qk, block_qk)
    s = scores(qk, scale, bias)
    if MASKED:
        s = tl.where(visible, s, float("-inf"))
    # A row that sees no key has lse +inf, and P = 0. Huge scores may exceed an lse that was rounded to
    # fewer digits than they differ by; P is at most 1 all the same.
    p = power(tl.minimum(s - lse, 0.0, propagate_nan=tl.PropagateNan.ALL), bias is not None)
    dp = dot_pieces(own_vo, block_vo)
    kept_p = p
    if kept is not None:
        kept_p = tl.where(kept, p, 0.0)
        dp = tl.where(kept, dp * kept_scale, 0.0)
    ds = p * (dp - delta)
    if MASKED:
        ds = tl.where(visible, ds, 0.0)  # not 0 * NaN, if dP holds one
    return kept_p, ds
