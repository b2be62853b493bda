"""The backward: layouts of dO and of the gradients, determinism, edges, public reports about it."""

import ctypes
import functools
import itertools
import math
import warnings

import aotriton
import torch

from tests.gpu import ledger, lengths
from tests.gpu.attention_case import Case
from tests.gpu.checks import View, refused
from tests.gpu.family_cases import BACKENDS, backends_of, both_ways, test_of
from tests.gpu.forward_cases import DTYPES, WINDOWS, short
from tests.gpu.placing import DEVICE, Placed

BF16 = torch.bfloat16


class _Expanded:
    """All elements are one: what autograd makes of out.sum()."""

    def __init__(self, shape, dtype):
        self.storage = Placed((1,), dtype)
        self.storage.view.fill_(1.0)
        self.view = self.storage.view.expand(shape)

    def bits(self):
        return self.storage.bits()


def s06_dout_of_sum():
    """flash-attention#325, #355: dO with all strides 0 is right, or refused with a text that names it."""
    for dtype in DTYPES:
        case = Case((2, 4, 2, 143, 337, 64, 64), dtype, is_causal=True)
        case.do = _Expanded(case.shapes["do"], dtype)
        case.forward()
        for backend in BACKENDS:
            reason = aotriton.attn_bwd_supported(
                case.do.view, case.q.view, case.k.view, case.v.view, case.out.view, case.lse.view, backend=backend,
                **case.options)
            if reason is None:
                case.backward(backend)
            else:
                assert "dout" in reason.lower() and "stride" in reason, reason
            ledger.value(f"S06 strides 0, {short(dtype)} {backend}", reason or "right", "right, or refused naming dO")


def s06_dout_last_stride_2():
    """dO with a last stride of 2: right, or refused with a text that names it, and no gradient written."""
    case = Case((2, 4, 2, 143, 337, 64, 64), BF16)
    case.forward()
    wide = torch.empty((*case.shapes["do"][:3], 128), dtype=BF16, device=case.q.view.device).normal_()
    grads = {name: torch.full_like(getattr(case, name[1:]).view, math.nan) for name in ("dq", "dk", "dv")}
    text = refused(aotriton.attn_bwd, wide[..., ::2], case.q.view, case.k.view, case.v.view, case.out.view,
                   case.lse.view, **grads, **case.options)
    ledger.value("S06 last stride 2", text, "refused naming dO")
    assert "dout" in text.lower() and "stride" in text, text
    assert all(one.isnan().all() for one in grads.values()), "a refused call wrote a gradient"


def r07_deterministic():
    """aotriton#134: 20 runs give the same bits, half of them through v3 with its option `deterministic`."""
    for dtype, d, options in itertools.product(
            DTYPES, (64, 72, 128), ({"is_causal": True}, {"bias": True, "dropout_p": 0.5, "layouts": {"bias": "share01"}})):
        case = Case((2, 8, 2, 523, 587, d, d), dtype, **options)
        case.run_forward()
        for backend in BACKENDS:
            first = case.run_backward(backend, case.bias is not None)
            for case.way in ("python", "v3") * 10:
                again = case.run_backward(backend, case.bias is not None)
                for name, one in first.items():
                    assert torch.equal(one.bits(), again[name].bits()), (
                        f"{backend} {short(dtype)} d{d}: {name} differs between runs")
    ledger.value("R07", "20 runs bit-equal, both backends", "20 runs bit-equal")


def k01_each_tensor_its_own_layout():
    """V's own strides, dO's own strides (aotriton#123, #236): no two tensors lie alike."""
    names = ("q", "k", "v", "out", "do", "dq", "dk", "dv")
    layouts = ["bhsd", "bshd", "packed", "wide", "odd", "padded", "pitch8", "bshd"]
    for turn, dtype in itertools.product(range(8), DTYPES):
        where = dict(zip(names, layouts[turn:] + layouts[:turn]))
        both_ways(Case((2, 4, 2, 143, 337, 80, 80), dtype, layouts=where, is_causal=turn % 2 == 0, numbers=turn))


def k05_huge_equal_scores():
    """ROCm/aotriton#54 in the backward: finite."""
    for seqlen, sm_scale in itertools.product((1, 4), (0.25, None)):
        with ledger.equals_formula(f"K05 {seqlen} {sm_scale or 'default'}", "finite"):
            _k05(seqlen, sm_scale)


def _k05(seqlen, sm_scale):
    case = Case((1, 1, 1, seqlen, seqlen, 64, 64), BF16, sm_scale=sm_scale)
    for one in (case.q, case.k, case.v):
        one.view.fill_(133120.0)
    both_ways(case)
    for backend in BACKENDS:
        assert all(one.view.isfinite().all() for one in case.run_backward(backend).values())


