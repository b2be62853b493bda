"""Flash attention, backward: dQ and dBias (formulas: bwd_common.py).

One program makes BLOCK_M rows of dQ of one query head, and of dBias. It walks the keys that
they see, BLOCK_N at a time. Its tiles are queries times keys:

    S = scores of Q K^T and bias               dP = dO V^T         dQ += dS K         dBias = dS
"""

import triton
import triton.language as tl

from kernels.flash.bwd_common import dropout_state, gradients, masked_block, seen_blocks
from kernels.flash.masks import resolve_window
from kernels.flash.rng import keep_tile, row_counters
from kernels.flash.scores import load_bias, lse_of_scores, score_scale
from kernels.flash.sequences import sequence
from kernels.flash.tiles import add_product, load_pieces, row_dot, scale_pieces, store_pieces, zero_pieces


@triton.jit
def add_keys(
    dq, q, do, lse, delta,
    K, V, B, DB,  # of the head
    stride_kn, stride_vn, stride_bm, stride_bn, stride_dbm, stride_dbn,
    rows, row_ok, row_first, row_end, tile_first, tile_end, a, b, c, d,  # bwd_common.seen_blocks()
    counters, dropout,  # rng.row_counters(); bwd_common.dropout_state()
    scale, seqlen_k, head_dim_qk, head_dim_vo, has_bias, has_db, has_dropout,
    HEAD_DIM: tl.constexpr, GENERAL: tl.constexpr, BIAS: tl.constexpr, DROPOUT: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):
    """Adds some blocks of keys to dq: those that need a mask, or the others."""
    offs_n = tl.arange(0, BLOCK_N)
    seed, offset, threshold, kept_scale = dropout
    for i in tl.range(0, (b - a) + (d - c) if MASKED else c - b):
        block = masked_block(i, a, b, c) if MASKED else b + i
        start = block * BLOCK_N
        start_64 = start.to(tl.int64)
        keys = start + offs_n
        in_tile = (keys >= tile_first) & (keys < tile_end)
        k = load_pieces(K + start_64 * stride_kn, offs_n, stride_kn, in_tile, head_dim_qk,
                        HEAD_DIM, MASKED, GENERAL)  # [BLOCK_N, HEAD_DIM]
        v = load_pieces(V + start_64 * stride_vn, offs_n, stride_vn, in_tile, head_dim_vo,
                        HEAD_DIM, MASKED, GENERAL)  # [BLOCK_N, HEAD_DIM]
        in_sequence = row_ok[:, None] & (keys < seqlen_k)[None, :]
        bias = None
        if BIAS:
            bias = load_bias(B + start_64 * stride_bn, rows, offs_n, stride_bm, stride_bn,
                             in_sequence & (has_bias != 0))
        kept = None
        if DROPOUT:
            kept = tl.full([BLOCK_M, BLOCK_N], 1, tl.int1)
            if has_dropout != 0:
                kept = keep_tile(seed, counters, start, threshold, BLOCK_N)
        visible = (keys[None, :] >= row_first) & (keys[None, :] < row_end)
        p, ds = gradients(q, k, do, v, bias, lse[:, None], delta[:, None], visible,
                          kept, kept_scale, scale, MASKED)
        if BIAS:
            db_ptrs = (DB + start_64 * stride_dbn + rows.to(tl.int64)[:, None] * stride_dbm
                       + offs_n.to(tl.int64)[None, :] * stride_dbn)
            tl.store(db_ptrs, ds.to(DB.dtype.element_ty), mask=in_sequence & (has_db != 0))
        dq = add_product(dq, ds.to(k[0].dtype), k)
    return dq


