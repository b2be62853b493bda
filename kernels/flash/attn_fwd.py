"""Flash attention, forward.

    Out = softmax(sm_scale * Q K^T) V        LSE = log(sum(exp(sm_scale * Q K^T)))

T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work
Partitioning", arXiv:2307.08691, algorithm 1. One program makes one tile of Out:
BLOCK_M queries of one head. It walks the keys in blocks of BLOCK_N and keeps, per
query, the largest score m, the sum l of exponentials and the row acc of P V:

    S = scale * Q K^T                m' = max(m, rowmax S)
    P = exp2(S - m')                 alpha = exp2(m - m')
    l = l * alpha + rowsum P         acc = acc * alpha + P V

with scale = sm_scale * log2(e). S is rounded once, and maximum and exponent come from that one value, so that the
largest exponent is exactly 0 however large the scores are. The kernel must therefore be
compiled without fusing the multiplication by scale and the subtraction of m'
(enable_fp_fusion=False).
"""

import triton
import triton.language as tl

from kernels.flash.masks import end_key, first_key, key_blocks, resolve_window
from kernels.flash.tiles import (
    accumulate_pieces,
    dot_pieces,
    load_pieces,
    scale_pieces,
    store_pieces,
    zero_pieces,
)

LOG2E = tl.constexpr(1.4426950408889634)
# m starts here, not at -inf: m - m' is then never inf - inf. A row that has seen no
# key has l = 0 and acc = 0, whatever alpha is.
LOWEST = tl.constexpr(-3.4028234663852886e38)


@triton.jit
def attend(
    acc, l, m, q, K, V, stride_kn, stride_vn, scale,
    block_begin, block_end,  # blocks of keys to visit
    row_first, row_end,  # [BLOCK_M] or scalar: a row keeps the keys [row_first, row_end)
    tile_first, tile_end,  # the keys that some row keeps
    head_dim_qk, head_dim_vo,
    HEAD_DIM: tl.constexpr, PADDED_HEAD: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
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
                        HEAD_DIM, MASKED, PADDED_HEAD)  # [BLOCK_N, HEAD_DIM]
        s = dot_pieces(q, k, HEAD_DIM) * scale  # [BLOCK_M, BLOCK_N]
        if MASKED:
            keep = (keys[None, :] >= row_first) & (keys[None, :] < row_end)
            s = tl.where(keep, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))  # [BLOCK_M]
        p = tl.exp2(s - m_new[:, None])  # [BLOCK_M, BLOCK_N]
        alpha = tl.exp2(m - m_new)  # [BLOCK_M]
        l = l * alpha + tl.sum(p, 1)
        v = load_pieces(V + start_64 * stride_vn, offs_n, stride_vn, in_tile, head_dim_vo,
                        HEAD_DIM, MASKED, PADDED_HEAD)  # [BLOCK_N, HEAD_DIM]
        acc = accumulate_pieces(acc, alpha, p.to(V.dtype.element_ty), v, HEAD_DIM)
        m = m_new
    return acc, l, m


@triton.jit
def attn_fwd(
    Q, K, V, Out,  # (batch, head, row, head_dim); the head_dim stride is 1
    L,  # logsumexp, fp32, contiguous (batch, num_head_q, seqlen_q); may be null
    sm_scale,
    stride_qz, stride_qh, stride_qm,  # in elements, int64
    stride_kz, stride_kh, stride_kn,
    stride_vz, stride_vh, stride_vn,
    stride_oz, stride_oh, stride_om,
    num_head_q, num_head_k,  # num_head_q % num_head_k == 0
    seqlen_q, seqlen_k,
    head_dim_qk, head_dim_vo,  # columns in use; read if PADDED_HEAD
    window_left, window_right,  # masks.py; read if WINDOWED
    lse_scale,  # ln(2): logsumexp in natural logarithms; 1: in base 2
    store_lse,  # 0: L is not written
    HEAD_DIM: tl.constexpr,
    WINDOWED: tl.constexpr,
    PADDED_HEAD: tl.constexpr,  # head dims may be less than HEAD_DIM
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # One-dimensional grid: tiles of a head, then heads, then batches.
    num_tiles = tl.cdiv(seqlen_q, BLOCK_M)
    program = tl.program_id(0)
    tile = program % num_tiles
    head_index = program // num_tiles  # batch * num_head_q + head
    if WINDOWED:
        tile = num_tiles - 1 - tile  # causal: the tile with the most keys starts first
    head = (head_index % num_head_q).to(tl.int64)
    batch = (head_index // num_head_q).to(tl.int64)
    head_k = head // (num_head_q // num_head_k)
    Q += batch * stride_qz + head * stride_qh
    K += batch * stride_kz + head_k * stride_kh
    V += batch * stride_vz + head_k * stride_vh
    Out += batch * stride_oz + head * stride_oh

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
    a, b, c, d = key_blocks(tile_first, tile_end, full_first, full_end, BLOCK_N)

    q = load_pieces(Q, rows, stride_qm, row_ok, head_dim_qk, HEAD_DIM, True, PADDED_HEAD)
    scale = sm_scale * LOG2E

    m = tl.full([BLOCK_M], LOWEST, dtype=tl.float32)
    l = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = zero_pieces(BLOCK_M, HEAD_DIM)  # [BLOCK_M, HEAD_DIM]
    if WINDOWED:  # else a == b
        acc, l, m = attend(acc, l, m, q, K, V, stride_kn, stride_vn, scale, a, b,
                           row_first, row_end, tile_first, tile_end, head_dim_qk, head_dim_vo,
                           HEAD_DIM, PADDED_HEAD, BLOCK_N, MASKED=True)
    acc, l, m = attend(acc, l, m, q, K, V, stride_kn, stride_vn, scale, b, c,
                       row_first, row_end, tile_first, tile_end, head_dim_qk, head_dim_vo,
                       HEAD_DIM, PADDED_HEAD, BLOCK_N, MASKED=False)
    acc, l, m = attend(acc, l, m, q, K, V, stride_kn, stride_vn, scale, c, d,
                       row_first, row_end, tile_first, tile_end, head_dim_qk, head_dim_vo,
                       HEAD_DIM, PADDED_HEAD, BLOCK_N, MASKED=True)

    # A row that kept no key: Out 0, logsumexp +inf.
    empty = l == 0.0
    acc = scale_pieces(acc, (1.0 / tl.where(empty, 1.0, l))[:, None], HEAD_DIM)
    store_pieces(Out, rows, stride_om, row_ok, head_dim_vo, acc, HEAD_DIM, PADDED_HEAD)
    lse = tl.where(empty, float("inf"), (m + tl.log2(l)) * lse_scale)
    lse_ptrs = L + head_index.to(tl.int64) * seqlen_q + rows
    tl.store(lse_ptrs, lse, mask=row_ok & (store_lse != 0))
