"""Flash attention, forward.

    S = sm_scale * Q K^T + B        P = softmax(S)        Out = dropout(P) V        L = log(sum(exp(S)))

T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work
Partitioning", arXiv:2307.08691, algorithm 1. One program makes one tile of Out:
BLOCK_M queries of one head. It walks the keys in blocks of BLOCK_N and keeps, per
query, the largest score m, the sum l of exponentials and the row acc of P V:

    S = scores of Q K^T and B        m' = max(m, rowmax S)
    P = power(S - m')                alpha = power(m - m')
    l = l * alpha + rowsum P         acc = acc * alpha + (P where dropout keeps it) V

scores.py says in which unit S is. It is rounded once, and maximum and exponent come from
that one value, so that the largest exponent is exactly 0 however large the scores are. The
kernel must therefore be compiled without fusing the multiplication by scale and the
subtraction of m' (enable_fp_fusion=False). l knows nothing of dropout; 1 / (1 - p) is part of the division by l.

GENERAL: nothing is promised about head dims, strides and bases, and bias and dropout are decided at
run time, so that one functional serves every call of its head_dim.
"""

import triton
import triton.language as tl

from kernels.flash.masks import end_key, first_key, key_blocks, resolve_window
from kernels.flash.rng import drop_threshold, keep_scale, keep_tile, row_counters
from kernels.flash.scores import load_bias, logsumexp, lse_unit, power, score_scale, scores
from kernels.flash.sequences import sequence
from kernels.flash.tiles import (
    accumulate_pieces,
    dot_pieces,
    load_pieces,
    scale_pieces,
    store_pieces,
    zero_pieces,
)

# m starts here, not at -inf: m - m' is then never inf - inf. A row that has seen no
# key has l = 0 and acc = 0, whatever alpha is.
LOWEST = tl.constexpr(-3.4028234663852886e38)


@triton.jit
def attend(
    acc, l, m,
    block_begin, block_end,  # blocks of keys to visit
    q, K, V, B, stride_kn, stride_vn, stride_bm, stride_bn, scale,
    rows, row_ok,  # [BLOCK_M]
    row_first, row_end,  # [BLOCK_M, 1] or scalar: a row keeps the keys [row_first, row_end)
    tile_first, tile_end,  # the keys that some row keeps
    head_dim_qk, head_dim_vo, has_bias, has_dropout,
    seed, counters, threshold,  # rng.py; used if DROPOUT
    HEAD_DIM: tl.constexpr, GENERAL: tl.constexpr, BIAS: tl.constexpr, DROPOUT: tl.constexpr,
    BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):
    """Adds the keys of some blocks to acc, l and m. MASKED: not every row keeps every key."""
    offs_n = tl.arange(0, BLOCK_N)
    for block in tl.range(block_begin, block_end):
        start = block * BLOCK_N
        keys = start + offs_n  # [BLOCK_N]
        # The block's base is a scalar, so that the tile of offsets does not change in the loop.
        start_64 = start.to(tl.int64)
        in_tile = (keys >= tile_first) & (keys < tile_end)
        k = load_pieces(K + start_64 * stride_kn, offs_n, stride_kn, in_tile, head_dim_qk,
                        HEAD_DIM, MASKED, GENERAL)  # [BLOCK_N, HEAD_DIM]
        bias = None
        if BIAS:
            bias_ok = row_ok[:, None]
            if MASKED:
                bias_ok = bias_ok & in_tile[None, :]
            if GENERAL:
                bias_ok = bias_ok & (has_bias != 0)
            bias = load_bias(B + start_64 * stride_bn, rows, offs_n, stride_bm, stride_bn, bias_ok)
        s = scores(dot_pieces(q, k), scale, bias)  # [BLOCK_M, BLOCK_N]
        if MASKED:
            keep = (keys[None, :] >= row_first) & (keys[None, :] < row_end)
            s = tl.where(keep, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))  # [BLOCK_M]
        p = power(s - m_new[:, None], BIAS)  # [BLOCK_M, BLOCK_N]
        alpha = power(m - m_new, BIAS)  # [BLOCK_M]
        l = l * alpha + tl.sum(p, 1)
        if DROPOUT:
            if has_dropout != 0:
                p = tl.where(keep_tile(seed, counters, start, threshold, BLOCK_N), p, 0.0)
        v = load_pieces(V + start_64 * stride_vn, offs_n, stride_vn, in_tile, head_dim_vo,
                        HEAD_DIM, MASKED, GENERAL)  # [BLOCK_N, HEAD_DIM]
        acc = accumulate_pieces(acc, alpha, p.to(V.dtype.element_ty), v)
        m = m_new
    return acc, l, m


