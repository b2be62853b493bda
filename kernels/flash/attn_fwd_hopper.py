"""Flash attention, forward, on Hopper: the formula of attn_fwd.py by specialised warps, in Gluon.

J. Shah et al., "FlashAttention-3: Fast and Accurate Attention with Asynchrony and Low-precision",
arXiv:2407.08608. A program is a whole multiprocessor: one producer warp, which copies tiles by TMA, and
GROUPS = BLOCK_M / 64 consumers of four warps, each of which makes 64 rows of Out:

    producer   Q once a tile; K and V through a ring of STAGES blocks of BLOCK_N keys, the last block first
    consumer   starts S = Q K^T of the next block before Out += P V of this one, so that the softmax of one
               block runs beside the matrix products of the other; with TURNS the consumers also take turns
               in starting theirs

Programs take tile after tile from a counter (attn_fwd_persistent.py): the producer draws them, leaves out
those past the end of a short sequence, and hands them to the consumers ahead of time. Heads go in groups of
HEAD_GROUP, whose K and V stay in L2; under a window the tile with the most keys goes first.

Rows of a tile past the tensor read as 0 and are not written, and columns past head_dim neither: that is what
TMA does outside a tensor. So any head_dim up to the tile will do, and that of V may differ. Rows past a
sequence but inside the tensor are the next sequence's: such a tile of Out is stored without TMA, and such rows
of V, whose P is 0, are zeroed, since they may hold NaN.

A score is rounded once, to fp32, and never alone multiplied by sm_scale: softmax_step.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from kernels.flash import masks, sequences

resolve_window = gluon.jit(masks.resolve_window.fn)
sequence = gluon.jit(sequences.sequence.fn)

LOG2E = gl.constexpr(1.4426950408889634)
GROUP_ROWS = gl.constexpr(64)  # of a consumer: those of a wgmma
HEAD_GROUP = gl.constexpr(8)
ZERO_ROWS = gl.constexpr(8)  # of V that are zeroed at once
# What the producer tells the consumers of a tile.
FIELDS = gl.constexpr(6)
FIRST_ROW = gl.constexpr(0)  # -1: there is no tile left
HEAD = gl.constexpr(1)
INDEX = gl.constexpr(2)  # of the sequence
ROW_Q = gl.constexpr(3)  # where it starts in Q
SEQLEN_Q = gl.constexpr(4)
SEQLEN_K = gl.constexpr(5)
FAR = gl.constexpr(2**30)  # rows and keys are fewer
COARSE = gl.constexpr(2.0**27)  # softmax_step says what changes there


@gluon.jit
def place_of(tile, num_tiles, num_head_q, num_heads, WINDOWED: gl.constexpr):
    """(tile of the head, head, sequence) of a number drawn; num_heads counts those of all sequences."""
    group = tile // (HEAD_GROUP * num_tiles)
    rest = tile - group * (HEAD_GROUP * num_tiles)
    width = gl.minimum(HEAD_GROUP, num_heads - group * HEAD_GROUP)
    m = rest // width
    head_index = group * HEAD_GROUP + (rest - m * width)
    if WINDOWED:
        m = num_tiles - 1 - m
    return m, head_index % num_head_q, head_index // num_head_q


@gluon.jit
def window_of(window_left, window_right, seqlen_q, seqlen_k):
    """(left, right) as int32, so near to 0 that a row number can be added: what is cut off keeps the same keys."""
    left, right = resolve_window(window_left, window_right, seqlen_q, seqlen_k)
    return gl.minimum(gl.maximum(left, -FAR), FAR).to(gl.int32), gl.minimum(gl.maximum(right, -FAR - 1), FAR - 1).to(gl.int32)


@gluon.jit
def first_key(row, left, seqlen_k):
    """The first key that a row keeps, in [0, seqlen_k]."""
    return gl.minimum(gl.maximum(row - left, 0), seqlen_k)


@gluon.jit
def end_key(row, right, seqlen_k):
    """One past the last key that a row keeps, in [0, seqlen_k]."""
    return gl.minimum(gl.maximum(row + right + 1, 0), seqlen_k)


@gluon.jit
def blocks_of(first, end, BLOCK_N: gl.constexpr):
    """The blocks [begin, stop) of the keys [first, end); at least one, so that a tile without keys is like others."""
    begin = first // BLOCK_N
    return begin, gl.maximum(gl.cdiv(end, BLOCK_N), begin + 1)


@gluon.jit
def tile_of(tile, problem, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, WINDOWED: gl.constexpr):
    """What is to be known of a tile: where its rows and keys lie, and which of the keys its rows keep."""
    (num_head_q, num_head_k, num_heads, num_tiles, max_seqlen_q, max_seqlen_k,
     cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type, window_left, window_right) = problem
    m, head, index = place_of(tile, num_tiles, num_head_q, num_heads, WINDOWED)
    zq, row_q, seqlen_q = sequence(index, max_seqlen_q, cu_seqlens_q, seq_starts_q, varlen_type)
    zk, row_k, seqlen_k = sequence(index, max_seqlen_k, cu_seqlens_k, seq_starts_k, varlen_type)
    first_row = m * BLOCK_M
    first = 0  # keys [first, end): those that some row keeps
    end = seqlen_k
    if WINDOWED:
        left, right = window_of(window_left, window_right, seqlen_q, seqlen_k)
        first = first_key(first_row, left, seqlen_k)
        end = gl.maximum(end_key(gl.minimum(first_row + BLOCK_M, seqlen_q) - 1, right, seqlen_k), first)
    begin, stop = blocks_of(first, end, BLOCK_N)
    return (index, head, first_row, zq.to(gl.int32), row_q.to(gl.int32), seqlen_q, zk.to(gl.int32), row_k.to(gl.int32), seqlen_k,
            first, end, begin, stop)


@gluon.jit
def next_tile(tile, problem, num_programs, tile_counter, BLOCK_M: gl.constexpr, WINDOWED: gl.constexpr):
    """The first tile from `tile` on that has rows; the number of tiles or more: there is none."""
    (num_head_q, num_head_k, num_heads, num_tiles, max_seqlen_q, max_seqlen_k,
     cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type, window_left, window_right) = problem
    searching = (varlen_type != 0) & (tile < num_tiles * num_heads)
    while searching:
        m, head, index = place_of(tile, num_tiles, num_head_q, num_heads, WINDOWED)
        z, row, seqlen_q = sequence(index, max_seqlen_q, cu_seqlens_q, seq_starts_q, varlen_type)
        searching = m * BLOCK_M >= seqlen_q
        if searching:
            tile = num_programs + gl.atomic_add(tile_counter, 1)
            searching = tile < num_tiles * num_heads
    return tile


@gluon.jit
def put(fields, slot, place: gl.constexpr, value):
    """One number for the consumers."""
    fields.index(slot * FIELDS + place).store(gl.full([1], value, gl.int32, gl.BlockedLayout([1], [32], [1], [0])))


@gluon.jit
def get(fields, slot, place: gl.constexpr):
    """What the producer put."""
    return gl.max(fields.index(slot * FIELDS + place).load(gl.BlockedLayout([1], [32], [4], [0])), 0)


@gluon.jit
def zero_rows(v_tile, start, first, end, BLOCK_N: gl.constexpr, HEAD_DIM: gl.constexpr):
    """Zeroes the rows of v_tile [BLOCK_N, HEAD_DIM], keys from start on, that are none of the keys [first, end)."""
    LAYOUT: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [1, 1], [1, 0])
    for i in gl.static_range(BLOCK_N // ZERO_ROWS):
        part_start = start + i * ZERO_ROWS
        if (part_start < first) | (part_start + ZERO_ROWS > end):
            keys = part_start + gl.arange(0, ZERO_ROWS, gl.SliceLayout(1, LAYOUT))
            keep = gl.expand_dims((keys >= first) & (keys < end), 1)
            for column in gl.static_range(0, HEAD_DIM, 64):
                part = v_tile.slice(i * ZERO_ROWS, ZERO_ROWS, 0).slice(column, 64, 1)
                rows = part.load(LAYOUT)
                part.store(gl.where(keep, rows, gl.zeros_like(rows)))
    fence_async_shared()


@gluon.jit
def produce(
    map_Q, map_K, map_V, queries, keys, values, draws, v_landed, problem, num_programs, tile_counter,
    HEAD_DIM: gl.constexpr, WINDOWED: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr,
):
    """The producer warp."""
    (num_head_q, num_head_k, num_heads, num_tiles, max_seqlen_q, max_seqlen_k,
     cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type, window_left, window_right) = problem
    q_tiles, q_full, q_empty = queries
    k_tiles, k_full, k_empty = keys
    v_tiles, v_full, v_empty = values
    fields, drawn, taken = draws
    tiles = num_tiles * num_heads
    turn = 0  # tiles so far
    block = 0  # blocks so far
    cut = 0  # blocks so far of which V had rows to be zeroed
    tile = next_tile(gl.program_id(0), problem, num_programs, tile_counter, BLOCK_M, WINDOWED)
    while tile < tiles:
        following = num_programs + gl.atomic_add(tile_counter, 1)
        index, head, first_row, zq, row_q, seqlen_q, zk, row_k, seqlen_k, first, end, begin, stop = tile_of(
            tile, problem, BLOCK_M, BLOCK_N, WINDOWED)
        slot = turn & 1
        mbarrier.wait(taken.index(slot), ((turn >> 1) & 1) ^ 1)
        put(fields, slot, FIRST_ROW, first_row)
        put(fields, slot, HEAD, head)
        put(fields, slot, INDEX, index)
        put(fields, slot, ROW_Q, row_q)
        put(fields, slot, SEQLEN_Q, seqlen_q)
        put(fields, slot, SEQLEN_K, seqlen_k)
        mbarrier.arrive(drawn.index(slot), count=1)
        head_k = head // (num_head_q // num_head_k)
        for group in gl.static_range(BLOCK_M // GROUP_ROWS):
            mbarrier.wait(q_empty.index(group), (turn & 1) ^ 1)
            mbarrier.expect(q_full.index(group), GROUP_ROWS * HEAD_DIM * 2)
            tma.async_copy_global_to_shared(map_Q, [zq, head, row_q + first_row + group * GROUP_ROWS, 0],
                                            q_full.index(group), q_tiles.index(group))
        was_cut = False
        stage = 0
        start = stop * BLOCK_N
        for _ in range(begin, stop + 1):
            # V of the block before, now that its copy has had time, and K of this one is on its way.
            last_stage = stage
            last_start = start
            start -= BLOCK_N
            stage = block % STAGES
            phase = ((block // STAGES) & 1) ^ 1
            if start >= begin * BLOCK_N:
                mbarrier.wait(k_empty.index(stage), phase)
                mbarrier.expect(k_full.index(stage), BLOCK_N * HEAD_DIM * 2)
                tma.async_copy_global_to_shared(map_K, [zk, head_k, row_k + start, 0], k_full.index(stage), k_tiles.index(stage))
            if was_cut:
                mbarrier.wait(v_landed, cut & 1)
                zero_rows(v_tiles.index(last_stage).reshape([BLOCK_N, HEAD_DIM]), last_start, first, end, BLOCK_N, HEAD_DIM)
                mbarrier.arrive(v_full.index(last_stage), count=1)
                cut += 1
            if start >= begin * BLOCK_N:
                was_cut = (start < first) | (start + BLOCK_N > end)
                mbarrier.wait(v_empty.index(stage), phase)
                if was_cut:
                    mbarrier.expect(v_landed, BLOCK_N * HEAD_DIM * 2)
                    tma.async_copy_global_to_shared(map_V, [zk, head_k, row_k + start, 0], v_landed, v_tiles.index(stage))
                else:
                    mbarrier.expect(v_full.index(stage), BLOCK_N * HEAD_DIM * 2)
                    tma.async_copy_global_to_shared(map_V, [zk, head_k, row_k + start, 0], v_full.index(stage), v_tiles.index(stage))
                block += 1
        turn += 1
        tile = next_tile(following, problem, num_programs, tile_counter, BLOCK_M, WINDOWED)
    mbarrier.wait(taken.index(turn & 1), ((turn >> 1) & 1) ^ 1)
    put(fields, turn & 1, FIRST_ROW, -1)
    mbarrier.arrive(drawn.index(turn & 1), count=1)
    # Each program is told once that no tile is left, by one number of [tiles, tiles + programs).
    if tile == tiles + num_programs - 1:
        gl.store(tile_counter, 0)


@gluon.jit
def softmax_step(s, m, largest, l, scale, coarse_scale):
    """One block of unscaled scores S [64, BLOCK_N] of rows with the largest score m, and largest = scale * m rounded.

    P = 2^(scale * S - largest'), where the fma rounds once: the exponent of the largest score is the error of the
    rounding of largest', a factor that all P of the row and l share. From COARSE on it could overflow; there different
    scores are so far apart that only those equal to the largest count, and a power of two for scale makes its exponent 0.

    Returns:
      P, m', largest', l', and alpha, what the P before are multiplied by.
    """
    m_new = gl.maximum(m, gl.max(s, 1))
    largest_new = m_new * scale
    is_coarse = gl.abs(largest_new) >= COARSE
    largest_new = gl.where(is_coarse, m_new * coarse_scale, largest_new)
    shift = gl.where(m_new == float("-inf"), 0.0, largest_new)  # a row that kept no key so far
    alpha = gl.exp2(largest - shift)
    of_row = gl.expand_dims(gl.where(is_coarse, coarse_scale, scale), 1)
    p = gl.exp2(gl.fma(s, gl.broadcast(of_row, s)[0], -gl.expand_dims(shift, 1)))
    return p, m_new, largest_new, l * alpha + gl.sum(p, 1), alpha


@gluon.jit
def mask_scores(s, start, row_first, row_end, WINDOWED: gl.constexpr, BLOCK_N: gl.constexpr, S_LAYOUT: gl.constexpr):
    """S of the keys from start on, -inf where a row does not keep the key."""
    keys = gl.expand_dims(start + gl.arange(0, BLOCK_N, gl.SliceLayout(0, S_LAYOUT)), 0)
    keep = keys < row_end
    if WINDOWED:
        keep = keep & (keys >= row_first)
    return gl.where(keep, s, float("-inf"))


@gluon.jit
def consume(
    queries, keys, values, draws, turns, out_tiles, outputs, problem, sm_scale,
    group: gl.constexpr,  # which of the consumers
    HEAD_DIM: gl.constexpr, WINDOWED: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr,
    TURNS: gl.constexpr, Q_IN_REGISTERS: gl.constexpr, OUT_IN_Q: gl.constexpr,
):
    """One consumer: rows [group * 64, group * 64 + 64) of each tile."""
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, HEAD_DIM, 16])
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    S_ROWS: gl.constexpr = gl.SliceLayout(1, S_LAYOUT)
    O_ROWS: gl.constexpr = gl.SliceLayout(1, O_LAYOUT)
    GROUPS: gl.constexpr = BLOCK_M // GROUP_ROWS
    IS_FIRST: gl.constexpr = 1 if group == 0 else 0
    (num_head_q, num_head_k, num_heads, num_tiles, max_seqlen_q, max_seqlen_k,
     cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type, window_left, window_right) = problem
    (map_Out, Out, stride_oz, stride_oh, stride_om, head_dim_vo, L, stride_lz, stride_lh, lse_scale, store_lse, lse_compact) = outputs
    q_tiles, q_full, q_empty = queries
    k_tiles, k_full, k_empty = keys
    v_tiles, v_full, v_empty = values
    fields, drawn, taken = draws
    dtype: gl.constexpr = map_Out.dtype
    scale = sm_scale * LOG2E
    coarse_scale = (scale.to(gl.int32, bitcast=True) & 0x7F800000).to(gl.float32, bitcast=True)
    zero = gl.full([GROUP_ROWS, BLOCK_N], 0.0, gl.float32, S_LAYOUT)
    turn = 0
    block = 0
    starts = 0  # matrix products so far, in turns
    mbarrier.wait(drawn.index(0), 0)
    first_row = get(fields, 0, FIRST_ROW)
    while first_row >= 0:
        slot = turn & 1
        head = get(fields, slot, HEAD)
        index = get(fields, slot, INDEX)
        row_q = get(fields, slot, ROW_Q)
        seqlen_q = get(fields, slot, SEQLEN_Q)
        seqlen_k = get(fields, slot, SEQLEN_K)
        mbarrier.arrive(taken.index(slot), count=1)
        own_row = first_row + group * GROUP_ROWS
        rows = own_row + gl.arange(0, GROUP_ROWS, S_ROWS)
        if WINDOWED:
            left, right = window_of(window_left, window_right, seqlen_q, seqlen_k)
            first = first_key(first_row, left, seqlen_k)
            end = gl.maximum(end_key(gl.minimum(first_row + BLOCK_M, seqlen_q) - 1, right, seqlen_k), first)
            row_first = gl.expand_dims(first_key(rows, left, seqlen_k), 1)
            row_end = gl.expand_dims(end_key(rows, right, seqlen_k), 1)
            # Keys [full_first, full_end): those that all rows of this consumer keep.
            full_first = first_key(gl.minimum(own_row + GROUP_ROWS, seqlen_q) - 1, left, seqlen_k)
            full_end = end_key(own_row, right, seqlen_k)
        else:
            first = 0
            end = seqlen_k
            row_first = 0
            row_end = seqlen_k
        begin, stop = blocks_of(first, end, BLOCK_N)
        m = gl.full([GROUP_ROWS], float("-inf"), gl.float32, S_ROWS)
        largest = m
        l = gl.full([GROUP_ROWS], 0.0, gl.float32, S_ROWS)
        acc = gl.full([GROUP_ROWS, HEAD_DIM], 0.0, gl.float32, O_LAYOUT)

        mbarrier.wait(q_full.index(group), turn & 1)
        q = q_tiles.index(group).reshape([GROUP_ROWS, HEAD_DIM])
        if Q_IN_REGISTERS:
            q = q.load(gl.DotOperandLayout(0, S_LAYOUT, 2))
            mbarrier.arrive(q_empty.index(group), count=1)
        start = (stop - 1) * BLOCK_N
        stage = block % STAGES
        phase = (block // STAGES) & 1
        mbarrier.wait(k_full.index(stage), phase)
        if TURNS:
            mbarrier.wait(turns.index(group), (starts & 1) ^ IS_FIRST)
            starts += 1
        s = warpgroup_mma(q, k_tiles.index(stage).reshape([BLOCK_N, HEAD_DIM]).permute((1, 0)), zero, use_acc=False, is_async=True)
        if TURNS:
            mbarrier.arrive(turns.index((group + 1) % GROUPS), count=1)
        s = warpgroup_mma_wait(0, deps=[s])
        mbarrier.arrive(k_empty.index(stage), count=1)
        s = mask_scores(s, start, row_first, row_end, WINDOWED, BLOCK_N, S_LAYOUT)
        p, m, largest, l, alpha = softmax_step(s, m, largest, l, scale, coarse_scale)
        p = gl.convert_layout(p.to(dtype), P_LAYOUT)
        for _ in range(begin + 1, stop):
            v_tile = v_tiles.index(stage).reshape([BLOCK_N, HEAD_DIM])
            v_ready = v_full.index(stage)
            v_done = v_empty.index(stage)
            v_phase = phase
            start -= BLOCK_N
            block += 1
            stage = block % STAGES
            phase = (block // STAGES) & 1
            mbarrier.wait(k_full.index(stage), phase)
            if TURNS:
                mbarrier.wait(turns.index(group), (starts & 1) ^ IS_FIRST)
                starts += 1
            s = warpgroup_mma(q, k_tiles.index(stage).reshape([BLOCK_N, HEAD_DIM]).permute((1, 0)), zero, use_acc=False, is_async=True)
            mbarrier.wait(v_ready, v_phase)
            acc = warpgroup_mma(p, v_tile, acc, is_async=True)
            if TURNS:
                mbarrier.arrive(turns.index((group + 1) % GROUPS), count=1)
            s = warpgroup_mma_wait(1, deps=[s])
            mbarrier.arrive(k_empty.index(stage), count=1)
            if WINDOWED:
                if (start < full_first) | (start + BLOCK_N > full_end):
                    s = mask_scores(s, start, row_first, row_end, WINDOWED, BLOCK_N, S_LAYOUT)
            next_p, m, largest, l, alpha = softmax_step(s, m, largest, l, scale, coarse_scale)
            acc = warpgroup_mma_wait(0, deps=[acc])
            mbarrier.arrive(v_done, count=1)
            acc = acc * gl.expand_dims(gl.convert_layout(alpha, O_ROWS), 1)
            p = gl.convert_layout(next_p.to(dtype), P_LAYOUT)
        if not Q_IN_REGISTERS and not OUT_IN_Q:
            mbarrier.arrive(q_empty.index(group), count=1)
        # The last P V, and the small work of the end beside it.
        v_tile = v_tiles.index(stage).reshape([BLOCK_N, HEAD_DIM])
        mbarrier.wait(v_full.index(stage), phase)
        acc = warpgroup_mma(p, v_tile, acc, is_async=True)
        block += 1
        is_empty = l == 0.0
        largest = gl.where(gl.abs(largest) >= COARSE, m * scale, largest)
        lse = gl.where(is_empty, float("inf"), (largest + gl.log2(l)) * lse_scale)
        lse_base = L + index.to(gl.int64) * stride_lz + head.to(gl.int64) * stride_lh + gl.where(lse_compact != 0, row_q, 0)
        gl.store(lse_base + rows, lse, mask=(rows < seqlen_q) & (store_lse != 0))
        factor = gl.expand_dims(gl.convert_layout(1.0 / gl.where(is_empty, 1.0, l), O_ROWS), 1)
        out_row = own_row
        turn += 1
        mbarrier.wait(drawn.index(turn & 1), (turn >> 1) & 1)
        first_row = get(fields, turn & 1, FIRST_ROW)
        acc = warpgroup_mma_wait(0, deps=[acc])
        mbarrier.arrive(v_empty.index(stage), count=1)
        out = (acc * factor).to(dtype)
        z = gl.where((varlen_type == sequences.COMPACT) | (varlen_type == sequences.STRIDED), 0, index)
        # TMA writes 16 bytes at a time.
        if ((varlen_type == 0) | (out_row + GROUP_ROWS <= seqlen_q)) & (head_dim_vo % 8 == 0):
            tma.store_wait(0)  # the tile before has left out_tiles
            out_tiles.index(group).reshape([GROUP_ROWS, HEAD_DIM]).store(out)
            fence_async_shared()
            tma.async_copy_shared_to_global(map_Out, [z, head, row_q + out_row, 0], out_tiles.index(group))
        else:
            out_rows = out_row + gl.arange(0, GROUP_ROWS, O_ROWS)
            columns = gl.arange(0, HEAD_DIM, gl.SliceLayout(0, O_LAYOUT))
            base = Out + z.to(gl.int64) * stride_oz + head.to(gl.int64) * stride_oh
            places = gl.expand_dims((row_q + out_rows).to(gl.int64) * stride_om, 1) + gl.expand_dims(columns, 0)
            keep = gl.expand_dims(out_rows < seqlen_q, 1) & gl.expand_dims(columns < head_dim_vo, 0)
            gl.store(base + places, out, mask=keep)
        if OUT_IN_Q:
            tma.store_wait(0)
            mbarrier.arrive(q_empty.index(group), count=1)
    tma.store_wait(0)


@gluon.jit
def attn_fwd_hopper(
    map_Q, map_K, map_V, map_Out,  # [1, 1, rows, HEAD_DIM] of (batch, head, row, column)
    Out, L, sm_scale,  # > 0; these and the rest: attn_fwd, attn_fwd_persistent
    stride_oz, stride_oh, stride_om,
    stride_lz, stride_lh,
    num_sequences, num_head_q, num_head_k,
    max_seqlen_q, max_seqlen_k,
    cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type,
    head_dim_vo, window_left, window_right,
    lse_scale, store_lse, lse_compact,
    num_programs,
    tile_counter,  # *int32, 0 and 0 again afterwards; of this launch alone while it runs
    HEAD_DIM: gl.constexpr, WINDOWED: gl.constexpr,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr,
    TURNS: gl.constexpr,  # consumers take turns
    Q_IN_REGISTERS: gl.constexpr,
    OUT_IN_Q: gl.constexpr,  # a tile of Out leaves through the shared memory of Q
    REGISTERS: gl.constexpr,  # of a thread of a consumer but the first
):
    GROUPS: gl.constexpr = BLOCK_M // GROUP_ROWS
    dtype: gl.constexpr = map_Q.dtype
    BARRIER: gl.constexpr = mbarrier.MBarrierLayout()
    q_tiles = gl.allocate_shared_memory(dtype, [GROUPS, 1, 1, GROUP_ROWS, HEAD_DIM], map_Q.layout)
    if OUT_IN_Q:
        out_tiles = q_tiles
    else:
        out_tiles = gl.allocate_shared_memory(dtype, [GROUPS, 1, 1, GROUP_ROWS, HEAD_DIM], map_Out.layout)
    k_tiles = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_N, HEAD_DIM], map_K.layout)
    v_tiles = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_N, HEAD_DIM], map_V.layout)
    fields = gl.allocate_shared_memory(gl.int32, [2 * FIELDS, 1], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    q_full = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], BARRIER)
    q_empty = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], BARRIER)
    turns = gl.allocate_shared_memory(gl.int64, [GROUPS, 1], BARRIER)
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], BARRIER)
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], BARRIER)
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], BARRIER)
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], BARRIER)
    v_landed = gl.allocate_shared_memory(gl.int64, [1], BARRIER)
    drawn = gl.allocate_shared_memory(gl.int64, [2, 1], BARRIER)
    taken = gl.allocate_shared_memory(gl.int64, [2, 1], BARRIER)
    for i in gl.static_range(GROUPS):
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(q_empty.index(i), count=1)
        mbarrier.init(turns.index(i), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(v_full.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=GROUPS)
        mbarrier.init(v_empty.index(i), count=GROUPS)
    for i in gl.static_range(2):
        mbarrier.init(drawn.index(i), count=1)
        mbarrier.init(taken.index(i), count=GROUPS)
    mbarrier.init(v_landed, count=1)
    fence_async_shared()
    queries = (q_tiles, q_full, q_empty)
    keys = (k_tiles, k_full, k_empty)
    values = (v_tiles, v_full, v_empty)
    draws = (fields, drawn, taken)
    num_tiles = gl.cdiv(max_seqlen_q, BLOCK_M)
    problem = (num_head_q, num_head_k, num_head_q * num_sequences, num_tiles, max_seqlen_q, max_seqlen_k,
               cu_seqlens_q, cu_seqlens_k, seq_starts_q, seq_starts_k, varlen_type, window_left, window_right)
    outputs = (map_Out, Out, stride_oz, stride_oh, stride_om, head_dim_vo, L, stride_lz, stride_lh, lse_scale, store_lse, lse_compact)
    # Constexprs stand in the tuples themselves: in a variable they would become tensors.
    FIRST: gl.constexpr = 0
    SECOND: gl.constexpr = 1
    THIRD: gl.constexpr = 2
    if GROUPS == 2:
        gl.warp_specialize(
            [(consume, (queries, keys, values, draws, turns, out_tiles, outputs, problem, sm_scale, FIRST,
                        HEAD_DIM, WINDOWED, BLOCK_M, BLOCK_N, STAGES, TURNS, Q_IN_REGISTERS, OUT_IN_Q)),
             (consume, (queries, keys, values, draws, turns, out_tiles, outputs, problem, sm_scale, SECOND,
                        HEAD_DIM, WINDOWED, BLOCK_M, BLOCK_N, STAGES, TURNS, Q_IN_REGISTERS, OUT_IN_Q)),
             (produce, (map_Q, map_K, map_V, queries, keys, values, draws, v_landed, problem, num_programs, tile_counter,
                        HEAD_DIM, WINDOWED, BLOCK_M, BLOCK_N, STAGES))],
            [4, 1], [REGISTERS, 32])
    else:
        gl.warp_specialize(
            [(consume, (queries, keys, values, draws, turns, out_tiles, outputs, problem, sm_scale, FIRST,
                        HEAD_DIM, WINDOWED, BLOCK_M, BLOCK_N, STAGES, TURNS, Q_IN_REGISTERS, OUT_IN_Q)),
             (consume, (queries, keys, values, draws, turns, out_tiles, outputs, problem, sm_scale, SECOND,
                        HEAD_DIM, WINDOWED, BLOCK_M, BLOCK_N, STAGES, TURNS, Q_IN_REGISTERS, OUT_IN_Q)),
             (consume, (queries, keys, values, draws, turns, out_tiles, outputs, problem, sm_scale, THIRD,
                        HEAD_DIM, WINDOWED, BLOCK_M, BLOCK_N, STAGES, TURNS, Q_IN_REGISTERS, OUT_IN_Q)),
             (produce, (map_Q, map_K, map_V, queries, keys, values, draws, v_landed, problem, num_programs, tile_counter,
                        HEAD_DIM, WINDOWED, BLOCK_M, BLOCK_N, STAGES))],
            [4, 4, 1], [REGISTERS, REGISTERS, 32])
