"""Every functional of the attention family once, on each simulated arch that the images are for. Takes long: by hand.

    ./bazelw test //tests/simulator:family_test --//:archs=gfx942,gfx1100 --test_output=all
"""

import itertools
import os
import pathlib

import pytest

from tests.gpu import ledger
from tests.kernels import reference
from tests.simulator import simulated_gpu
from tests.simulator.problem import ARCHS, Problem

HEAD_DIMS = [16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256, 512]
FUSED_MAX = 256
SEQLEN = 37, 88  # rows of the bias start at multiples of 8, so that it is aligned
BUILT = [arch for arch in ARCHS if pathlib.Path(os.environ["AOTRITON_IMAGES_DIR"], f"amd-{arch}").exists()]


def _problems():
    """(name, dtype, head_dim, options) of each functional of attn_fwd."""
    for dtype, head_dim, *flags in itertools.product(("fp16", "bf16"), HEAD_DIMS, (0, 1), (0, 1), (0, 1)):
        causal, bias, dropout = flags
        words = [word for word, on in zip(("causal", "bias", "dropout"), flags) if on]
        options = {"causal": bool(causal), "bias": bool(bias), "dropout_p": 0.25 if dropout else 0.0}
        yield ".".join([dtype, f"d{head_dim}", *words]), dtype, head_dim, options
    for dtype, head_dim in itertools.product(("fp16", "bf16", "fp32"), HEAD_DIMS):
        options = {"causal": True, "bias": True, "dropout_p": 0.25}
        yield f"{dtype}.d{head_dim}.any", dtype, head_dim - 3, options  # of no tile's size, so of layout any


PROBLEMS = list(_problems())


@pytest.fixture(params=[(arch, problem) for arch in BUILT for problem in PROBLEMS], ids=lambda param: f"{param[0]}-{param[1][0]}")
def case(request):
    arch, (name, dtype, head_dim, options) = request.param
    assert simulated_gpu.HIP.hipSetDevice(ARCHS.index(arch)) == 0
    ledger.test = name
    return arch, dtype, head_dim, Problem(dtype, head_dim, seqlen=SEQLEN, **options)


def _check(op, dtype, names, got, want, floors, factor):
    for name, one, due, floor in zip(names, got, want, floors):
        ratio = reference.error(one, due) / floor if floor else float(reference.error(one, due) > 0)
        ledger.ratio(op, dtype, name, ratio)
        assert ratio <= factor, f"{name} errs {ratio:.2f} x the floor"


def test_forward(case):
    arch, dtype, _, problem = case
    inputs = problem.q, problem.k, problem.v, problem.sm_scale, problem.window
    _check(f"{arch} attn_fwd", dtype, ("out", "lse"), problem.forward(), reference.attention(*inputs, **problem.inputs),
           reference.floors(*inputs, **problem.inputs), 2)


@pytest.mark.parametrize("backend", ["split", "fused"])
def test_backward(case, backend):
    arch, dtype, head_dim, problem = case
    if backend == "fused" and head_dim > FUSED_MAX:
        pytest.skip("the fused backward ends at head_dim 256")
    inputs = problem.q, problem.k, problem.v, problem.do, problem.sm_scale, problem.window
    _check(f"{arch} {backend}", dtype, ("dq", "dk", "dv"), problem.backward(backend), reference.gradients(*inputs, **problem.inputs),
           reference.gradient_floors(*inputs, **problem.inputs), 3)

