"""Tensors (batch, head, seqlen, head_dim) in a chosen layout, inside a buffer full of NaN.

Whatever is read past a row, a head or a tensor is NaN and shows in the result; whatever is
written there shows in the buffer.
"""

import torch

DEVICE = "cuda"
# Elements of NaN before and after the tensor; a multiple of 16 bytes keeps the base aligned.
GUARD = 256


def strides(layout, shape):
    """(strides, offset in elements) of a layout.

    bhsd, bshd: contiguous in that order. packed: the middle third of a (B, S, 3, H, D) buffer.
    wide: rows one element longer than head_dim. odd: bhsd, off by one element. shared_heads,
    shared_batch: stride 0 there.
    """
    _, h, s, d = shape
    return {
        "bhsd": ((h * s * d, s * d, d, 1), 0),
        "bshd": ((s * h * d, d, h * d, 1), 0),
        "packed": ((s * 3 * h * d, d, 3 * h * d, 1), h * d),
        "wide": ((h * s * (d + 1), s * (d + 1), d + 1, 1), 0),
        "odd": ((h * s * d, s * d, d, 1), 1),
        "shared_heads": ((s * d, 0, d, 1), 0),
        "shared_batch": ((0, s * d, d, 1), 0),
    }[layout]


class Placed:
    """A view of `shape` in a NaN buffer. The view itself holds NaN until it is filled."""

    def __init__(self, shape, dtype, layout="bhsd"):
        steps, offset = strides(layout, shape) if len(shape) == 4 else (_contiguous(shape), 0)
        last = sum((n - 1) * step for n, step in zip(shape, steps)) if 0 not in shape else -1
        self.storage = torch.full((2 * GUARD + offset + last + 1,), float("nan"), dtype=dtype, device=DEVICE)
        self.view = self._strided(self.storage, shape, steps, GUARD + offset)

    @staticmethod
    def _strided(storage, shape, steps, offset):
        # as_strided checks the bounds even of an empty tensor.
        return storage.as_strided(shape, steps, min(offset, storage.numel()))

    def fill_random(self, generator, scale=1.0):
        # One number for all that share an element: shape 1 where the stride is 0.
        shape = [1 if step == 0 else n for n, step in zip(self.view.shape, self.view.stride())]
        narrow = self.view[tuple(slice(0, n) for n in shape)]
        narrow.copy_(torch.randn(shape, generator=generator, device=DEVICE) * scale)
        return self

    def bits(self):
        """A copy of the whole buffer as integers: NaN equals NaN there."""
        return self.storage.view(torch.int32 if self.storage.element_size() == 4 else torch.int16).clone()

    def bits_outside(self):
        """The same with the view's own elements set to 0."""
        bits = self.bits()
        bits.as_strided(self.view.shape, self.view.stride(), self.view.storage_offset()).zero_()
        return bits


def _contiguous(shape):
    steps = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        steps[i] = steps[i + 1] * max(shape[i + 1], 1)
    return tuple(steps)


def generator(seed):
    return torch.Generator(DEVICE).manual_seed(seed)


def random_qkv(b, hq, hk, sq, sk, d, dv, dtype, layouts=("bhsd",) * 3, seed=0, scale=1.0):
    """Placed q (b, hq, sq, d), k (b, hk, sk, d), v (b, hk, sk, dv), filled with scale * N(0, 1)."""
    numbers = generator(seed)
    shapes = (b, hq, sq, d), (b, hk, sk, d), (b, hk, sk, dv)
    return [Placed(shape, dtype, layout).fill_random(numbers, scale) for shape, layout in zip(shapes, layouts)]