@triton.jit
def clear_unseen(
    DB, stride_dbm, stride_dbn, rows, row_ok, blocks, a, d, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """dBias is 0 in the blocks of keys, [0, a) and [d, blocks), that no row of the tile sees."""
    offs_n = tl.arange(0, BLOCK_N)
    zero = tl.zeros([BLOCK_M, BLOCK_N], DB.dtype.element_ty)
    for i in tl.range(0, a + (blocks[0] - d)):
        keys = masked_block(i, 0, a, d) * BLOCK_N + offs_n
        ptrs = DB + rows.to(tl.int64)[:, None] * stride_dbm + keys.to(tl.int64)[None, :] * stride_dbn
        tl.store(ptrs, zero, mask=row_ok[:, None] & (keys < blocks[1])[None, :])


@triton.jit
def dq_tile(
    tile, head, index,  # which rows, query head and sequence
    Q, K, V, B, Out, DO, DQ, DB, L, Delta,  # Delta or Out may be None
    sm_scale,
    strides_q, strides_k, strides_v, strides_b, strides_o, strides_do, strides_dq, strides_db, strides_l,
    num_head_q, num_head_k, max_seqlen_q, max_seqlen_k,
    cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
    head_dim_qk, head_dim_vo, window_left, window_right,
    has_bias, has_db, has_dropout, dropout, lse_scale, lse_compact,
    HEAD_DIM: tl.constexpr, WINDOWED: tl.constexpr, GENERAL: tl.constexpr, BIAS: tl.constexpr,
    DROPOUT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    z_q, q_0, seqlen_q = sequence(index, max_seqlen_q, cu_seqlens_q, seq_starts_q, varlen_type)
    z_k, k_0, seqlen_k = sequence(index, max_seqlen_k, cu_seqlens_k, seq_starts_k, varlen_type)
    index = index.to(tl.int64)
    head = head.to(tl.int64)
    head_k = head // (num_head_q // num_head_k)
    Q += z_q * strides_q[0] + head * strides_q[1] + q_0 * strides_q[2]
    DO += z_q * strides_do[0] + head * strides_do[1] + q_0 * strides_do[2]
    DQ += z_q * strides_dq[0] + head * strides_dq[1] + q_0 * strides_dq[2]
    K += z_k * strides_k[0] + head_k * strides_k[1] + k_0 * strides_k[2]
    V += z_k * strides_v[0] + head_k * strides_v[1] + k_0 * strides_v[2]
    if BIAS:
        B += z_q * strides_b[0] + head * strides_b[1]
        DB += z_q * strides_db[0] + head * strides_db[1]
    l_offset = index * strides_l[0] + head * strides_l[1] + tl.where(lse_compact != 0, q_0, 0)

    first = tile * BLOCK_M
    last = tl.minimum(first + BLOCK_M, seqlen_q) - 1
    rows = first + tl.arange(0, BLOCK_M)
    row_ok = rows < seqlen_q
    left, right = 0, 0
    if WINDOWED:
        left, right = resolve_window(window_left, window_right, seqlen_q, seqlen_k)
    row_first, row_end, tile_first, tile_end, a, b, c, d = seen_blocks(
        first, last, rows, left, right, seqlen_k, WINDOWED, BLOCK_N)
    if GENERAL:  # one loop for all blocks
        b = a
        c = a

    q = load_pieces(Q, rows, strides_q[2], row_ok, head_dim_qk, HEAD_DIM, True, GENERAL)
    do = load_pieces(DO, rows, strides_do[2], row_ok, head_dim_vo, HEAD_DIM, True, GENERAL)
    lse = tl.load(L + l_offset + rows, mask=row_ok, other=float("inf"))
    lse = lse_of_scores(lse, lse_scale, BIAS)
    if Delta is None:
        out = load_pieces(Out + z_q * strides_o[0] + head * strides_o[1] + q_0 * strides_o[2], rows, strides_o[2],
                          row_ok, head_dim_vo, HEAD_DIM, True, GENERAL)
        delta = row_dot(out, do)
    else:
        delta = tl.load(Delta + l_offset + rows, mask=row_ok, other=0.0)
    counters = row_counters(dropout[1], index * num_head_q + head, rows, max_seqlen_q, max_seqlen_k)
    scale = score_scale(sm_scale, BIAS)

    dq = zero_pieces(BLOCK_M, HEAD_DIM, Q.dtype.element_ty)
    arguments = (q, do, lse, delta, K, V, B, DB,
                 strides_k[2], strides_v[2], strides_b[2], strides_b[3], strides_db[2], strides_db[3],
                 rows, row_ok, row_first, row_end, tile_first, tile_end, a, b, c, d,
                 counters, dropout, scale, seqlen_k, head_dim_qk, head_dim_vo, has_bias, has_db, has_dropout)
    dq = add_keys(dq, *arguments, HEAD_DIM, GENERAL, BIAS, DROPOUT, BLOCK_M, BLOCK_N, MASKED=True)
    if not GENERAL:
        dq = add_keys(dq, *arguments, HEAD_DIM, GENERAL, BIAS, DROPOUT, BLOCK_M, BLOCK_N, MASKED=False)
    if BIAS:
        if has_db != 0:
            blocks = (tl.cdiv(seqlen_k, BLOCK_N), seqlen_k)
            clear_unseen(DB, strides_db[2], strides_db[3], rows, row_ok, blocks, a, d, BLOCK_M, BLOCK_N)
    dq = scale_pieces(dq, sm_scale)
    store_pieces(DQ, rows, strides_dq[2], row_ok, head_dim_qk, dq, HEAD_DIM, GENERAL)


@triton.jit
def bwd_dq(
    Q, K, V, B, DO, DQ, DB,  # (batch, head, row, head_dim), the head_dim stride is 1; B, DB (batch, num_head_q, q, k)
    L, Delta,  # fp32, of attn_fwd and bwd_preprocess
    sm_scale,
    stride_qz, stride_qh, stride_qm,  # in elements, int64
    stride_kz, stride_kh, stride_kn,
    stride_vz, stride_vh, stride_vn,
    stride_bz, stride_bh, stride_bm, stride_bn,
    stride_doz, stride_doh, stride_dom,
    stride_dqz, stride_dqh, stride_dqm,
    stride_dbz, stride_dbh, stride_dbm, stride_dbn,
    stride_lz, stride_lh,
    num_head_q, num_head_k,  # num_head_q % num_head_k == 0
    max_seqlen_q, max_seqlen_k,
    cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,  # sequences.py
    head_dim_qk, head_dim_vo,  # columns in use; read if GENERAL
    window_left, window_right,  # masks.py; read if WINDOWED
    has_bias, has_db, has_dropout,  # read if BIAS, BIAS, DROPOUT; has_db 0: DB is not written
    dropout_p, philox_seed, philox_offset1, philox_offset2,  # rng.py
    lse_scale, lse_compact,  # attn_fwd.py
    HEAD_DIM: tl.constexpr,
    WINDOWED: tl.constexpr,
    GENERAL: tl.constexpr,  # promises nothing: any strides, head dims up to HEAD_DIM
    BIAS: tl.constexpr,
    DROPOUT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # Tiles of a query head, then query heads, then sequences.
    num_tiles = tl.cdiv(max_seqlen_q, BLOCK_M)
    program = tl.program_id(0)
    tile = program % num_tiles
    if WINDOWED:
        tile = num_tiles - 1 - tile  # causal: the tile with the most keys starts first
    dropout = dropout_state(dropout_p, philox_seed, philox_offset1, philox_offset2, has_dropout, DROPOUT)
    dq_tile(
        tile, (program // num_tiles) % num_head_q, program // num_tiles // num_head_q,
        Q, K, V, B, None, DO, DQ, DB, L, Delta, sm_scale,
        (stride_qz, stride_qh, stride_qm), (stride_kz, stride_kh, stride_kn), (stride_vz, stride_vh, stride_vn),
        (stride_bz, stride_bh, stride_bm, stride_bn), (0, 0, 0), (stride_doz, stride_doh, stride_dom),
        (stride_dqz, stride_dqh, stride_dqm), (stride_dbz, stride_dbh, stride_dbm, stride_dbn),
        (stride_lz, stride_lh),
        num_head_q, num_head_k, max_seqlen_q, max_seqlen_k,
        cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
        head_dim_qk, head_dim_vo, window_left, window_right,
        has_bias, has_db, has_dropout, dropout, lse_scale, lse_compact,
        HEAD_DIM, WINDOWED, GENERAL, BIAS, DROPOUT, BLOCK_M, BLOCK_N)
