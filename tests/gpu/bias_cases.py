"""Bias: every way to broadcast it, values at the edge of the dtype, rows and columns that it masks."""

import itertools
import math

import torch

from tests.gpu import ledger
from tests.gpu.attention_case import Case
from tests.gpu.family_cases import BACKENDS, both_ways, test_of
from tests.gpu.forward_cases import BOTTOM_RIGHT, DTYPES, WINDOWS, short


def broadcasts():
    """Stride 0 in every set of dimensions, with a window; the gradient has all elements."""
    shared = [digits for count in range(5) for digits in itertools.combinations("0123", count)]
    windows = ("full", "causal", "causal_bottom_right", "sliding", "nothing")
    for i, digits in enumerate(shared):
        for dtype in DTYPES:
            layout = "share" + "".join(digits) if digits else "bhsd"
            window = windows[i % len(windows)]
            yield test_of(f"bias/{layout}-{short(dtype)}-{window}", (2, 4, 2, 130, 200, 64, 64), dtype, True,
                          bias=True, layouts={"bias": layout}, window=WINDOWS[window])
    for layout, dtype in itertools.product(("transposed", "wide", "odd", "bshd"), DTYPES):
        yield test_of(f"bias/{layout}-{short(dtype)}", (2, 4, 2, 130, 200, 64, 64), dtype, True, bias=True,
                      layouts={"bias": layout, "db": "bshd"}, is_causal=True)


def _edited(shape, dtype, edit, with_db=True, **options):
    """A case whose bias `edit` changes in place, run with all checks."""
    case = Case(shape, dtype, bias=True, **options)
    edit(case.bias.distinct)
    both_ways(case, with_db)
    return case


def k07_left_padding():
    """pytorch#147460: additive mask (B, 1, 7, 7), -65504 in the left pad columns of batch 1, pad rows -0.0."""

    def edit(bias):
        bias[:, :] = 0.0
        bias[1, :, :, :3] = -65504.0
        bias[1, :, :3] = -0.0

    with ledger.equals_formula("K07"):
        _edited((2, 32, 32, 7, 7, 128, 128), torch.float16, edit, layouts={"bias": "share1"})


def k10_large_bias():
    """aotriton#228: bf16 bias of magnitude 100; the backward must see the forward's P, whose rows sum to 1."""
    with ledger.equals_formula("K10"):
        for dtype in DTYPES:
            both_ways(Case((2, 4, 2, 143, 337, 64, 64), dtype, bias=True, bias_scale=100.0), True)
        # With a scale of 0 the bias is all there is: the plain formula has no rounding to hide behind.
        for dtype in DTYPES:
            both_ways(Case((2, 4, 2, 143, 337, 64, 64), dtype, bias=True, bias_scale=4.0, sm_scale=0.0), True)
    # dV = P^T dO with dO = 1: column sums of P; their total is the number of rows, but for the rounding
    # of P and of dV to the dtype.
    for dtype in DTYPES:
        most = max(1e-5, torch.finfo(dtype).eps)
        case = Case((1, 2, 2, 64, 256, 64, 64), dtype, bias=True, bias_scale=100.0)
        case.do.view.fill_(1.0)
        case.run_forward()
        for backend in BACKENDS:
            total = case.run_backward(backend)["dv"].view[..., 0].double().sum(dim=2)
            worst = (total / 64 - 1).abs().max().item()
            ledger.value("K10", f"{short(dtype)} {backend}: mean row sum of the recomputed P - 1 = {worst:.1e}",
                         f"0 within {most:.1e}")
            assert worst <= most, worst


def k11_masked_rows():
    """pytorch#103749, #110213: mask rows all -inf give 0, +inf and no gradient; rows of finfo.min are uniform."""
    for dtype in DTYPES:

        def minus_inf(bias):
            bias[:, :, 3] = -math.inf
            bias[1, 0, 64:70] = -math.inf
            bias[:, :, :, 17:150] = -math.inf  # whole tiles of keys

        with ledger.equals_formula(f"K11 -inf {short(dtype)}", "masked rows Out 0, LSE +inf, gradients 0"):
            case = _edited((2, 4, 2, 130, 200, 64, 64), dtype, minus_inf)
            assert (case.out.view[:, :, 3] == 0).all() and (case.lse.view[:, :, 3] == math.inf).all()

        lowest_rows(dtype)

    def some(bias):
        bias[:, :, 100] = -math.inf

    with ledger.equals_formula("K11 Sq > Sk bottom-right with mask"):
        _edited((2, 2, 2, 200, 130, 64, 64), torch.bfloat16, some, window=(BOTTOM_RIGHT, BOTTOM_RIGHT))


def lowest_rows(dtype):
    """Rows whose whole mask is finfo.min: uniform, as the plain formula has it.

    Their logsumexp, -3e38 + ln n, is -3e38 in fp32, so no backward can find P from it: where dO is 0 in
    these rows all gradients are right, where it is not they are finite.
    """
    case = Case((2, 4, 2, 130, 200, 64, 64), dtype, bias=True)
    lowest = torch.finfo(dtype).min
    case.bias.view[:, :, :, 190:] = lowest
    for rows in (slice(3, 4), slice(70, 80)):
        case.bias.view[:, :, rows] = lowest
    with ledger.equals_formula(f"K11 finfo.min {short(dtype)}", "all gradients finite"):
        case.forward()
        assert case.out.view.isfinite().all()
        for backend in BACKENDS:
            for name, grad in case.run_backward(backend, True).items():
                assert grad.view.isfinite().all(), f"{backend}: {name} is not finite"
        for rows in (slice(3, 4), slice(70, 80)):
            case.do.view[:, :, rows] = 0.0
        for backend in BACKENDS:
            case.backward(backend, True)


def bias_alone_with_scale_0():
    """No division by sm_scale: with 0 the softmax is that of the bias."""
    for dtype in DTYPES:
        both_ways(Case((1, 2, 2, 143, 127, 64, 64), dtype, bias=True, sm_scale=0.0), True)


def tests():
    functions = [k07_left_padding, k10_large_bias, k11_masked_rows, bias_alone_with_scale_0]
    return [*broadcasts(), *[(f"bias/{one.__name__}", one) for one in functions]]
