"""Refusals: each names its argument, enqueues nothing, and harms no later call."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import aotriton
import torch
from aotriton import attention, library

from tests.gpu.checks import check_forward
from tests.gpu.placing import DEVICE, random_qkv

PACK_CHILD = pathlib.Path(__file__).with_name("pack_child.py")


def _good(dtype=torch.bfloat16):
    q, k, v = (one.view for one in random_qkv(2, 4, 2, 65, 127, 64, 64, dtype))
    return {"q": q, "k": k, "v": v, "out": torch.full_like(q, float("nan")),
            "logsumexp": torch.full(q.shape[:3], float("nan"), device=DEVICE)}


def _zeros(*shape, dtype=torch.bfloat16):
    return torch.zeros(shape, dtype=dtype, device=DEVICE)


def _bad_arguments():
    """(name, the argument at fault, its replacement, words of which the text has one)."""
    return [
        ("float64", "q", lambda: _zeros(2, 4, 65, 64, dtype=torch.float64), ("float64",)),
        ("mixed_dtypes", "k", lambda: _zeros(2, 2, 127, 64, dtype=torch.float16), ("dtype",)),
        ("rank_3", "q", lambda: _zeros(4, 65, 64), ("rank", "3")),
        ("last_stride_2_q", "q", lambda: _zeros(2, 4, 65, 128)[..., ::2], ("stride",)),
        ("last_stride_2_k", "k", lambda: _zeros(2, 2, 127, 128)[..., ::2], ("stride",)),
        ("last_stride_2_v", "v", lambda: _zeros(2, 2, 127, 128)[..., ::2], ("stride",)),
        ("last_stride_2_out", "out", lambda: _zeros(2, 4, 65, 128)[..., ::2], ("stride",)),
        ("heads_of_v", "v", lambda: _zeros(2, 4, 127, 64), ("4",)),
        ("batch", "k", lambda: _zeros(3, 2, 127, 64), ("3",)),
        ("head_dim", "k", lambda: _zeros(2, 2, 127, 72), ("72",)),
        ("seqlen_of_v", "v", lambda: _zeros(2, 2, 128, 64), ("128",)),
        ("shape_of_out", "out", lambda: _zeros(2, 4, 65, 72), ("72",)),
        ("shape_of_logsumexp", "logsumexp", lambda: _zeros(2, 4, 66, dtype=torch.float32), ("66",)),
        ("dtype_of_logsumexp", "logsumexp", lambda: _zeros(2, 4, 65), ("dtype",)),
        ("strided_logsumexp", "logsumexp", lambda: _zeros(2, 4, 130, dtype=torch.float32)[..., ::2], ("stride", "contiguous")),
    ]


def _bad_argument(argument, replacement, words):
    def test():
        good = _good()
        arguments = {**good, argument: replacement()}
        texts = set()
        for function in (aotriton.attn_fwd, aotriton.prepare):
            try:
                function(**arguments)
            except aotriton.AotritonError as error:
                assert error.status != 0
                texts.add(str(error))
            else:
                raise AssertionError(f"{function.__name__} accepted it")
        texts.add(aotriton.supported(**arguments))
        assert len(texts) == 1, f"attn_fwd, prepare and supported differ: {texts}"
        text = texts.pop()
        assert any(word in text for word in words), f"{words} are not in the text: {text}"
        torch.cuda.synchronize()
        for name in ("out", "logsumexp"):
            assert name == argument or good[name].isnan().all(), f"{name} was written"

    return test


def _raw(change):
    """What only a C caller can get wrong: `change` edits the packed arguments."""

    def test():
        good = _good()
        call = attention._Call(
            *(good[name] for name in "qkv"), None, None, False, good["out"], good["logsumexp"], None)
        change(call.args)
        try:
            call.run(library.load().aotriton_attn_fwd)
        except aotriton.AotritonError as error:
            assert len(str(error)) > 10, error
        else:
            raise AssertionError("it was accepted")
        torch.cuda.synchronize()
        assert good["out"].isnan().all(), "out was written"

    return test


def _clear_pointer(name):
    def change(args):
        getattr(args, name).data = None

    return change


def _set(name, value):
    return lambda args: setattr(args, name, value)


def heads_not_a_multiple():
    good = _good()
    three = _zeros(2, 3, 127, 64)
    reason = aotriton.supported(**{**good, "k": three, "v": three})
    assert reason and "heads" in reason and "4" in reason and "3" in reason, reason


def null_arguments():
    assert library.load().aotriton_attn_fwd(None, 0) != 0


def good_call_after_bad_ones():
    check_forward(*random_qkv(2, 4, 2, 65, 127, 64, 64, torch.bfloat16))
    assert library.load().aotriton_last_error() == b"", "the text outlives a call that succeeded"


def images_folder():
    """Where the library under test has its packs."""
    return pathlib.Path(os.environ.get("AOTRITON_IMAGES")
                        or pathlib.Path(library.find_library()).parent / "aotriton.images")


def packs():
    """D04, D11: no pack, a cut pack, a changed pack; then, in the same process, the right one."""
    vendor = "nvidia" if torch.version.cuda else "amd"
    relative = pathlib.Path(f"{vendor}-{aotriton.gpu_arch()}", "flash", "attn_fwd.pack")
    with tempfile.TemporaryDirectory() as images:
        done = subprocess.run(
            [sys.executable, PACK_CHILD, images_folder() / relative, pathlib.Path(images, relative)],
            env={**os.environ, "AOTRITON_IMAGES": images, "AOTRITON_LIBRARY": library.find_library(),
                 "PYTHONPATH": str(pathlib.Path(aotriton.__file__).parents[1])},
            capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"the child ended with {done.returncode}: {done.stderr[-600:]}"
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(steps) == 6, steps
    for step in steps:
        assert step["ok"] == (step["step"] == "whole"), step
        if not step["ok"]:
            assert step["status"] and "attn_fwd.pack" in step["text"], step
            assert step["untouched"], f"out was written: {step}"


def tests():
    bad = [(f"error/{name}", _bad_argument(argument, replacement, words))
           for name, argument, replacement, words in _bad_arguments()]
    raw = [(f"error/null_{name}", _raw(_clear_pointer(name))) for name in ("q", "k", "v", "out")]
    raw += [("error/struct_size_0", _raw(_set("struct_size", 0))),
            ("error/sm_scale_nan", _raw(_set("sm_scale", float("nan")))),
            ("error/sm_scale_inf", _raw(_set("sm_scale", float("inf"))))]
    functions = [heads_not_a_multiple, null_arguments, good_call_after_bad_ones, packs]
    return bad + raw + [(f"error/{one.__name__}", one) for one in functions]