def k18_head_dims():
    """aotriton#135: dO follows V's head dim, dQ and dK follow Q's."""
    for d, dv in ((192, 128), (64, 128), (72, 40), (24, 152), (120, 8)):
        with ledger.equals_formula(f"K18 ({d},{dv})"):
            for dtype in DTYPES:
                for is_causal in (False, True):
                    both_ways(Case((2, 4, 2, 143, 337, d, dv), dtype, is_causal=is_causal))


def k11_rows_without_keys():
    """pytorch#103749: bottom-right causal with more queries than keys."""
    with ledger.equals_formula("K11 Sq > Sk bottom-right", "masked rows Out 0, LSE +inf, dQ 0"):
        for (sq, sk), dtype, d in itertools.product(((337, 143), (65, 1), (300, 64)), DTYPES, (64, 72)):
            # Gaps of NaN behind the rows of Out and dQ: what a masked tile writes past head_dim shows there.
            both_ways(Case((2, 4, 2, sq, sk, d, d), dtype, window=WINDOWS["causal_bottom_right"],
                           layouts={"out": "padded", "dq": "padded"}))


def more_tiles_than_workgroups():
    """aotriton#235: masked tiles before live ones, in more tiles than the GPU runs at once; v3 is given the counter."""
    for dtype, way in itertools.product((torch.float16, BF16), ("python", "v3")):
        both_ways(Case((6, 24, 8, 1100, 200, 64, 64), dtype, way=way, window=WINDOWS["causal_bottom_right"]))


def v05_empty():
    """pytorch#133780: nothing to write, or nothing to sum: zeros."""
    for b, sq, sk in ((0, 16, 16), (2, 0, 16), (2, 16, 0), (0, 0, 0)):
        for is_causal, bias in itertools.product((False, True), (False, True)):
            both_ways(Case((b, 3, 3, sq, sk, 64, 64), BF16, is_causal=is_causal, bias=bias), bias)
    ledger.value("V05", "no launch fails; Sk=0: Out 0, LSE +inf, dQ 0; Sq=0: dK, dV 0", "the same")


def v05_launches():
    """What has no element to write launches nothing; else each backend what its description says."""
    if torch.version.hip:
        # The graph belongs to whichever copy of the runtime torch has loaded. The fake runtime counts
        # there (tests/dispatch/api_test.cc, EmptyOutputSucceedsAndLaunchesNothing).
        ledger.value("V05 launches", "not counted on AMD", "0 for an empty output")
        return
    got = {}
    for b, sq, sk in ((2, 65, 65), (0, 65, 65), (2, 0, 0), (2, 65, 0), (2, 0, 65)):
        case = Case((b, 3, 3, sq, sk, 64, 64), BF16)
        case.run_forward()
        grads = {backend: case.run_backward(backend) for backend in BACKENDS}
        q, k, v, do, out, lse = (getattr(case, name).view for name in ("q", "k", "v", "do", "out", "lse"))
        delta = torch.empty_like(lse)
        counts = [_graph_nodes(lambda: aotriton.attn_fwd(q, k, v, out=out, logsumexp=lse))]
        for backend, to in grads.items():
            to = {name: one.view for name, one in to.items()}
            counts.append(_graph_nodes(
                lambda: aotriton.attn_bwd(do, q, k, v, out, lse, backend=backend, delta=delta, **to)))
        got[b, sq, sk] = counts
    ledger.value("V05 launches", f"forward, split, fused by (B, Sq, Sk): {got}", "0 for an empty output")
    assert got[2, 65, 65] == [1, 3, 1], got
    assert got[0, 65, 65] == got[2, 0, 0] == [0, 0, 0], got
    assert got[2, 0, 65][0] == 0, got


def _graph_nodes(call):
    """How many nodes the graph of a call has."""
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an empty graph
        with torch.cuda.graph(graph):
            call()
    count = ctypes.c_size_t()
    status = ctypes.CDLL("libcuda.so.1").cuGraphGetNodes(ctypes.c_void_p(graph.raw_cuda_graph()), None, ctypes.byref(count))
    assert status == 0, f"cuGraphGetNodes gives {status}"
    return count.value


def masked_nan():
    """Keys that no row keeps, and rows that keep no key, hold NaN: none of it reaches a gradient."""
    for dtype in DTYPES:
        case = Case((2, 4, 2, 100, 337, 64, 64), dtype, is_causal=True)
        case.clean = {name: View(getattr(case, name).view.clone()) for name in ("k", "v")}
        for one in (case.k, case.v):
            one.view[:, :, 100:] = math.nan
        both_ways(case)
        case = Case((2, 4, 2, 337, 100, 64, 64), dtype, window=WINDOWS["causal_bottom_right"])
        case.clean = {name: View(getattr(case, name).view.clone()) for name in ("q", "do")}
        for one in (case.q, case.do):
            one.view[:, :, :200] = math.nan
        both_ways(case)


