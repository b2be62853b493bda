"""Flash attention, forward, by programs that take tile after tile (the tiles: attn_fwd.py).

The grid is as many programs as run at once. Each takes the next tile from a counter until none is left, so
that under a causal window, where tiles cost unlike amounts, no multiprocessor waits for another. Every tile is
made, also after one without keys. The counter is 0 before and after: the program that finds out last that
there is no tile left sets it back, when no other will touch it again.
"""

import triton
import triton.language as tl

from kernels.flash.attn_fwd import forward_tile


@triton.jit
def attn_fwd_persistent(
    Q, K, V, Out, L, sm_scale,  # as in attn_fwd, like all but persistent_counter
    stride_qz, stride_qh, stride_qm,
    stride_kz, stride_kh, stride_kn,
    stride_vz, stride_vh, stride_vn,
    stride_oz, stride_oh, stride_om,
    stride_lz, stride_lh,
    num_sequences, num_head_q, num_head_k,
    max_seqlen_q, max_seqlen_k,
    cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
    window_left, window_right,
    lse_scale, store_lse, lse_compact,
    num_programs,  # the grid: asking the compiler for it costs hidden arguments on AMD
    persistent_counter,  # *int32, 0; of this call alone while it runs
    HEAD_DIM: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    tiles = tl.cdiv(max_seqlen_q, BLOCK_M) * num_head_q * num_sequences
    tile = tl.atomic_add(persistent_counter, 1)
    while tile < tiles:
        forward_tile(
            tile, Q, K, V, None, Out, L, sm_scale,
            (stride_qz, stride_qh, stride_qm), (stride_kz, stride_kh, stride_kn), (stride_vz, stride_vh, stride_vn),
            (stride_oz, stride_oh, stride_om), (0, 0, 0, 0), (stride_lz, stride_lh),
            num_head_q, num_head_k, max_seqlen_q, max_seqlen_k,
            cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
            HEAD_DIM, HEAD_DIM, window_left, window_right,
            0, 0, 0.0, None, None, 0, None, None,
            lse_scale, store_lse, lse_compact,
            HEAD_DIM, True, False, False, False, BLOCK_M, BLOCK_N)
        tile = tl.atomic_add(persistent_counter, 1)
    # Each program is told once that none is left, by one number of [tiles, tiles + programs).
    if tile == tiles + num_programs - 1:
        tl.store(persistent_counter, 0)
