"""Dropout's random numbers in Triton's interpreter: those of the host, bit for bit."""

import math

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from kernels.flash.debug_simulate_encoded_softmax import debug_fill_dropout_rng, debug_simulate_encoded_softmax, uniform
from tests.kernels import interpreter_fixes, philox
from tests.kernels.launch_attn_fwd import Dropout, bits, run

interpreter_fixes.install()

SHAPES = [(1, 1, 1, 1), (2, 3, 37, 45), (1, 2, 16, 64), (3, 1, 5, 3)]
STATES = [(0, 0, 0), (0x9BF58476D1CE4E5B, 2**32 - 20, 7), (2**64 - 1, 2**63 - 9, 9), (1, 2**64 - 5, 5)]


def poisoned(shape, dtype):
    """A view (batch, head, seqlen_q, seqlen_k) with gaps; the buffer; what fills it."""
    b, h, m, n = shape
    poison = -77 if dtype == torch.int32 else math.nan
    buffer = torch.full((b, m + 1, h, n + 3), poison, dtype=dtype)
    return buffer.transpose(1, 2)[:, :, :m, :n], buffer, poison


def gaps_untouched(view, buffer, poison):
    view.fill_(poison)
    return bool((buffer.isnan() if poison != poison else buffer == poison).all())


def signed(number):
    """The int64 with the bits of a uint64, as the launcher passes it."""
    return (number + 2**63) % 2**64 - 2**63


# A known answer of the Random123 distribution: counter and key 0.
def test_known_answer():
    assert philox.philox_4x32_10(0, 0).tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("seed, offset1, offset2, dtype",
                         [*((*state, torch.int32) for state in STATES), (*STATES[1], torch.float32)], ids=str)
@pytest.mark.parametrize("shape, blocks", list(zip(SHAPES, [(16, 16), (16, 32), (32, 4), (8, 16)])), ids=str)
def test_random_numbers(shape, blocks, seed, offset1, offset2, dtype):
    b, h, m, n = shape
    view, buffer, poison = poisoned(shape, dtype)
    debug_fill_dropout_rng[(-(-m // blocks[0]) * h * b,)](
        view, *view.stride(), h, m, n, signed(seed), signed(offset1 + offset2), BLOCK_M=blocks[0], BLOCK_N=blocks[1])
    want = philox.random_words(seed, offset1 + offset2, b, h, m, n)
    assert np.array_equal(view.numpy(), want if dtype == torch.int32 else philox.uniform(want))
    assert gaps_untouched(view, buffer, poison)


@triton.jit
def store_uniform(WORDS, OUT, COUNT: tl.constexpr):
    places = tl.arange(0, COUNT)
    tl.store(OUT + places, uniform(tl.load(WORDS + places)))


# The words beside the threshold of p, and the ends, where rounding could take them to the other side.
@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_numbers_above_p_are_kept(p):
    beside = int(philox.threshold(p))
    words = np.array([*(beside + step for step in (-300, -256, -1, 0, 1, 2, 255, 256, 300)),
                      -2**31, -2**31 + 1, -1, 0, 255, 2**31 - 256, 2**31 - 1])
    words = torch.from_numpy(np.clip(words, -2**31, 2**31 - 1).astype(np.int32))
    out = torch.empty(16, dtype=torch.float32)
    store_uniform[(1,)](words, out, COUNT=16)
    assert np.array_equal(out.numpy(), philox.uniform(words.numpy()))
    assert out.min() >= 0 and out.max() < 1
    assert np.array_equal(out.numpy() > np.float32(p), words.numpy() > philox.threshold(p))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("p", [1e-9, 0.1, 0.5, 0.9, 0.99999994, 1.0])
def test_mask(p, dtype):
    seed, offset1, offset2 = STATES[1]
    shape = (2, 3, 37, 45)
    view, buffer, poison = poisoned(shape, dtype)
    debug_simulate_encoded_softmax[(2 * 3 * 2,)](
        view, *view.stride(), p, 3, 37, 45, bits(seed), bits(offset1), offset2, BLOCK_M=32, BLOCK_N=16)
    keep = philox.keep_mask(p, seed, offset1 + offset2, *shape)
    assert np.array_equal(view.float().numpy(), np.where(keep, 0.5, -0.5).astype(np.float32))
    assert gaps_untouched(view, buffer, poison)


def test_kept_share():
    for p in (0.1, 0.5, 0.85):
        keep = philox.keep_mask(p, 123, 456, 4, 8, 64, 128)
        assert abs(keep.mean() - (1 - p)) < 4 * math.sqrt(p * (1 - p) / keep.size)


# P is the same everywhere and V the identity, so that Out shows the mask of the attention itself.
@pytest.mark.parametrize("general, blocks", [(False, (16, 16)), (False, (64, 64)), (True, (32, 64)), (True, (16, 4))])
def test_attention_keeps_the_mask(general, blocks):
    dropout = Dropout(0.4)
    q = torch.zeros(2, 4, 50, 64, dtype=torch.float16)
    k = torch.zeros(2, 2, 61, 64, dtype=torch.float16)
    v = torch.eye(61, 64, dtype=torch.float16).expand(2, 2, 61, 64)
    out, _ = run(q, k, v, 0.25, dropout=dropout, general=general, blocks=blocks)
    want = dropout.keep(2, 4, 50, 61) * (1 / (61 * 0.6))
    assert torch.equal(out[..., :61] != 0, dropout.keep(2, 4, 50, 61))
    assert (out[..., :61].double() - want).abs().max() < 1e-4