@triton.jit
def forward_tile(
    program,  # which tile, head and sequence: in one line, tiles of a head, then heads, then sequences
    Q, K, V, B, Out, L, sm_scale,  # these and the rest: attn_fwd
    strides_q, strides_k, strides_v, strides_o, strides_b, strides_l,
    num_head_q, num_head_k, max_seqlen_q, max_seqlen_k,
    cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
    head_dim_qk, head_dim_vo, window_left, window_right,
    has_bias, has_dropout, dropout_p,
    philox_seed, philox_offset1, philox_offset2, philox_seed_output, philox_offset_output,
    lse_scale, store_lse, lse_compact,
    HEAD_DIM: tl.constexpr, WINDOWED: tl.constexpr, GENERAL: tl.constexpr, BIAS: tl.constexpr,
    DROPOUT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """Makes one tile of Out and L."""
    num_tiles = tl.cdiv(max_seqlen_q, BLOCK_M)
    tile = program % num_tiles
    head_index = program // num_tiles  # index * num_head_q + head
    if WINDOWED:
        tile = num_tiles - 1 - tile  # causal: the tile with the most keys starts first
    head = (head_index % num_head_q).to(tl.int64)
    index = head_index // num_head_q
    head_k = head // (num_head_q // num_head_k)
    zq, row_q, seqlen_q = sequence(index, max_seqlen_q, cu_seqlens_q, seq_starts_q, varlen_type)
    zk, row_k, seqlen_k = sequence(index, max_seqlen_k, cu_seqlens_k, seq_starts_k, varlen_type)
    Q += zq * strides_q[0] + head * strides_q[1] + row_q * strides_q[2]
    K += zk * strides_k[0] + head_k * strides_k[1] + row_k * strides_k[2]
    V += zk * strides_v[0] + head_k * strides_v[1] + row_k * strides_v[2]
    Out += zq * strides_o[0] + head * strides_o[1] + row_q * strides_o[2]
    L += index.to(tl.int64) * strides_l[0] + head * strides_l[1] + tl.where(lse_compact != 0, row_q, 0)

    first_row = tile * BLOCK_M
    last_row = tl.minimum(first_row + BLOCK_M, seqlen_q) - 1
    rows = first_row + tl.arange(0, BLOCK_M)
    row_ok = rows < seqlen_q

    # Keys of each row, of the tile (some row keeps them), and full (every row keeps them).
    if WINDOWED:
        left, right = resolve_window(window_left, window_right, seqlen_q, seqlen_k)
        row_first = first_key(rows, left, seqlen_k)[:, None]
        row_end = end_key(rows, right, seqlen_k)[:, None]
        tile_first = first_key(first_row, left, seqlen_k)
        tile_end = end_key(last_row, right, seqlen_k)
        full_first = first_key(last_row, left, seqlen_k)
        full_end = end_key(first_row, right, seqlen_k)
    else:
        row_first = 0
        row_end = seqlen_k
        tile_first = 0
        tile_end = seqlen_k
        full_first = 0
        full_end = seqlen_k
    # A tile of no rows, past the end of a short sequence, visits no keys.
    has_rows = first_row < seqlen_q
    tile_end = tl.where(has_rows, tile_end, tile_first)
    full_end = tl.where(has_rows, full_end, 0)
    a, b, c, d = key_blocks(tile_first, tile_end, full_first, full_end, BLOCK_N)

    seed = 0
    counters = 0
    threshold = 0
    out_scale = 1.0
    if DROPOUT:
        dropout = has_dropout != 0
        seed = tl.load(philox_seed, mask=dropout, other=0)
        offset = tl.load(philox_offset1, mask=dropout, other=0) + philox_offset2
        counters = row_counters(offset, head_index, rows, max_seqlen_q, max_seqlen_k)  # [BLOCK_M]
        threshold = drop_threshold(dropout_p)
        out_scale = tl.where(dropout, keep_scale(dropout_p), 1.0)
        first = dropout & (program == 0)
        tl.store(philox_seed_output, seed, mask=first & (philox_seed_output.to(tl.int64) != 0))
        tl.store(philox_offset_output, offset, mask=first & (philox_offset_output.to(tl.int64) != 0))
    if BIAS:
        B += zq * strides_b[0] + head * strides_b[1]

    q = load_pieces(Q, rows, strides_q[2], row_ok, head_dim_qk, HEAD_DIM, True, GENERAL)
    scale = score_scale(sm_scale, BIAS)

    m = tl.full([BLOCK_M], LOWEST, dtype=tl.float32)
    l = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = zero_pieces(BLOCK_M, HEAD_DIM, Q.dtype.element_ty)  # [BLOCK_M, HEAD_DIM]
    arguments = (q, K, V, B, strides_k[2], strides_v[2], strides_b[2], strides_b[3], scale, rows, row_ok,
                 row_first, row_end, tile_first, tile_end, head_dim_qk, head_dim_vo, has_bias, has_dropout,
                 seed, counters, threshold)
    if GENERAL:  # its loads are masked anyway; one run is a third of the code
        acc, l, m = attend(acc, l, m, a, d, *arguments, HEAD_DIM, GENERAL, BIAS, DROPOUT, BLOCK_N, MASKED=True)
    else:
        if WINDOWED:  # else a == b
            acc, l, m = attend(acc, l, m, a, b, *arguments, HEAD_DIM, GENERAL, BIAS, DROPOUT, BLOCK_N, MASKED=True)
        acc, l, m = attend(acc, l, m, b, c, *arguments, HEAD_DIM, GENERAL, BIAS, DROPOUT, BLOCK_N, MASKED=False)
        acc, l, m = attend(acc, l, m, c, d, *arguments, HEAD_DIM, GENERAL, BIAS, DROPOUT, BLOCK_N, MASKED=True)

    # A row that kept no key: Out 0, logsumexp +inf.
    empty = l == 0.0
    acc = scale_pieces(acc, tl.div_rn(out_scale, tl.where(empty, 1.0, l))[:, None])  # / is an approximation on NVIDIA
    store_pieces(Out, rows, strides_o[2], row_ok, head_dim_vo, acc, HEAD_DIM, GENERAL)
    lse = tl.where(empty, float("inf"), logsumexp(m, l, BIAS) * lse_unit(lse_scale, BIAS))
    tl.store(L + rows, lse, mask=row_ok & (store_lse != 0))


@triton.jit
def attn_fwd(
    Q, K, V,  # (batch, head, row, head_dim); the head_dim stride is 1; rows of sequences: sequences.py
    B,  # bias (batch, num_head_q, seqlen_q, seqlen_k); read if BIAS and has_bias; varlen_type 0 only
    Out,
    L,  # logsumexp, fp32; may be null
    sm_scale,
    stride_qz, stride_qh, stride_qm,  # in elements, int64
    stride_kz, stride_kh, stride_kn,
    stride_vz, stride_vh, stride_vn,
    stride_oz, stride_oh, stride_om,
    stride_bz, stride_bh, stride_bm, stride_bn,
    stride_lz, stride_lh,  # of a sequence and a head; rows are contiguous
    num_head_q, num_head_k,  # num_head_q % num_head_k == 0
    max_seqlen_q, max_seqlen_k,  # the seqlens, if varlen_type is 0
    cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,  # sequences.py
    head_dim_qk, head_dim_vo,  # columns in use; read if GENERAL
    window_left, window_right,  # masks.py; read if WINDOWED
    has_bias, has_dropout,  # read if GENERAL; otherwise what BIAS and DROPOUT say
    dropout_p,  # this and the rest of dropout: read if DROPOUT and has_dropout
    philox_seed, philox_offset1,  # *int64: the bits of uint64
    philox_offset2,  # int64
    philox_seed_output, philox_offset_output,  # *int64; each may be null
    lse_scale,  # ln(2): logsumexp in natural logarithms; 1: in base 2
    store_lse,  # 0: L is not written
    lse_compact,  # 1: a sequence's rows start in L where they start in Q; 0: at 0
    HEAD_DIM: tl.constexpr,
    WINDOWED: tl.constexpr,
    GENERAL: tl.constexpr,
    BIAS: tl.constexpr,
    DROPOUT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    forward_tile(
        tl.program_id(0), Q, K, V, B, Out, L, sm_scale,
        (stride_qz, stride_qh, stride_qm), (stride_kz, stride_kh, stride_kn), (stride_vz, stride_vh, stride_vn),
        (stride_oz, stride_oh, stride_om), (stride_bz, stride_bh, stride_bm, stride_bn), (stride_lz, stride_lh),
        num_head_q, num_head_k, max_seqlen_q, max_seqlen_k,
        cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
        head_dim_qk, head_dim_vo, window_left, window_right,
        has_bias, has_dropout, dropout_p,
        philox_seed, philox_offset1, philox_offset2, philox_seed_output, philox_offset_output,
        lse_scale, store_lse, lse_compact,
        HEAD_DIM, WINDOWED, GENERAL, BIAS, DROPOUT, BLOCK_M, BLOCK_N)
