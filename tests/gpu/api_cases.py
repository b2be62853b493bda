"""One call through every API: v2, v3, C and Python give the same bits, refuse in the same words."""

import zlib

import aotriton
import torch

from tests.gpu import calls, ledger, pairwise
from tests.gpu.attention_case import Case
from tests.gpu.checks import refused
from tests.gpu.family_cases import BIASES, DIFFERENT_DIMS, SEQLENS, backends_of, problem_of
from tests.gpu.forward_cases import DTYPES, LAYOUTS
from tests.gpu.placing import DEVICE, Placed

# v2 can say less than v3: each combination of its list is made in every way, each of v3's in every other
# way and, where it has words for it, through v2.
_BOTH = {
    "dtype": DTYPES, "heads": [(2, 2), (16, 8), (10, 2), (4, 1)], "layouts": LAYOUTS, "seqlens": SEQLENS, "bias": BIASES,
    "dropout_p": [0.0, 0.5], "dv": DIFFERENT_DIMS, "sm_scale": [None, 1.2, 0.0],
}
_AXES = {
    "v2": {**_BOTH, "d": [16, 64, 72, 113, 128, 192, 256, 512], "window": ["full", "causal"], "varlen": [None, "compact"]},
    "v3": {**_BOTH, "d": [24, 64, 80, 128, 160, 256, 401],
           "window": ["full", "causal_bottom_right", "sliding", "negative_left", "sentinel_number", "nothing"],
           "varlen": [None, "compact", "padded", "strided"]},
}


def _results(case, with_db, checked):
    """Forward and backwards through case.way: {output: bits of its whole buffer}."""
    more, dropped = {}, {}
    if case.dropout_p:
        dropped = {"encoded_softmax": Placed(case.scores_shape(), case.dtype),
                   "philox": torch.full((3,), -7, dtype=torch.int64, device=DEVICE)}
        more = {"encoded_softmax": dropped["encoded_softmax"].view, "philox_seed_output": dropped["philox"][:1],
                "philox_offset_output": dropped["philox"][1:2]}
    out, lse = case.run_forward(**more)
    bits = {"out": out.bits(), "logsumexp": lse.bits()}
    if dropped:
        bits.update(encoded_softmax=dropped["encoded_softmax"].bits(), philox=dropped["philox"])
    if checked:
        case.check_forward()
        if dropped:
            _check_dropped(case, **dropped)
    for backend in backends_of(case):
        grads = case.backward(backend, with_db) if checked else case.run_backward(backend, with_db)
        bits.update({f"{name} of {backend}": grad.bits() for name, grad in grads.items()})
    return bits


def _check_dropped(case, encoded_softmax, philox):
    seed, offset1, offset2 = case.philox
    assert philox.tolist() == [seed, offset1 + offset2, -7], philox.tolist()
    view = encoded_softmax.view
    parts = [view] if not case.varlen else [
        view[i:i + 1, :, :rows, :columns] for i, (rows, columns) in enumerate(zip(case.varlen[0].lengths, case.varlen[1].lengths))]
    for index, part in enumerate(parts):
        assert torch.equal(part > 0, case.keep(index)), f"encoded_softmax of part {index} is not the mask"


def _in_every_way(case, with_db):
    """All checks through case.way; each other way that has words for the call gives the same bits."""
    first = case.way
    due = _results(case, with_db, checked=True)
    for way in calls.WAYS:
        case.way = way
        if way == first or not case.expressible():
            continue
        got = _results(case, with_db, checked=False)
        for name in due.keys() & got.keys():
            assert torch.equal(got[name], due[name]), f"{name} through {way} differs from that through {first}"
        ledger.same_bits(first, way)


def pairs(quick):
    """Any two values of any two axes that the API has words for."""
    for way, axes in _AXES.items():
        for i, one in enumerate(pairwise.combinations(axes)):
            if quick and i % 3:
                continue
            name, shape, dtype, with_db, options = problem_of(i, **one)
            yield _test_of(f"api/{way}-{name}", shape, dtype, with_db, way if way == "v2" or i % 2 else "v3_lazy", options)


