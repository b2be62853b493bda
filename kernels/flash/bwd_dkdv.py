"""Flash attention, backward: dK and dV (formulas: bwd_common.py).

One program makes BLOCK_N rows of dK and dV of one key head. It walks the queries that see
them, BLOCK_M at a time, in every query head of the group. Its tiles are keys times queries:

    S^T = scores of K Q^T and bias^T               dV += (K * P)^T dO
    dP^T = V dO^T                                  dK += dS^T Q
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
def add_queries(
    dk, dv,
    B, Out, Delta,  # of the head, or None; Delta None: it is made of Out and dO
    k, v, Q, DO, L,  # of the head
    stride_qm, stride_dom, stride_om, stride_bm, stride_bn,
    keys, key_ok, row_first, row_end, tile_first, tile_end, a, b, c, d,  # bwd_common.seen_blocks()
    counter_args, dropout,  # rng.row_counters() without its rows; bwd_common.dropout_state()
    scale, lse_scale, head_dim_qk, head_dim_vo, has_bias, has_dropout,
    HEAD_DIM: tl.constexpr, GENERAL: tl.constexpr, BIAS: tl.constexpr, DROPOUT: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):
    """Adds some blocks of queries to dk and dv: those that need a mask, or the others."""
    offs_m = tl.arange(0, BLOCK_M)
    seed, offset, threshold, kept_scale = dropout
    for i in tl.range(0, (b - a) + (d - c) if MASKED else c - b):
        block = masked_block(i, a, b, c) if MASKED else b + i
        start = block * BLOCK_M
        start_64 = start.to(tl.int64)
        queries = start + offs_m
        in_tile = (queries >= tile_first) & (queries < tile_end)
        q = load_pieces(Q + start_64 * stride_qm, offs_m, stride_qm, in_tile, head_dim_qk,
                        HEAD_DIM, MASKED, GENERAL)  # [BLOCK_M, HEAD_DIM]
        do = load_pieces(DO + start_64 * stride_dom, offs_m, stride_dom, in_tile, head_dim_vo,
                         HEAD_DIM, MASKED, GENERAL)  # [BLOCK_M, HEAD_DIM]
        if MASKED:
            lse = tl.load(L + start_64 + offs_m, mask=in_tile, other=float("inf"))
        else:
            lse = tl.load(L + start_64 + offs_m)
        if Delta is None:
            out = load_pieces(Out + start_64 * stride_om, offs_m, stride_om, in_tile, head_dim_vo,
                              HEAD_DIM, MASKED, GENERAL)
            delta = row_dot(out, do)
        elif MASKED:
            delta = tl.load(Delta + start_64 + offs_m, mask=in_tile, other=0.0)
        else:
            delta = tl.load(Delta + start_64 + offs_m)
        bias = None
        if BIAS:
            # B^T: keys times queries.
            bias = load_bias(B + start_64 * stride_bm, keys, offs_m, stride_bn, stride_bm,
                             key_ok[:, None] & in_tile[None, :] & (has_bias != 0))
        kept = None
        if DROPOUT:
            kept = tl.full([BLOCK_N, BLOCK_M], 1, tl.int1)
            if has_dropout != 0:
                counters = row_counters(offset, counter_args[0], queries, counter_args[1], counter_args[2])
                kept = tl.trans(keep_tile(seed, counters, counter_args[3], threshold, BLOCK_N))
        visible = (queries[None, :] >= row_first) & (queries[None, :] < row_end)
        p, ds = gradients(k, q, v, do, bias, lse_of_scores(lse, lse_scale, BIAS)[None, :], delta[None, :], visible,
                          kept, kept_scale, scale, MASKED)
        dv = add_product(dv, p.to(do[0].dtype), do)
        dk = add_product(dk, ds.to(q[0].dtype), q)
    return dk, dv


@triton.jit
def dkdv_tile(
    tile, head_k, index,  # which rows, key head and sequence
    Q, K, V, B, Out, DO, DK, DV, L, Delta,  # Delta or Out may be None
    sm_scale,
    strides_q, strides_k, strides_v, strides_b, strides_o, strides_do, strides_dk, strides_dv, strides_l,
    num_head_q, num_head_k, max_seqlen_q, max_seqlen_k,
    cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
    head_dim_qk, head_dim_vo, window_left, window_right,
    has_bias, has_dropout, dropout, lse_scale, lse_compact,
    HEAD_DIM: tl.constexpr, WINDOWED: tl.constexpr, GENERAL: tl.constexpr, BIAS: tl.constexpr,
    DROPOUT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    z_q, q_0, seqlen_q = sequence(index, max_seqlen_q, cu_seqlens_q, seq_starts_q, varlen_type)
    z_k, k_0, seqlen_k = sequence(index, max_seqlen_k, cu_seqlens_k, seq_starts_k, varlen_type)
    index = index.to(tl.int64)
    head_k = head_k.to(tl.int64)
    K += z_k * strides_k[0] + head_k * strides_k[1] + k_0 * strides_k[2]
    V += z_k * strides_v[0] + head_k * strides_v[1] + k_0 * strides_v[2]
    DK += z_k * strides_dk[0] + head_k * strides_dk[1] + k_0 * strides_dk[2]
    DV += z_k * strides_dv[0] + head_k * strides_dv[1] + k_0 * strides_dv[2]

    first = tile * BLOCK_N
    last = tl.minimum(first + BLOCK_N, seqlen_k) - 1
    keys = first + tl.arange(0, BLOCK_N)
    key_ok = keys < seqlen_k
    left, right = 0, 0
    if WINDOWED:
        left, right = resolve_window(window_left, window_right, seqlen_q, seqlen_k)
    row_first, row_end, tile_first, tile_end, a, b, c, d = seen_blocks(
        first, last, keys, right, left, seqlen_q, WINDOWED, BLOCK_M)
    if GENERAL:  # one loop for all blocks
        b = a
        c = a

    k = load_pieces(K, keys, strides_k[2], key_ok, head_dim_qk, HEAD_DIM, True, GENERAL)
    v = load_pieces(V, keys, strides_v[2], key_ok, head_dim_vo, HEAD_DIM, True, GENERAL)
    dk = zero_pieces(BLOCK_N, HEAD_DIM, Q.dtype.element_ty)
    dv = zero_pieces(BLOCK_N, HEAD_DIM, Q.dtype.element_ty)
    scale = score_scale(sm_scale, BIAS)
    group = num_head_q // num_head_k
    for member in tl.range(0, group):
        head = head_k * group + member
        q_ptr = Q + z_q * strides_q[0] + head * strides_q[1] + q_0 * strides_q[2]
        do_ptr = DO + z_q * strides_do[0] + head * strides_do[1] + q_0 * strides_do[2]
        l_offset = index * strides_l[0] + head * strides_l[1] + tl.where(lse_compact != 0, q_0, 0)
        b_ptr = None
        if BIAS:
            b_ptr = B + z_q * strides_b[0] + head * strides_b[1]
        out_ptr = None
        delta_ptr = None
        if Delta is None:
            out_ptr = Out + z_q * strides_o[0] + head * strides_o[1] + q_0 * strides_o[2]
        else:
            delta_ptr = Delta + l_offset
        counter_args = (index * num_head_q + head, max_seqlen_q, max_seqlen_k, first)
        arguments = (k, v, q_ptr, do_ptr, L + l_offset,
                     strides_q[2], strides_do[2], strides_o[2], strides_b[2], strides_b[3],
                     keys, key_ok, row_first, row_end, tile_first, tile_end, a, b, c, d,
                     counter_args, dropout, scale, lse_scale, head_dim_qk, head_dim_vo, has_bias, has_dropout)
        dk, dv = add_queries(dk, dv, b_ptr, out_ptr, delta_ptr, *arguments,
                             HEAD_DIM, GENERAL, BIAS, DROPOUT, BLOCK_M, BLOCK_N, MASKED=True)
        if not GENERAL:
            dk, dv = add_queries(dk, dv, b_ptr, out_ptr, delta_ptr, *arguments,
                                 HEAD_DIM, GENERAL, BIAS, DROPOUT, BLOCK_M, BLOCK_N, MASKED=False)

    dk = scale_pieces(dk, sm_scale)
    dv = scale_pieces(dv, dropout[3])
    store_pieces(DK, keys, strides_dk[2], key_ok, head_dim_qk, dk, HEAD_DIM, GENERAL)
    store_pieces(DV, keys, strides_dv[2], key_ok, head_dim_vo, dv, HEAD_DIM, GENERAL)


@triton.jit
def bwd_dkdv(
    Q, K, V, B, DO, DK, DV,  # (batch, head, row, head_dim), the head_dim stride is 1; B (batch, num_head_q, q, k)
    L, Delta,  # fp32, of attn_fwd and bwd_preprocess
    sm_scale,
    stride_qz, stride_qh, stride_qm,  # in elements, int64
    stride_kz, stride_kh, stride_kn,
    stride_vz, stride_vh, stride_vn,
    stride_bz, stride_bh, stride_bm, stride_bn,
    stride_doz, stride_doh, stride_dom,
    stride_dkz, stride_dkh, stride_dkn,
    stride_dvz, stride_dvh, stride_dvn,
    stride_lz, stride_lh,
    num_head_q, num_head_k,  # num_head_q % num_head_k == 0
    max_seqlen_q, max_seqlen_k,
    cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,  # sequences.py
    head_dim_qk, head_dim_vo,  # columns in use; read if GENERAL
    window_left, window_right,  # masks.py; read if WINDOWED
    has_bias, has_dropout,  # read if BIAS, if DROPOUT
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
    # Tiles of a key head, then key heads, then sequences. Causal: the first tile is seen by the
    # most queries, so the longest programs start first.
    num_tiles = tl.cdiv(max_seqlen_k, BLOCK_N)
    program = tl.program_id(0)
    dropout = dropout_state(dropout_p, philox_seed, philox_offset1, philox_offset2, has_dropout, DROPOUT)
    dkdv_tile(
        program % num_tiles, (program // num_tiles) % num_head_k, program // num_tiles // num_head_k,
        Q, K, V, B, None, DO, DK, DV, L, Delta, sm_scale,
        (stride_qz, stride_qh, stride_qm), (stride_kz, stride_kh, stride_kn), (stride_vz, stride_vh, stride_vn),
        (stride_bz, stride_bh, stride_bm, stride_bn), (0, 0, 0), (stride_doz, stride_doh, stride_dom),
        (stride_dkz, stride_dkh, stride_dkn), (stride_dvz, stride_dvh, stride_dvn), (stride_lz, stride_lh),
        num_head_q, num_head_k, max_seqlen_q, max_seqlen_k,
        cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
        head_dim_qk, head_dim_vo, window_left, window_right,
        has_bias, has_dropout, dropout, lse_scale, lse_compact,
        HEAD_DIM, WINDOWED, GENERAL, BIAS, DROPOUT, BLOCK_M, BLOCK_N)
