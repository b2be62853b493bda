"""The axes of the forward.

The grid is head_dim x window, 11 x 11; the other axes turn with the cell's number. Their lengths
(3, 5, 7, 8) share no factor with each other or with 11, and none exceeds 11, so any two values of
any two axes meet in some cell.
"""

import zlib

import aotriton
import torch

from tests.gpu.checks import check_forward
from tests.gpu.placing import random_qkv

TOP_LEFT = aotriton.WINDOW_TOP_LEFT
BOTTOM_RIGHT = aotriton.WINDOW_BOTTOM_RIGHT

HEAD_DIMS = [16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256]
WINDOWS = {
    "full": None,
    "causal": (TOP_LEFT, TOP_LEFT),
    "causal_bottom_right": (BOTTOM_RIGHT, BOTTOM_RIGHT),
    "sliding": (100, 31),
    "past_only": (64, 0),
    "diagonal": (0, 0),
    "negative_left": (-5, 40),
    "negative_right": (40, -5),
    "sentinel_number": (TOP_LEFT, 17),
    "number_sentinel": (33, BOTTOM_RIGHT),
    "nothing": (-3, -8),
}
DTYPES = [torch.float16, torch.bfloat16, torch.float32]
HEADS = [(2, 2), (8, 2), (9, 3), (4, 1), (1, 1)]
# q, k, v, out
LAYOUTS = [
    ("bhsd", "bhsd", "bhsd", "bhsd"),
    ("bshd", "bshd", "bshd", "bshd"),
    ("packed", "packed", "packed", "bshd"),
    ("wide", "wide", "wide", "wide"),
    ("odd", "bhsd", "odd", "odd"),
    ("bhsd", "shared_heads", "shared_batch", "bhsd"),
    ("bshd", "wide", "bshd", "bhsd"),
]
SEQLENS = [(1, 1), (7, 63), (63, 7), (65, 127), (127, 65), (143, 337), (337, 143), (1063, 1063)]

ODD_HEAD_DIMS = [(d, d) for d in (1, 5, 24, 40, 72, 88, 104, 120)] + [
    (72, 40), (24, 152), (120, 8), (192, 128), (64, 128)]  # K17, K18
# K13 and beyond: one query, one key, both ways round.
SHORT = [(1, 1063), (1063, 1), (1, 127), (2, 3)]
# Bounds whose sums with a row number leave 32 bits.
EXTREME_WINDOWS = [(2**31 - 1, 2**31 - 1), (2**31 - 1, 0), (0, 2**31 - 1), (-(2**31 - 10), 5), (5, -(2**31 - 10))]


def _case(name, shape, dtype, layouts=("bhsd",) * 4, **options):
    """A test (name, function) of random q, k, v; shape = (b, hq, hk, sq, sk, d, dv)."""

    def test():
        q, k, v = random_qkv(*shape, dtype, layouts[:3], seed=zlib.crc32(name.encode()))
        check_forward(q, k, v, out_layout=layouts[3], **options)

    return name, test


def short(dtype):
    return str(dtype).removeprefix("torch.")


def grid(quick):
    """One test a cell; quick: three cells of nine, so that every dtype stays."""
    for row, head_dim in enumerate(HEAD_DIMS):
        for column, (window_name, window) in enumerate(WINDOWS.items()):
            cell = row * len(WINDOWS) + column
            if quick and cell // 3 % 3:
                continue
            dtype = DTYPES[cell % len(DTYPES)]
            hq, hk = HEADS[cell % len(HEADS)]
            layouts = LAYOUTS[cell % len(LAYOUTS)]
            sq, sk = SEQLENS[cell % len(SEQLENS)]
            name = f"grid/d{head_dim}-{window_name}-{short(dtype)}-h{hq}/{hk}-s{sq}/{sk}-{'.'.join(layouts)}"
            yield _case(name, (2, hq, hk, sq, sk, head_dim, head_dim), dtype, layouts, window=window)


def lists():
    """What the grid leaves out."""
    for d, dv in ODD_HEAD_DIMS:
        for dtype in DTYPES:
            for layouts in (LAYOUTS[0], LAYOUTS[3]):
                yield _case(f"head_dim/{d}-{dv}-{short(dtype)}-{layouts[0]}", (2, 4, 2, 143, 337, d, dv), dtype,
                            layouts, is_causal=layouts[0] == "wide")
    for sq, sk in SHORT:
        for window_name in ("full", "causal", "causal_bottom_right"):
            yield _case(f"K13/s{sq}-{sk}-{window_name}", (1, 2, 1, sq, sk, 64, 64), torch.bfloat16,
                        window=WINDOWS[window_name])
    for window in EXTREME_WINDOWS:
        yield _case(f"window/{window}", (1, 2, 2, 143, 337, 64, 64), torch.float16, window=window)
    for sm_scale in (0.0, -0.3, 1.0, 1e-3):
        for dtype in DTYPES:
            yield _case(f"sm_scale/{sm_scale}-{short(dtype)}", (2, 2, 2, 127, 337, 64, 64), dtype,
                        sm_scale=sm_scale, is_causal=True)
    for dtype in DTYPES:
        yield _case(f"no_logsumexp/{short(dtype)}", (2, 2, 2, 127, 337, 64, 64), dtype, with_lse=False)
    yield _case("is_causal/same_as_top_left", (1, 2, 2, 337, 143, 128, 128), torch.bfloat16, is_causal=True)


def tests(quick):
    return [*grid(quick), *lists()]
