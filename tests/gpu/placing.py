"""Tensors in a chosen layout, inside a buffer full of NaN.

Whatever is read past a row, a head or a tensor is NaN and shows in the result; whatever is
written there shows in the buffer.
"""

import os

import torch

# On simulated GPUs the host's memory is the device's.
DEVICE = os.environ.get("AOTRITON_TEST_DEVICE", "cuda")
# Elements of NaN before and after the tensor; a multiple of 16 bytes keeps the base aligned.
GUARD = 256


def strides(layout, shape):
    """(strides, offset in elements) of a layout of a rank 4 shape.

    bhsd, bshd: contiguous in that order. packed: the middle third of a (B, S, 3, H, D) buffer.
    wide: rows one element longer than head_dim. odd: bhsd, off by one element. padded: rows 8
    elements longer. pitch8: rows filled up to a multiple of 8 elements. transposed:
    the last two dimensions swapped in memory (a bias may be). shared_heads, shared_batch: stride 0
    there. share012: stride 0 in the dimensions named.
    """
    _, h, s, d = shape
    pitch = -(-d // 8) * 8
    if layout.startswith("share") and layout[5:].isdigit():
        shared = {int(digit) for digit in layout[5:]}
        steps = _contiguous([1 if i in shared else n for i, n in enumerate(shape)])
        return tuple(0 if i in shared else step for i, step in enumerate(steps)), 0
    return {
        "bhsd": ((h * s * d, s * d, d, 1), 0),
        "bshd": ((s * h * d, d, h * d, 1), 0),
        "packed": ((s * 3 * h * d, d, 3 * h * d, 1), h * d),
        "wide": ((h * s * (d + 1), s * (d + 1), d + 1, 1), 0),
        "odd": ((h * s * d, s * d, d, 1), 1),
        "padded": ((h * s * (d + 8), s * (d + 8), d + 8, 1), 8),
        "pitch8": ((h * s * pitch, s * pitch, pitch, 1), 0),
        "transposed": ((h * s * d, s * d, 1, s), 0),
        "shared_heads": ((s * d, 0, d, 1), 0),
        "shared_batch": ((0, s * d, d, 1), 0),
    }[layout]


def random_layout(rng, shape):
    """(strides, offset): batch, head and row in any order in memory, gaps between all of them.

    Half of the layouts keep the promises of the fast variants (multiples of 8 elements).
    """
    unit = rng.choice((1, 8))
    order = rng.sample(range(3), 3)
    steps, step = [0, 0, 0, 1], shape[3]
    for i in order:
        steps[i] = step = -(-(step + rng.choice((0, 0, 1, 3, 9))) // unit) * unit
        step *= max(shape[i], 1)
    return tuple(steps), unit * rng.randrange(4)


class Placed:
    """A view of `shape` in a NaN buffer. The view itself holds NaN until it is filled.

    layout: a name (see `strides`) or (strides, offset).
    """

    def __init__(self, shape, dtype, layout="bhsd"):
        if not isinstance(layout, str):
            steps, offset = layout
        else:
            steps, offset = strides(layout, shape) if len(shape) == 4 else (_contiguous(shape), 0)
        last = sum((n - 1) * step for n, step in zip(shape, steps)) if 0 not in shape else -1
        self.storage = torch.full((2 * GUARD + offset + last + 1,), float("nan"), dtype=dtype, device=DEVICE)
        self.view = self._strided(self.storage, shape, steps, GUARD + offset)

    @staticmethod
    def _strided(storage, shape, steps, offset):
        # as_strided checks the bounds even of an empty tensor.
        return storage.as_strided(shape, steps, min(offset, storage.numel()))

    @property
    def distinct(self):
        """The view with size 1 where the stride is 0: each element once."""
        return self.view[tuple(slice(0, min(n, 1) if step == 0 else n)
                               for n, step in zip(self.view.shape, self.view.stride()))]

    def fill_random(self, generator, scale=1.0):
        # One number for all that share an element.
        self.distinct.copy_(torch.randn(self.distinct.shape, generator=generator, device=DEVICE) * scale)
        return self

    def bits(self):
        """A copy of the whole buffer as integers: NaN equals NaN there."""
        return self.storage.view(torch.int32 if self.storage.element_size() == 4 else torch.int16).clone()

    def bits_outside(self, inside=None):
        """The same with the elements of the views `inside`, views of this buffer, set to 0.

        Default: the view itself.
        """
        bits = self.bits()
        for view in [self.view] if inside is None else inside:
            if view.numel():
                bits.as_strided(view.shape, view.stride(), view.storage_offset()).zero_()
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
