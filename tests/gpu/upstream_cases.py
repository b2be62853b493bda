"""The shapes that upstream's own backward tests take (lengths, head dims, GQA, scales), forward and both backwards."""

import functools
import itertools

import torch

from tests.gpu.attention_case import BACKWARD_FACTOR, FORWARD_FACTOR, Case
from tests.gpu.family_cases import BACKENDS, test_of
from tests.gpu.forward_cases import DTYPES, short
from tests.kernels import reference

REGULAR_Q = [4, 8, 64, 143, 256, 512, 1024, 2048]
REGULAR_K = [4, 8, 64, 127, 256, 587, 1024, 2048]
IRREGULAR_Q = [11, 37, 157, 523, 1033, 2039]
IRREGULAR_K = [31, 67, 337, 811, 1063, 2011]
HEAD_DIMS = [8, 24, 40, 56, 72, 88, 104, 120, 136, 152, 168, 184, 200, 216, 232, 248,
             7, 23, 37, 53, 67, 73, 89, 113, 149, 179, 211, 241, 401]
FAST_DIMS = [(8, 8), (64, 64), (184, 184), (24, 152), (120, 8)]
FLIPPED = {name: "bshd" for name in ("q", "k", "v", "out", "do", "dq", "dk", "dv")}


def _turning():
    """The axes that do not name a shape, in turn: lengths without a common factor."""
    dtypes, causal, dropped = itertools.cycle(DTYPES), itertools.cycle((False, True)), itertools.cycle((0.0, 0.5, 0.0, 0.0, 0.5))
    bias = itertools.cycle((None, None, None, "no_grad", None, None, "grad"))
    flipped = itertools.cycle((False, False, True, False, True, True, False, True, False, False, True))
    while True:
        chosen = next(bias)
        yield next(dtypes), chosen == "grad", {
            "is_causal": next(causal), "dropout_p": next(dropped), "bias": chosen is not None,
            "layouts": FLIPPED if next(flipped) else {}}


def _named(group, shape, dtype, with_db, options):
    words = [word for word, on in (("causal", options["is_causal"]), ("dropout", options["dropout_p"]),
                                   ("bias", options["bias"]), ("grad", with_db), ("bshd", options["layouts"])) if on]
    name = f"upstream/{group}-{short(dtype)}-{'x'.join(map(str, shape))}-{'-'.join(words) or 'plain'}"
    return test_of(name, shape, dtype, with_db, **options)


def regular():
    for (sq, sk), (dtype, with_db, options) in zip(
            [*itertools.product(REGULAR_Q, REGULAR_K), *itertools.product(IRREGULAR_Q, IRREGULAR_K)], _turning()):
        b, h = (1, 2) if sq * sk > 2**20 else ((3, 5), (4, 1), (1, 4))[(sq + sk) % 3]
        yield _named("seqlen", (b, h, h, sq, sk, 64, 64), dtype, with_db, options)


def head_dims():
    for d, (dtype, with_db, options) in zip(HEAD_DIMS, _turning()):
        yield _named("head_dim", (1, 4, 4, 143, 587, d, d), dtype, with_db, options)


def gqa():
    for (heads, (sq, sk), d), (dtype, with_db, options) in zip(
            itertools.product([(16, 8), (10, 2)], [(64, 64), (143, 127), (523, 337), (1024, 587)], [64, 128, 80]), _turning()):
        yield _named("gqa", (1, *heads, sq, sk, d, d), dtype, with_db, options)


def fast():
    """Upstream's test_fast: batch 3, heads 5 or (10, 2)."""
    shapes = itertools.product([(5, 5), (10, 2)], FAST_DIMS, [11, 523, 2048], [31, 337, 1063])
    for (heads, dims, sq, sk), (dtype, with_db, options) in zip(shapes, _turning()):
        yield _named("fast", (3 if sq < 1000 else 1, *heads, sq, sk, *dims), dtype, with_db, options)


def scales():
    for dtype, sm_scale, biased, backend_causal in itertools.product(DTYPES, (0.0, 1.2, 1 / 64), (False, True), (False, True)):
        name = f"upstream/scale{sm_scale:.4g}-{short(dtype)}{'-bias' * biased}{'-causal' * backend_causal}"
        yield test_of(name, (1, 2, 2, 143, 127, 64, 64), dtype, biased, sm_scale=sm_scale, bias=biased,
                      is_causal=backend_causal)


def largest(dtype, is_causal, sq, sk, rows=2048):
    """Float64 in chunks of rows, so that memory stays bounded: a chunk is attention with a shifted window."""
    case = Case((1, 1, 1, sq, sk, 64, 64), dtype, is_causal=is_causal)
    out, _ = case.run_forward()
    q, k, v, do = (getattr(case, name).view for name in ("q", "k", "v", "do"))
    by_chunk = {"out": [], "dq": []}
    sums = {"dk": None, "dv": None}
    for first in range(0, sq, rows):
        chunk = q[:, :, first:first + rows], k, v
        options = {"sm_scale": 64**-0.5, "window": (2**31 - 1 - sq, first) if is_causal else None}  # n <= first + m
        orders = [None, *reference.orders(q[:, :, first:first + rows], k, v)]
        outs = [reference.attention(*chunk, **options, order=order, dtype=torch.float64 if order is None else dtype)[0]
                for order in orders]
        grads = [reference.gradients(*chunk, do[:, :, first:first + rows], **options, order=order,
                                     dtype=torch.float64 if order is None else dtype) for order in orders]
        by_chunk["out"].append((outs[0], outs[1:]))
        by_chunk["dq"].append((grads[0][0], [one[0] for one in grads[1:]]))
        for name, index in (("dk", 1), ("dv", 2)):
            terms = [one[index].double() for one in grads]
            sums[name] = terms if sums[name] is None else [a + b for a, b in zip(sums[name], terms)]
    chunks = [(first, first + rows) for first in range(0, sq, rows)]
    case.check_output("attn_fwd", FORWARD_FACTOR, "out", [out.view[:, :, a:b] for a, b in chunks], by_chunk["out"])
    for backend in BACKENDS:
        grads = case.run_backward(backend)
        case.check_output(f"attn_bwd {backend}", BACKWARD_FACTOR, "dq",
                          [grads["dq"].view[:, :, a:b] for a, b in chunks], by_chunk["dq"])
        for name in ("dk", "dv"):
            want, *runs = sums[name]
            case.check_output(f"attn_bwd {backend}", BACKWARD_FACTOR, name, [grads[name].view],
                              [(want, [one.to(dtype) for one in runs])])


def tests(quick):
    found = [*regular(), *head_dims(), *gqa(), *fast(), *scales()]
    if quick:
        return found[::4]
    shapes = [(torch.bfloat16, True, 10601, 11369), (torch.float16, False, 10601, 11369), (torch.float16, True, 5003, 8009),
              (torch.float32, True, 8009, 5003)]
    return [*found, *[(f"upstream/largest-{short(one[0])}{'-causal' * one[1]}-{one[2]}x{one[3]}",
                       functools.partial(largest, *one)) for one in shapes]]
