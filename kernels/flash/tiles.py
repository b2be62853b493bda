"""Tiles of a head: a head dimension cut into power-of-two pieces.

A Triton tile has power-of-two sides. Padding head_dim 80 to 128 would waste 60 %
of the matmul and of the registers, so a head is held as a tuple of tiles, its
pieces: 80 = 64 + 16, 224 = 128 + 64 + 32. One that is a power of two has one piece.

fp32 pieces have at most 32 columns, and each is multiplied by itself: without matrix instructions the
products of a dot are added one after another, and a sum over a whole head would round several times
as much as the plain formula does.
"""

import triton
import triton.language as tl

FP32_COLUMNS = 32


@triton.constexpr_function
def piece_sizes(head_dim, dtype):
    """Columns of each piece; the widest comes first."""
    assert head_dim % 16 == 0 and 1 <= head_dim.bit_count() <= 3, head_dim
    sizes = []
    while head_dim:
        size = 1 << (head_dim.bit_length() - 1)
        sizes.append(min(size, FP32_COLUMNS) if dtype == tl.float32 else size)
        head_dim -= sizes[-1]
    return sizes


@triton.constexpr_function
def piece_count(head_dim, dtype):
    return len(piece_sizes(head_dim, dtype))


@triton.constexpr_function
def piece_size(head_dim, dtype, i):
    return piece_sizes(head_dim, dtype)[i]


@triton.constexpr_function
def piece_begin(head_dim, dtype, i):
    """First column of piece i."""
    return sum(piece_sizes(head_dim, dtype)[:i])


@triton.jit
def zero_pieces(ROWS: tl.constexpr, HEAD_DIM: tl.constexpr, dtype: tl.constexpr):
    """fp32 zeros [ROWS, HEAD_DIM], in the pieces of a head of dtype."""
    tiles = ()
    for i in tl.static_range(piece_count(HEAD_DIM, dtype)):
        tiles = tiles + (tl.zeros([ROWS, piece_size(HEAD_DIM, dtype, i)], dtype=tl.float32),)
    return tiles


@triton.jit
def load_pieces(
    base, rows, stride_row, row_ok, head_dim,
    HEAD_DIM: tl.constexpr, MASK_ROWS: tl.constexpr, MASK_COLS: tl.constexpr,
):
    """Rows [ROWS, HEAD_DIM] of base; what is masked off reads as 0 and is not touched in memory."""
    row_ptrs = base + rows.to(tl.int64)[:, None] * stride_row
    dtype: tl.constexpr = base.dtype.element_ty
    tiles = ()
    for i in tl.static_range(piece_count(HEAD_DIM, dtype)):
        cols = piece_begin(HEAD_DIM, dtype, i) + tl.arange(0, piece_size(HEAD_DIM, dtype, i))
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
    dtype: tl.constexpr = base.dtype.element_ty
    for i in tl.static_range(piece_count(HEAD_DIM, dtype)):
        cols = piece_begin(HEAD_DIM, dtype, i) + tl.arange(0, piece_size(HEAD_DIM, dtype, i))
        keep = row_ok[:, None]
        if MASK_COLS:
            keep = keep & (cols < head_dim)[None, :]
        tl.store(row_ptrs + cols[None, :], tiles[i].to(base.dtype.element_ty), mask=keep)


@triton.jit
def add(a, b):
    """a + b for a product a that fp32 sums by itself: as an fma, since Triton folds an addition into the dot."""
    return tl.fma(b, tl.full(b.shape, 1.0, tl.float32), a)


@triton.jit
def dot_pieces(a, b):
    """a @ b^T over the head: [M, HEAD_DIM] x [N, HEAD_DIM] -> fp32 [M, N].

    "ieee": fp32 operands are multiplied as fp32, not rounded to TF32 or XF32.
    """
    out = tl.dot(a[0], tl.trans(b[0]), input_precision="ieee")
    for i in tl.static_range(1, len(a)):
        if a[i].dtype == tl.float32:
            out = add(tl.dot(a[i], tl.trans(b[i]), input_precision="ieee"), out)
        else:
            out = tl.dot(a[i], tl.trans(b[i]), out, input_precision="ieee")
    return out


@triton.jit
def accumulate_pieces(acc, alpha, p, v):
    """acc * alpha + p @ v: [M, HEAD_DIM] * [M] + [M, N] x [N, HEAD_DIM].

    fp32 adds up the products of a block by themselves: a sum over all keys, one after another,
    would round several times as much.
    """
    out = ()
    for i in tl.static_range(len(acc)):
        if p.dtype == tl.float32:
            tile = tl.dot(p, v[i], input_precision="ieee")
            tile = tl.fma(acc[i], tl.broadcast_to(alpha[:, None], tile.shape), tile)
        else:
            tile = tl.dot(p, v[i], acc[i] * alpha[:, None], input_precision="ieee")
        out = out + (tile,)
    return out


@triton.jit
def add_product(acc, p, x):
    """acc + p @ x: [M, HEAD_DIM] + [M, N] x [N, HEAD_DIM], fp32 by blocks as in accumulate_pieces; p in the type of x."""
    out = ()
    for i in tl.static_range(len(acc)):
        if p.dtype == tl.float32:
            tile = add(tl.dot(p, x[i], input_precision="ieee"), acc[i])
        else:
            tile = tl.dot(p, x[i], acc[i], input_precision="ieee")
        out = out + (tile,)
    return out


@triton.jit
def row_dot(a, b):
    """Sum over the head of a * b, in fp32: [ROWS]."""
    total = tl.sum(a[0].to(tl.float32) * b[0].to(tl.float32), 1)
    for i in tl.static_range(1, len(a)):
        total += tl.sum(a[i].to(tl.float32) * b[i].to(tl.float32), 1)
    return total


@triton.jit
def scale_pieces(tiles, factor):
    """[M, HEAD_DIM] times factor, multiplied in fp32; keeps the tiles' type."""
    out = ()
    for i in tl.static_range(len(tiles)):
        out = out + ((tiles[i].to(tl.float32) * factor).to(tiles[i].dtype),)
    return out