def _test_of(name, shape, dtype, with_db, way, options):
    def test():
        _in_every_way(Case(shape, dtype, way=way, numbers=zlib.crc32(name.encode()), **options), with_db)

    return name, test


def default_backend():
    """With a workspace the library chooses the split backend, whichever API asks."""
    case = Case((2, 4, 2, 143, 337, 64, 64), torch.bfloat16, is_causal=True)
    case.forward()
    due = case.backward("split")
    for case.way in calls.WAYS:
        for name, grad in case.run_backward(None).items():
            assert torch.equal(grad.bits(), due[name].bits()), f"{name} through {case.way}"


def encoded_softmax_alone():
    """v2's debug_simulate_encoded_softmax writes what Python's does."""
    seed, offset = (torch.tensor([number], device=DEVICE) for number in (12345, 2**40 - 3))
    for dtype in DTYPES:
        due, got = (Placed((2, 3, 65, 127), dtype) for _ in range(2))
        problem = {"dropout_p": 0.3, "philox_seed": seed, "philox_offset1": offset, "philox_offset2": 7}
        aotriton.debug_simulate_encoded_softmax(due.view, **problem)
        calls.debug_simulate_encoded_softmax(got.view, **problem)
        assert torch.equal(due.bits(), got.bits()) and not got.view.isnan().any()


def refusals():
    """A bad call has the same status and the same text in each API, and writes nothing."""
    nan = float("nan")
    bad = {
        "num_head_k is 3": Case((2, 4, 3, 65, 127, 64, 64), torch.bfloat16),
        "head_dim is 513": Case((1, 1, 1, 65, 65, 513, 513), torch.bfloat16),
        "sm_scale is nan": Case((2, 4, 2, 65, 127, 64, 64), torch.bfloat16, sm_scale=nan),
        "dropout_p is 1.5": Case((2, 4, 2, 65, 127, 64, 64), torch.bfloat16, dropout_p=1.5),
    }
    for what, case in bad.items():
        _same_refusal(what, case, case.run_forward)
        assert case.out.view.isnan().all() and case.lse.view.isnan().all(), f"{what}: something was written"
    good = Case((2, 4, 2, 65, 127, 512, 512), torch.bfloat16, bias=True, layouts={"db": "share2"})
    good.run_forward()
    _same_refusal("head_dim 512 of fused", good, lambda: good.run_backward("fused"))
    _same_refusal("dbias with stride 0", good, lambda: good.run_backward("split", True))


def _same_refusal(what, case, call):
    texts = {}
    for case.way in calls.WAYS:
        texts.setdefault(refused(call), []).append(case.way)
    torch.cuda.synchronize()
    assert len(texts) == 1, f"{what}: {texts}"


def gpu_questions():
    """check_gpu and the functions of aotriton/util.h, for a stream of every GPU."""
    for index in range(torch.cuda.device_count()):
        for stream in (torch.cuda.default_stream(index), torch.cuda.Stream(index)):
            with torch.cuda.device(index):  # the default stream is that of the current GPU
                answers, arch = calls.ask_about_gpu(stream), aotriton.gpu_arch(stream)
            assert answers.check_gpu == 0, f"check_gpu is {answers.check_gpu}"
            # Upstream's numbers are those of AMD's: vendor, arch digits, product.
            due = 0x1002 << 32 | int(arch[3:], 16) << 16 if arch.startswith("gfx") else 0
            assert answers.gpu == due, f"getGpuFromStream is {answers.gpu:#x} for {arch}, not {due:#x}"
            assert answers.multiprocessors == torch.cuda.get_device_properties(index).multi_processor_count
            assert {answers.is_experimental, answers.is_tech_preview} <= {0, 1}
            if arch == "sm_90":
                assert not answers.is_experimental and not answers.is_tech_preview


def tests(quick):
    functions = [gpu_questions, default_backend, encoded_softmax_alone, refusals]
    return [*[(f"api/{one.__name__}", one) for one in functions], *pairs(quick)]