def default_backend():
    """None gives what one of the two gives; head dims past 256 only "split" takes."""
    case = Case((1, 4, 2, 143, 337, 64, 64), BF16, is_causal=True)
    case.forward()
    default, *both = [case.run_backward(backend) for backend in (None, *BACKENDS)]
    assert any(all(torch.equal(default[name].bits(), one[name].bits()) for name in default) for one in both)
    case = Case((1, 2, 1, 65, 127, 512, 512), BF16)
    case.forward()
    case.backward("split")
    text = refused(case.run_backward, "fused")
    assert "512" in text and "256" in text, text
    case.check_backward(case.run_backward(None), "split")


def many_heads():
    """More heads, and more batches, than a grid's second dimension can count (65535)."""
    for b, h in ((8, 8200), (65600, 1)):
        both_ways(Case((b, h, h, 9, 9, 16, 16), torch.float16, is_causal=True))


def offsets_past_32_bits():
    """Rows of all eight tensors 2**23 elements apart: the last begins past element 2**31. Aligned, then not."""
    rows, d = 300, 64
    for odd in (0, 1):
        pitch = 2**23 + odd
        inputs, outputs = (torch.empty(rows * pitch, dtype=BF16, device=DEVICE) for _ in range(2))  # 5 GB each

        def place(buffer, heads, place):
            return View(buffer.as_strided((1, heads, rows, d), (0, d, pitch, 1), place * 1024 + odd))

        given = {name: place(inputs, heads, i) for i, (name, heads) in enumerate((("q", 2), ("k", 1), ("v", 1), ("do", 2)))}
        for one in given.values():
            one.view.normal_()
        case = Case((1, 2, 1, rows, rows, d, d), BF16, is_causal=True, given=given)
        case.out, case.lse = place(outputs, 2, 0), View(torch.empty(1, 2, rows, device=DEVICE))
        q, k, v, do = (one.view for one in given.values())
        aotriton.attn_fwd(q, k, v, out=case.out.view, logsumexp=case.lse.view, **case.options)
        case.check_forward()
        grads = {name: place(outputs, heads, i) for i, (name, heads) in enumerate((("dq", 2), ("dk", 1), ("dv", 1)), 1)}
        for backend in BACKENDS:
            for one in grads.values():
                one.view.fill_(math.nan)
            aotriton.attn_bwd(do, q, k, v, case.out.view, case.lse.view, backend=backend,
                              **{name: one.view for name, one in grads.items()}, **case.options)
            case.check_backward(grads, backend)


def _k17(dtype, d):
    """exllamav3#316, vllm#4127: what lies past each row is NaN; two runs give the same bits."""
    case = Case((1, 2, 2, 143, 150, d, d), dtype, is_causal=True,
                layouts=dict.fromkeys(("q", "k", "v", "out", "do", "dq", "dk", "dv"), "padded"))
    both_ways(case)
    first = case.out, case.lse
    for one, other in zip(first, case.run_forward()):
        assert torch.equal(one.bits(), other.bits()), "two forwards differ"
    for backend in backends_of(case):
        first, second = case.run_backward(backend), case.run_backward(backend)
        assert all(torch.equal(one.bits(), second[name].bits()) for name, one in first.items()), f"two {backend} differ"


def lists():
    extreme = [(2**31 - 1, 2**31 - 1), (2**31 - 1, 0), (0, 2**31 - 1), (-(2**31 - 10), 5), (5, -(2**31 - 10))]
    for window in extreme:
        yield test_of(f"backward/window-{window}", (1, 2, 2, 143, 337, 64, 64), torch.float16, window=window)
    for (sq, sk), window in itertools.product([(143, 337), (337, 143), (1, 1063), (1063, 1), (1, 127), (2, 3)],
                                              ("full", "causal", "causal_bottom_right")):
        yield test_of(f"K13/backward-s{sq}-{sk}-{window}", (1, 2, 1, sq, sk, 64, 64), BF16, window=WINDOWS[window])
    for d in (16, 24, 40, 48, 72, 80, 88, 96, 104, 160, 192, 224, 256, 512):
        for dtype in DTYPES:
            yield f"K17/{short(dtype)}-d{d}", functools.partial(_k17, dtype, d)
    for dtype in DTYPES:
        yield test_of(f"K12/{short(dtype)}", (1, 2, 2, 512, 1063, 128, 128), dtype, window=(-400, 500))
        # The first tiles of keys masked and then rows without any; a sequence without keys, one without rows.
        yield test_of(f"K12/{short(dtype)}-lengths", (4, 4, 2, 0, 0, 64, 64), dtype, window=(-130, 300),
                      varlen=(lengths.compact([300, 64, 200, 0]), lengths.compact([400, 0, 7, 50]), "compact"))


def tests():
    functions = [s06_dout_of_sum, s06_dout_last_stride_2, r07_deterministic, k01_each_tensor_its_own_layout,
                 k05_huge_equal_scores, k18_head_dims, k11_rows_without_keys,
                 more_tiles_than_workgroups, v05_empty, v05_launches, masked_nan,
                 default_backend, many_heads, offsets_past_32_bits]
    return [*[(f"backward/{one.__name__}", one) for one in functions], *lists()]
