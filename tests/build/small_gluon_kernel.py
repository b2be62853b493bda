"""Kernels in Gluon, for the tests of the compile tool."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait


@gluon.jit
def load(map_X, row, ROWS: gl.constexpr):
    """A tile [ROWS, 64] of X in shared memory."""
    tile = gl.allocate_shared_memory(map_X.dtype, [1, 1, ROWS, 64], map_X.layout)
    landed = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(landed, count=1)
    mbarrier.expect(landed, ROWS * 64 * 2)
    tma.async_copy_global_to_shared(map_X, [0, 0, row, 0], landed, tile)
    mbarrier.wait(landed, 0)
    return tile


@gluon.jit
def copy(map_X, map_Y, row, ROWS: gl.constexpr):
    """Copies some rows of X to Y."""
    tile = load(map_X, row, ROWS)
    tma.async_copy_shared_to_global(map_Y, [0, 0, row, 0], tile)
    tma.store_wait(0)


@gluon.jit
def serialised(map_X, Y, count, ROWS: gl.constexpr):
    """Carries a product in flight over the edge of a loop, which ptxas does not do."""
    LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, ROWS, 16])
    x = load(map_X, 0, ROWS).reshape([ROWS, 64])
    zero = gl.full([ROWS, ROWS], 0.0, gl.float32, LAYOUT)
    total = zero
    product = warpgroup_mma(x, x.permute((1, 0)), zero, use_acc=False, is_async=True)
    for _ in range(count):
        done = warpgroup_mma_wait(0, deps=[product])
        product = warpgroup_mma(x, x.permute((1, 0)), zero, use_acc=False, is_async=True)
        total = gl.exp2(total + done)
    product = warpgroup_mma_wait(0, deps=[product])
    rows = gl.expand_dims(gl.arange(0, ROWS, gl.SliceLayout(1, LAYOUT)), 1)
    columns = gl.expand_dims(gl.arange(0, ROWS, gl.SliceLayout(0, LAYOUT)), 0)
    gl.store(Y + rows * ROWS + columns, total + product)
