"""Checks of tensors that a test made itself, by attention_case.Case."""

import dataclasses

import aotriton
import torch

from tests.gpu.attention_case import Case


@dataclasses.dataclass
class View:
    """A tensor where Case has a Placed."""

    view: torch.Tensor


def _shape(q, k, v):
    return (*q.shape[:2], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3])


def check_forward(q, k, v, *, out_layout="bhsd", with_lse=True, clean=None, **problem):
    """Runs attn_fwd on Placed q, k, v with poisoned outputs and checks everything it promises.

    Args:
      clean: (q, k, v) views for the reference, where the placed ones hold NaN that is masked off.

    Returns:
      (out, lse) Placed.

    Raises:
      AssertionError: says which promise and by how much.
    """
    case = Case(_shape(q.view, k.view, v.view), q.view.dtype, given={"q": q, "k": k, "v": v},
                layouts={"out": out_layout}, **problem)
    if clean:
        case.clean = dict(zip("qkv", map(View, clean)))
    return case.forward(with_lse)


def compare(q, k, v, out, lse, **problem):
    """Checks out and lse (None: not looked at) of one call of attn_fwd against float64."""
    case = Case(_shape(q, k, v), q.dtype, given={"q": View(q), "k": View(k), "v": View(v)}, **problem)
    case.out, case.lse = View(out), None if lse is None else View(lse)
    case.check_forward(lse is not None)


def refused(function, *arguments, **options):
    """The text with which `function` refuses the arguments.

    Raises:
      AssertionError: it accepts them.
    """
    try:
        function(*arguments, **options)
    except aotriton.AotritonError as error:
        assert error.status != 0 and str(error), "a refusal without status or text"
        return str(error)
    raise AssertionError(f"{function.__name__} accepted it")
