"""Flash attention, backward, in one launch (formulas: bwd_common.py).

For each key head, the first programs make its tiles of dK and dV, the others the tiles of dQ
and dBias of the query heads in its group. Each makes the Delta it needs of Out and dO, so no
launch has to come before, and no memory is needed between launches.
"""

import triton
import triton.language as tl

from kernels.flash.bwd_common import dropout_state
from kernels.flash.bwd_dkdv import dkdv_tile
from kernels.flash.bwd_dq import dq_tile


@triton.jit
def bwd_fused(
    Q, K, V, B, Out, DO, DQ, DK, DV, DB, L, sm_scale,  # as in bwd_dkdv and bwd_dq
    stride_qz, stride_qh, stride_qm,
    stride_kz, stride_kh, stride_kn,
    stride_vz, stride_vh, stride_vn,
    stride_bz, stride_bh, stride_bm, stride_bn,
    stride_oz, stride_oh, stride_om,
    stride_doz, stride_doh, stride_dom,
    stride_dqz, stride_dqh, stride_dqm,
    stride_dkz, stride_dkh, stride_dkn,
    stride_dvz, stride_dvh, stride_dvn,
    stride_dbz, stride_dbh, stride_dbm, stride_dbn,
    stride_lz, stride_lh,
    num_head_q, num_head_k,
    max_seqlen_q, max_seqlen_k,
    cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
    head_dim_qk, head_dim_vo,
    window_left, window_right,
    has_bias, has_db, has_dropout,
    dropout_p, philox_seed, philox_offset1, philox_offset2,
    lse_scale, lse_compact,
    HEAD_DIM: tl.constexpr,
    WINDOWED: tl.constexpr,
    GENERAL: tl.constexpr,
    BIAS: tl.constexpr,
    DROPOUT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    group = num_head_q // num_head_k
    key_tiles = tl.cdiv(max_seqlen_k, BLOCK_N)
    query_tiles = tl.cdiv(max_seqlen_q, BLOCK_M)
    num_tiles = key_tiles + query_tiles * group  # of a key head
    program = tl.program_id(0)
    tile = program % num_tiles
    head_k = (program // num_tiles) % num_head_k
    index = program // num_tiles // num_head_k
    strides_q = (stride_qz, stride_qh, stride_qm)
    strides_k = (stride_kz, stride_kh, stride_kn)
    strides_v = (stride_vz, stride_vh, stride_vn)
    strides_b = (stride_bz, stride_bh, stride_bm, stride_bn)
    strides_o = (stride_oz, stride_oh, stride_om)
    strides_do = (stride_doz, stride_doh, stride_dom)
    strides_l = (stride_lz, stride_lh)
    dropout = dropout_state(dropout_p, philox_seed, philox_offset1, philox_offset2, has_dropout, DROPOUT)
    if tile < key_tiles:
        dkdv_tile(
            tile, head_k, index, Q, K, V, B, Out, DO, DK, DV, L, None, sm_scale,
            strides_q, strides_k, strides_v, strides_b, strides_o, strides_do,
            (stride_dkz, stride_dkh, stride_dkn), (stride_dvz, stride_dvh, stride_dvn), strides_l,
            num_head_q, num_head_k, max_seqlen_q, max_seqlen_k,
            cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
            head_dim_qk, head_dim_vo, window_left, window_right,
            has_bias, has_dropout, dropout, lse_scale, lse_compact,
            HEAD_DIM, WINDOWED, GENERAL, BIAS, DROPOUT, BLOCK_M, BLOCK_N)
    else:
        query_tile = tile - key_tiles
        head = head_k * group + query_tile // query_tiles
        dq_tile(
            query_tile % query_tiles, head, index, Q, K, V, B, Out, DO, DQ, DB, L, None, sm_scale,
            strides_q, strides_k, strides_v, strides_b, strides_o, strides_do,
            (stride_dqz, stride_dqh, stride_dqm), (stride_dbz, stride_dbh, stride_dbm, stride_dbn), strides_l,
            num_head_q, num_head_k, max_seqlen_q, max_seqlen_k,
            cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
            head_dim_qk, head_dim_vo, window_left, window_right,
            has_bias, has_db, has_dropout, dropout, lse_scale, lse_compact,
            HEAD_DIM, WINDOWED, GENERAL, BIAS, DROPOUT, BLOCK_M, BLOCK_N)
