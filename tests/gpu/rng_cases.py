"""debug_fill_dropout_rng: the host's numbers, and the mask that they make."""

import itertools

import aotriton
import torch

from tests.gpu.placing import DEVICE, Placed
from tests.kernels import philox


def numbers_are_the_hosts():
    """Words and numbers, in any layout, seeds and offsets past 32 bits; nothing else is written."""
    for (seed, offset), layout in itertools.product(
            [(114514, 1919810), (2**63 + 12345, 2**32 - 3), (2**64 - 1, 2**64 - 100)], ("bhsd", "bshd", "odd")):
        shape = (2, 3, 65, 130)
        words = philox.random_words(seed, offset, *shape)
        # The words fill a tensor of fp32 by their bits: Placed has no integers.
        for as_words in (False, True):
            r = Placed(shape, torch.float32, layout)
            outside = r.bits_outside()
            view = r.view.view(torch.int32) if as_words else r.view
            aotriton.debug_fill_dropout_rng(view, philox_seed=seed, philox_offset=offset)
            assert torch.equal(r.bits_outside(), outside), f"something was written outside: {layout}"
            due = torch.from_numpy(words if as_words else philox.uniform(words))
            assert torch.equal(view.cpu(), due), f"seed {seed}, offset {offset}, {layout}"


def numbers_above_p_are_kept():
    """As PyTorch 2.6's tests make a mask of them."""
    r = torch.empty(2, 3, 143, 337, device=DEVICE)
    aotriton.debug_fill_dropout_rng(r, philox_seed=114514, philox_offset=1919810)
    for p in (0.25, 0.5, 0.75, 1.0):
        keep = philox.keep_mask(p, 114514, 1919810, *r.shape)
        assert torch.equal((r > p).cpu(), torch.from_numpy(keep)), f"p {p}"


def tests():
    return [("rng/numbers_are_the_hosts", numbers_are_the_hosts), ("rng/numbers_above_p_are_kept", numbers_above_p_are_kept)]
