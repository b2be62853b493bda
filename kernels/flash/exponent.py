"""The exponential of a score's distance from the maximum, as exact as the input deserves."""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
# ln(2) in two parts: n * LN2_HIGH is exact for |n| < 2**8.
LN2_HIGH = tl.constexpr(0.693145751953125)
LN2_LOW = tl.constexpr(1.42860682030941723212e-6)


@triton.jit
def exp_fp32(x):
    """e^x for x <= 0 in fp32, within an ulp; 0 below the normal numbers.

    The hardware's 2^x is off by 2 ulps and more, which alone would take the error past twice
    that of the plain formula. Reduction of Cody and Waite ("Software Manual for the Elementary
    Functions", chapter 6): x = n ln(2) + r, |r| <= ln(2) / 2, e^x = 2^n e^r; e^r by its series,
    whose remainder r^8 / 8! is below 6e-9.
    """
    x = tl.where(x < -104.0, -104.0, x)  # e^-104 is 0; a NaN stays
    n = tl.floor(x * LOG2E + 0.5)
    r = tl.fma(n, -LN2_LOW, tl.fma(n, -LN2_HIGH, x))
    series = tl.fma(r, 1.0 / 5040, 1.0 / 720)
    series = tl.fma(series, r, 1.0 / 120)
    series = tl.fma(series, r, 1.0 / 24)
    series = tl.fma(series, r, 1.0 / 6)
    series = tl.fma(series, r, 0.5)
    series = tl.fma(series, r, 1.0)
    series = tl.fma(series, r, 1.0)
    power_of_two = ((tl.maximum(n, -127.0).to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)
    return series * power_of_two


@triton.jit
def power(x, NATURAL: tl.constexpr):
    """e^x or 2^x, for x <= 0."""
    if NATURAL:
        return exp_fp32(x)
    else:
        return tl.exp2(x)
