"""A kernel that compiles in no time: Y = factor * X."""

import triton
import triton.language as tl


@triton.jit
def scale(X, Y, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Y + offsets, tl.load(X + offsets, mask=offsets < n) * factor, mask=offsets < n)
