"""Properties on random problems: every tensor in a layout of its own, any window, any lengths.

Seeded, so that a failure can be run again by its name; the name is all that the problem depends on.
"""

import random

import aotriton

from tests.gpu import lengths
from tests.gpu.attention_case import Case
from tests.gpu.family_cases import both_ways
from tests.gpu.forward_cases import DTYPES
from tests.gpu.placing import random_layout

COUNT = 150


def _window(rng, sq, sk):
    if rng.random() < 0.25:
        return None

    def bound():
        return rng.choice((aotriton.WINDOW_TOP_LEFT, aotriton.WINDOW_BOTTOM_RIGHT, rng.randint(-sk, sk), rng.randint(-sq, sq),
                           rng.randint(-4, 4), rng.randint(-(2**31), 2**31 - 1)))

    return bound(), bound()


def problem(seed):
    """(Case of random everything, whether the gradient of its bias is wanted)."""
    rng = random.Random(seed)
    hk = rng.choice((1, 1, 2, 3))
    hq = hk * rng.choice((1, 1, 2, 4))
    d = rng.choice((rng.randint(1, 256), rng.choice((16, 32, 64, 96, 128, 192))))
    dv = rng.choice((d, d, rng.randint(1, 256)))
    longest_q, longest_k = rng.choice((3, 70, 200, 500)), rng.choice((3, 70, 200, 500))
    varlen, b, sq, sk = None, rng.randint(1, 3), rng.randint(1, longest_q), rng.randint(1, longest_k)
    kind = rng.choice((None, None, None, "compact", "padded", "strided"))
    if kind:
        b = rng.randint(1, 12)
        gaps = [[rng.choice((0, 0, 3, 40)) for _ in range(b)] for _ in range(2)]
        varlen = (lengths.make(kind, lengths.random_lengths(rng, b, longest_q), gaps[0]),
                  lengths.make(kind, lengths.random_lengths(rng, b, longest_k), gaps[1]), kind)
    bias = not kind and rng.random() < 0.4

    def bias_layout(shape):
        if rng.random() < 0.5:
            return "share0" + "".join(digit for digit in "123" if rng.random() < 0.5)
        return random_layout(rng, shape)

    def layout(shape):
        return random_layout(rng, shape)

    layouts = dict.fromkeys(("q", "k", "v", "out", "do", "dq", "dk", "dv", "db"), layout)
    return Case((b, hq, hk, sq, sk, d, dv), rng.choice(DTYPES), layouts={**layouts, "bias": bias_layout},
                window=_window(rng, longest_q, longest_k), sm_scale=rng.choice((None, None, 0.0, -0.1, 0.3)), bias=bias,
                dropout_p=rng.choice((0.0, 0.0, 0.1, 0.5)), seed=rng.getrandbits(64), offset1=rng.getrandbits(64),
                offset2=rng.getrandbits(20), varlen=varlen, lse_by_sequence=rng.random() < 0.5 and bool(kind),
                numbers=seed), bias and rng.random() < 0.6


def tests(quick):
    def test_of(seed):
        return f"random/{seed}", lambda: both_ways(*problem(seed))

    return [test_of(seed) for seed in range(COUNT // 3 if quick else COUNT)]
