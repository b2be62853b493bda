"""Random problems, forward and both backwards, against float64.

As many as the Hypothesis profile says (conftest.py); a failure prints the Case, which can be built again as it stands.
"""

from hypothesis import given

from tests.kernels.attention_case import check_backward, check_forward
from tests.kernels.strategies import cases


def check(case):
    check_backward(case, check_forward(case))


@given(cases())
def test_dense(case):
    check(case)


@given(cases(bias=True))
def test_bias(case):
    check(case)


@given(cases(varlen=True))
def test_varlen(case):
    check(case)
