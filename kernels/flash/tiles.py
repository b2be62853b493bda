"""Tiles of a head: a head dimension cut into power-of-two pieces.

A Triton tile has power-of-two sides. Padding head_dim 80 to 128 would waste 60 %
of the matmul and of the registers, so a head is held as a tuple of tiles, its
pieces: 80 = 64 + 16, 224 = 128 + 64 + 32. One that is a power of two has one piece.
"""

import triton
import triton.language as tl


@triton.constexpr_function
def piece_count(head_dim):
    assert head_dim % 16 == 0 and 1 <= head_dim.bit_count() <= 3, head_dim
    return head_dim.bit_count()


@triton.constexpr_function
def piece_size(head_dim, i):
    """Columns of piece i; the widest piece comes first."""
    for _ in range(i):
        head_dim -= 1 << (head_dim.bit_length() - 1)
    return 1 << (head_dim.bit_length() - 1)


@triton.constexpr_function
def piece_begin(head_dim, i):
    """First column of piece i."""
    return sum(piece_size(head_dim, j) for j in range(i))


@triton.jit
def zero_pieces(ROWS: tl.constexpr, HEAD_DIM: tl.constexpr):
    """fp32 zeros [ROWS, HEAD_DIM]."""
    tiles = ()
    for i in tl.static_range(piece_count(HEAD_DIM)):
        tiles = tiles + (tl.zeros([ROWS, piece_size(HEAD_DIM, i)], dtype=tl.float32),)
    return tiles


@triton.jit
def load_pieces(
    base, rows, stride_row, row_ok, head_dim,
    HEAD_DIM: tl.constexpr, MASK_ROWS: tl.constexpr, MASK_COLS: tl.constexpr,
):
    """Rows [ROWS, HEAD_DIM] of base; what is masked off reads as 0 and is not touched in memory."""
    row_ptrs = base + rows.to(tl.int64)[:, None] * stride_row
    tiles = ()
    for i in tl.static_range(piece_count(HEAD_DIM)):
        cols = piece_begin(HEAD_DIM, i) + tl.arange(0, piece_size(HEAD_DIM, i))
        ptrs = row_ptrs + cols[None, :]  # [ROWS, piece]
        if MASK_ROWS and MASK_COLS:
            tile = tl.load(ptrs, mask=row_ok[:, None] & (cols < head_dim)[None, :], other=0.0)
        elif MASK_ROWS:
            tile = tl.load(ptrs, mask=row_ok[:, None], other=0.0)
        elif MASK_COLS:
            tile = tl.load(ptrs, mask=(cols < head_dim)[None, :], other=0.0)
        else:
            tile = tl.load(ptrs)
        tiles = tiles + (tile,)
    return tiles


@triton.jit
def store_pieces(
    base, rows, stride_row, row_ok, head_dim, tiles,
    HEAD_DIM: tl.constexpr, MASK_COLS: tl.constexpr,
):
    """Writes rows [ROWS, HEAD_DIM], cast to the type of base."""
    row_ptrs = base + rows.to(tl.int64)[:, None] * stride_row
    for i in tl.static_range(piece_count(HEAD_DIM)):
        cols = piece_begin(HEAD_DIM, i) + tl.arange(0, piece_size(HEAD_DIM, i))
        keep = row_ok[:, None]
        if MASK_COLS:
            keep = keep & (cols < head_dim)[None, :]
        tl.store(row_ptrs + cols[None, :], tiles[i].to(base.dtype.element_ty), mask=keep)


@triton.jit
def dot_pieces(a, b, HEAD_DIM: tl.constexpr):
    """a @ b^T over the head: [M, HEAD_DIM] x [N, HEAD_DIM] -> fp32 [M, N].

    "ieee": fp32 operands are multiplied as fp32, not rounded to TF32 or XF32.
    """
    out = tl.dot(a[0], tl.trans(b[0]), input_precision="ieee")
    for i in tl.static_range(1, piece_count(HEAD_DIM)):
        out = tl.dot(a[i], tl.trans(b[i]), out, input_precision="ieee")
    return out


@triton.jit
def accumulate_pieces(acc, alpha, p, v, HEAD_DIM: tl.constexpr):
    """acc * alpha + p @ v: [M, HEAD_DIM] * [M] + [M, N] x [N, HEAD_DIM].

    fp32 adds up the products of a block by themselves: a sum over all keys, one after another,
    would round several times as much. (As an fma, since Triton folds an addition into the dot.)
    """
    out = ()
    for i in tl.static_range(piece_count(HEAD_DIM)):
        if p.dtype == tl.float32:
            tile = tl.dot(p, v[i], input_precision="ieee")
            tile = tl.fma(acc[i], tl.broadcast_to(alpha[:, None], tile.shape), tile)
        else:
            tile = tl.dot(p, v[i], acc[i] * alpha[:, None], input_precision="ieee")
        out = out + (tile,)
    return out


@triton.jit
def scale_pieces(tiles, factor, HEAD_DIM: tl.constexpr):
    """[M, HEAD_DIM] times factor, multiplied in fp32; keeps the tiles' type."""
    out = ()
    for i in tl.static_range(piece_count(HEAD_DIM)):
        out = out + ((tiles[i].to(tl.float32) * factor).to(tiles[i].dtype),)
    return out
