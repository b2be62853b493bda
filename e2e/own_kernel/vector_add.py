"""Z = X + Y."""

import triton
import triton.language as tl


@triton.jit
def vector_add(X, Y, Z, n, BLOCK: tl.constexpr):
    """X, Y, Z: (n,), any one floating-point type."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(Z + offsets, tl.load(X + offsets, mask=inside) + tl.load(Y + offsets, mask=inside), mask=inside)
