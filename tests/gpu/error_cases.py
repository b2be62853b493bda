"""Refusals: each names its argument, enqueues nothing, and harms no later call."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import aotriton
import torch
from aotriton import attention, library

from tests.gpu import ledger
from tests.gpu.attention_case import Case
from tests.gpu.checks import check_forward, refused
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
        call = attention._Forward(*(good[name] for name in "qkv"), good["out"], good["logsumexp"], None, None, None, None)
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


def _int32(*numbers):
    return torch.tensor(numbers, dtype=torch.int32, device=DEVICE)


_LENGTHS = {"varlen": "padded", "cu_seqlens_q": lambda: _int32(0, 65, 100), "cu_seqlens_k": lambda: _int32(0, 100, 227)}
_PHILOX = {"philox_seed": 1, "philox_offset1": 2}


def _bad_problems():
    """(name, options that both directions refuse, words of which the text has all)."""
    return [
        ("bias_rank", {"bias": lambda: _zeros(4, 65, 127)}, ("bias", "rank")),
        ("bias_sizes", {"bias": lambda: _zeros(2, 2, 65, 127)}, ("bias", "2")),
        ("bias_dtype", {"bias": lambda: _zeros(2, 4, 65, 127, dtype=torch.float32)}, ("bias", "dtype")),
        ("bias_with_varlen", {**_LENGTHS, "bias": lambda: _zeros(2, 4, 65, 127)}, ("bias", "varlen")),
        ("dropout_negative", {**_PHILOX, "dropout_p": -0.1}, ("dropout_p", "-0.1")),
        ("dropout_above_1", {**_PHILOX, "dropout_p": 1.5}, ("dropout_p", "1.5")),
        ("dropout_nan", {**_PHILOX, "dropout_p": float("nan")}, ("dropout_p", "nan")),
        ("no_seed", {"dropout_p": 0.5, "philox_offset1": 2}, ("philox_seed",)),
        ("no_offset", {"dropout_p": 0.5, "philox_seed": 2}, ("philox_offset1",)),
        ("seed_int32", {"dropout_p": 0.5, "philox_seed": lambda: _int32(1), "philox_offset1": 2}, ("philox_seed", "int32")),
        ("no_cu_seqlens_k", {**_LENGTHS, "cu_seqlens_k": None}, ("cu_seqlens_k",)),
        ("cu_seqlens_counts_differ", {**_LENGTHS, "cu_seqlens_k": lambda: _int32(0, 5)}, ("cu_seqlens_k", "2")),
        ("cu_seqlens_without_varlen", {"cu_seqlens_q": lambda: _int32(0, 5)}, ("cu_seqlens_q",)),
        ("cu_seqlens_dtype", {**_LENGTHS, "cu_seqlens_q": lambda: _zeros(3)}, ("cu_seqlens_q", "int32")),
        ("cu_seqlens_rank", {**_LENGTHS, "cu_seqlens_q": lambda: _int32(0, 5, 6)[None]}, ("cu_seqlens_q", "rank")),
        ("starts_missing", {**_LENGTHS, "varlen": "strided"}, ("seq_starts_q",)),
        ("compact_batch_2", {**_LENGTHS, "varlen": "compact"}, ("q", "varlen")),
        ("max_seqlen_negative", {**_LENGTHS, "max_seqlen_q": -1}, ("max_seqlen_q", "-1")),
        ("max_seqlen_past_the_tensor", {**_LENGTHS, "max_seqlen_k": 128}, ("max_seqlen_k", "128")),
    ]


def _bad_problem(options, words):
    def test():
        good = _good()
        tensors = {name: make() if callable(make) else make for name, make in options.items()}
        grads = {name: torch.full_like(good[name[1:]], float("nan")) for name in ("dq", "dk", "dv")}
        backward = good["out"], good["q"], good["k"], good["v"], good["out"], good["logsumexp"]
        for text in (refused(aotriton.attn_fwd, **good, **tensors), refused(aotriton.prepare, **good, **tensors),
                     refused(aotriton.attn_bwd, *backward, **grads, **tensors)):
            assert all(word in text for word in words), f"{words} are not all in the text: {text}"
        torch.cuda.synchronize()
        for name, one in {**{name: good[name] for name in ("out", "logsumexp")}, **grads}.items():
            assert one.isnan().all(), f"{name} was written"

    return test


def _bad_gradients():
    """(name, the argument of attn_bwd at fault, its replacement from the right one, words of which the text has all)."""
    return [
        ("dout_shape", "do", lambda one: one[:, :, 1:], ("dout", "64")),
        ("dout_dtype", "do", lambda one: one.float(), ("dout", "dtype")),
        ("dq_expanded", "dq", lambda one: one[:, :1].expand(one.shape), ("dq", "stride 0")),
        ("dk_shape", "dk", lambda one: one[:1], ("dk", "1")),
        ("dv_last_stride_2", "dv", lambda one: one.repeat(1, 1, 1, 2)[..., ::2], ("dv", "stride")),
        ("dbias_expanded", "dbias", lambda one: one[:1].expand(one.shape), ("dbias", "stride 0")),
        ("dbias_rows_expanded", "dbias", lambda one: one[:, :, :1].expand(one.shape), ("dbias", "stride 0")),
        ("dbias_shape", "dbias", lambda one: one[:, :, 1:], ("dbias", "64")),
        ("dbias_without_bias", "bias", lambda one: None, ("dbias", "bias")),
        ("logsumexp_missing", "logsumexp", lambda one: None, ("logsumexp",)),
        ("logsumexp_dtype", "logsumexp", lambda one: one.half(), ("logsumexp", "dtype")),
        ("delta_shape", "delta", lambda one: one[:, :, 1:].contiguous(), ("delta",)),
    ]


def _bad_gradient(argument, replace, words):
    def test():
        case = Case((2, 4, 2, 65, 127, 64, 64), torch.bfloat16, bias=True)
        case.run_forward()
        views = {name: getattr(case, name).view for name in ("do", "q", "k", "v", "out")}
        arguments = {**views, "logsumexp": case.lse.view, **case.options, "delta": torch.empty_like(case.lse.view),
                     "dbias": torch.full_like(case.bias.view, float("nan"))}
        for name in ("dq", "dk", "dv"):
            arguments[name] = torch.full_like(views[name[1:]], float("nan"))
        arguments[argument] = replace(arguments[argument])
        text = refused(aotriton.attn_bwd, **arguments)
        assert text == refused(aotriton.attn_bwd_prepare, **arguments) == aotriton.attn_bwd_supported(**arguments)
        assert all(word in text for word in words), f"{words} are not all in the text: {text}"
        torch.cuda.synchronize()
        for name in ("dq", "dk", "dv", "dbias"):
            assert arguments[name].isnan().all(), f"{name} was written"

    return test


def encoded_softmax_refusals():
    for tensor, word in ((_zeros(4, 5, 6), "rank"), (_zeros(1, 1, 5, 6, dtype=torch.int32), "dtype"),
                         (_zeros(1, 1, 5, 1).expand(1, 1, 5, 6), "stride 0")):
        text = refused(aotriton.debug_simulate_encoded_softmax, tensor, dropout_p=0.5, **_PHILOX)
        assert word in text, text


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
    return pathlib.Path(os.environ.get("AOTRITON_IMAGES_DIR")
                        or pathlib.Path(library.find_library()).parent / "aotriton.images")


def _pack(kernel):
    """Where the library under test has a pack of this GPU, relative to the folder of images."""
    vendor = "nvidia" if torch.version.cuda else "amd"
    return pathlib.Path(f"{vendor}-{aotriton.gpu_arch()}", "flash", f"{kernel}.pack")


def _in_child(kernel, contents):
    """Calls the kernel in a new process while its pack has each of the contents, pairs (name, bytes or None), in turn."""
    with tempfile.TemporaryDirectory() as folder:
        images, steps = pathlib.Path(folder, "images"), []
        for number, (name, content) in enumerate(contents):
            file = pathlib.Path(folder, f"{number}.pack")
            if content is not None:
                file.write_bytes(content)
            steps.append(f"{name}={'' if content is None else file}")
        done = subprocess.run(
            [sys.executable, PACK_CHILD, images / _pack(kernel), *steps],
            env={**os.environ, "AOTRITON_IMAGES_DIR": str(images), "AOTRITON_LIBRARY": library.find_library(),
                 "PYTHONPATH": str(pathlib.Path(aotriton.__file__).parents[1])},
            capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"the child ended with {done.returncode}: {done.stderr[-600:]}"
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["step"] for one in found] == [name for name, _ in contents], found
    return found


def _check_steps(case, kernel, steps):
    """All but "whole" are refused with a text that names the pack, and write nothing."""
    for step in steps:
        assert step["ok"] == (step["step"] == "whole"), step
        if step["ok"]:
            ledger.value(f"{case} pack {step['step']}, after all of these", "works", "works")
            assert not step["untouched"], step
        else:
            ledger.value(f"{case} pack {step['step']}", step["text"], "an error that names the pack; outputs untouched")
            assert step["status"] and f"{kernel}.pack" in step["text"], step
            assert step["untouched"], f"the output was written: {step}"


def d04_packs():
    """pytorch#194498: no pack, a cut pack, a changed pack; then, in the same process, the right one."""
    whole = (images_folder() / _pack("attn_fwd")).read_bytes()
    changed = bytearray(whole)
    changed[70] ^= 0xFF  # in the section table
    contents = [("missing", None), ("empty", b""), ("header only", whole[:64]), ("half", whole[: len(whole) // 2]),
                ("changed", bytes(changed)), ("whole", whole)]
    _check_steps("D04", "attn_fwd", _in_child("attn_fwd", contents))


def d11_module_load_fails():
    """TensorComprehensions#299: an intact pack whose code objects the GPU's driver refuses; then the right one."""
    kernel = "debug_simulate_encoded_softmax"  # its pack is small enough to be written anew
    good = images_folder() / _pack(kernel)
    # Not by `import tools`: other installed packages may have that name.
    spec = importlib.util.spec_from_file_location("pack_format", PACK_CHILD.parents[2] / "tools" / "pack" / "format.py")
    pack_format = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pack_format)
    refused_pack = pack_format.read_pack(good)
    for functional in refused_pack.functionals:
        for variant in functional.variants:
            variant.code = b"no code object" + variant.code[14:]
    contents = [("of no code objects", pack_format.encode(refused_pack)), ("whole", good.read_bytes())]
    _check_steps("D11", kernel, _in_child(kernel, contents))


def tests():
    bad = [(f"error/{name}", _bad_argument(argument, replacement, words))
           for name, argument, replacement, words in _bad_arguments()]
    raw = [(f"error/null_{name}", _raw(_clear_pointer(name))) for name in ("q", "k", "v", "out")]
    raw += [("error/struct_size_0", _raw(_set("struct_size", 0))),
            ("error/sm_scale_nan", _raw(_set("sm_scale", float("nan")))),
            ("error/sm_scale_inf", _raw(_set("sm_scale", float("inf"))))]
    raw += [(f"error/{name}", _bad_problem(options, words)) for name, options, words in _bad_problems()]
    raw += [(f"error/bwd_{name}", _bad_gradient(*rest)) for name, *rest in _bad_gradients()]
    functions = [encoded_softmax_refusals, heads_not_a_multiple, null_arguments, good_call_after_bad_ones, d04_packs,
                 d11_module_load_fails]
    return bad + raw + [(f"error/{one.__name__}", one) for one in functions]
