"""The fp32 exponential against float64."""

import math

import torch
import triton
import triton.language as tl

from kernels.flash.exponent import exp_fp32


@triton.jit
def apply(X, Y, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    tl.store(Y + offsets, exp_fp32(tl.load(X + offsets)))


def exp(x):
    y = torch.empty_like(x)
    apply[(1,)](x, y, x.numel())
    return y


def test_error_is_within_an_ulp():
    x = -torch.rand(2**15, generator=torch.Generator().manual_seed(1)) * 87
    want = x.double().exp()
    assert ((exp(x).double() - want).abs() / want).max() < 2**-23


def test_ends_of_the_range():
    x = torch.tensor([0.0, -math.inf, -1e30, -104.5, -90.0, -87.0, math.nan, -0.0])
    y = exp(x)
    assert y[0] == 1 and y[7] == 1 and (y[1:5] == 0).all() and y[5] > 0 and y[6].isnan()
