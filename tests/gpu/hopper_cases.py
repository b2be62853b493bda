"""The backend hopper: its axes, forced, so that no call is triton's; what it refuses; its counters on streams and in graphs."""

import itertools
import math
import random
import threading
import zlib

import aotriton
import torch

from tests.gpu import calls, lengths
from tests.gpu.attention_case import Case
from tests.gpu.checks import refused
from tests.gpu.forward_cases import HEADS, WINDOWS, short
from tests.gpu.placing import DEVICE, Placed

DTYPES = (torch.bfloat16, torch.float16)
# Of q and k, of v: the tiles, and what TMA pads to them.
HEAD_DIMS = [(64, 64), (128, 128), (256, 256), (40, 40), (48, 48), (80, 80), (96, 96), (8, 8), (5, 5), (72, 40), (64, 128),
             (24, 152), (192, 128), (160, 160), (224, 224)]
SEQLENS = [(1, 1), (1, 513), (77, 77), (128, 256), (200, 640), (640, 200), (1000, 1000), (1024, 130)]
# Strides are multiples of 8 whatever the head dim.
LAYOUTS = [("bhsd",) * 4, ("bshd",) * 4, ("padded",) * 4, ("packed", "packed", "packed", "bshd"), ("bhsd", "shared_heads", "shared_batch", "bhsd")]
LAYOUTS_OF_ODD = [("pitch8",) * 4]


def _layouts(names):
    return dict(zip(("q", "k", "v", "out"), names))


def _on_hopper(function):
    def test():
        if aotriton.gpu_arch() == "sm_90":
            function()

    return test


def _case(name, shape, dtype, **options):
    def test():
        Case(shape, dtype, numbers=zlib.crc32(name.encode()), fwd_backend="hopper", **options).forward()

    return f"hopper/{name}", _on_hopper(test)


def grid():
    """head_dim x window; the other axes turn with the cell's number, and each seqlen meets each head_dim."""
    for row, (d, dv) in enumerate(HEAD_DIMS):
        for column, (window_name, window) in enumerate(WINDOWS.items()):
            cell = row * len(WINDOWS) + column
            dtype, (hq, hk) = DTYPES[cell % 2], HEADS[cell % len(HEADS)]
            sq, sk = SEQLENS[(row + column) % len(SEQLENS)]
            choice = LAYOUTS if d % 8 == 0 and dv % 8 == 0 else LAYOUTS_OF_ODD
            layouts = choice[cell % len(choice)]
            yield _case(f"d{d}/{dv}-{window_name}-{short(dtype)}-h{hq}/{hk}-s{sq}/{sk}-{'.'.join(layouts)}", (2, hq, hk, sq, sk, d, dv),
                        dtype, layouts=_layouts(layouts), window=window)


def every_seqlen():
    """Lengths around the tiles' edges, both ways."""
    edges = [1, 2, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 383, 385, 511, 513, 1023, 1024]
    for i, (sq, sk) in enumerate(itertools.chain(zip(edges, edges[::-1]), zip(edges, edges[7:] + edges[:7]))):
        d, window = (64, 128)[i % 2], ("full", "causal", "causal_bottom_right", "sliding")[i // 2 % 4]
        yield _case(f"edges-s{sq}/{sk}-d{d}-{window}", (1, 4, 2, sq, sk, d, d), DTYPES[i // 3 % 2], window=WINDOWS[window])


def long_causal():
    """Past the length from which head_dim 64 has larger tiles; more tiles than multiprocessors."""
    for d, (sq, sk) in itertools.product((64, 128, 256), ((6145, 6145), (7000, 300), (300, 7000))):
        yield _case(f"long-d{d}-s{sq}/{sk}", (1, 2, 1, sq, sk, d, d), torch.bfloat16, is_causal=sq != 300, window=WINDOWS["sliding"] if sq == 300 else None)
    yield _case("many_heads", (3, 64, 8, 333, 333, 64, 64), torch.float16, is_causal=True)


def varlen():
    lists = {"ragged": ([1, 7, 63, 0, 65, 127, 143], [337, 1, 0, 5, 64, 63, 130]), "empty": ([0, 0, 300, 0, 129, 0], [0, 128, 256, 300, 0, 0]),
             "no_queries": ([0, 0], [5, 70]), "no_keys": ([5, 70, 1], [0, 1, 0]), "uneven": ([2, 1211, 3], [500, 4, 1])}
    draw = random.Random(0)
    lists["many"] = [draw.randint(0, 700) for _ in range(19)], [draw.randint(0, 700) for _ in range(19)]
    windows = itertools.cycle(("full", "causal", "causal_bottom_right", "sliding", "negative_left"))
    for i, ((name, lens), kind) in enumerate(itertools.product(lists.items(), ("compact", "padded", "strided"))):
        for d, window in ((64, next(windows)), (128, next(windows)), (80, next(windows))):
            yield _case(f"varlen-{name}-{kind}-d{d}-{window}", (len(lens[0]), 4, 2, 0, 0, d, d), DTYPES[i % 2], window=WINDOWS[window],
                        varlen=(lengths.make(kind, lens[0]), lengths.make(kind, lens[1]), kind), lse_by_sequence=i % 2 == 0)


def special():
    for sm_scale in (1e-30, 1e-3, 1.0, 1e3, 1e6, 3e7, 1e9):  # from some point on only the largest score of a row counts
        yield _case(f"sm_scale-{sm_scale}", (1, 2, 2, 300, 333, 64, 64), torch.bfloat16, sm_scale=sm_scale)
    yield _case("large_scores", (1, 1, 1, 200, 200, 128, 128), torch.float16, scale=8.0)


def masked_nan():
    """Keys that no row keeps hold NaN: at the end, and before the window."""
    for d, dtype in itertools.product((64, 128, 256), DTYPES):
        for window, kept in (((aotriton.WINDOW_TOP_LEFT,) * 2, (0, 100)), ((-150, 200), (150, 300))):
            case = Case((2, 4, 2, 100, 600, d, d), dtype, window=window, fwd_backend="hopper")
            for name in ("k", "v"):
                view = getattr(case, name).view
                case.clean[name] = type("View", (), {"view": view.clone()})
                view[:, :, :kept[0]] = math.nan
                view[:, :, kept[1]:] = math.nan
            case.forward()


def leaves_the_rest_to_triton():
    """What it cannot take it refuses, forced, and says why; the library's own choice is then triton."""
    problems = {
        "fp32": dict(dtype=torch.float32),
        "no bias": dict(bias=True),
        "no dropout": dict(dropout_p=0.5),
        "sm_scale above 0": dict(sm_scale=0.0),
        "the call has -0.3": dict(sm_scale=-0.3),
        "addresses that are multiples of 16, k is at": dict(layouts={"k": "odd"}),
        "multiples of 8 below 2^39, v has ": dict(layouts={"v": "wide"}),
        "has no kernel for bf16, head_dim 264": dict(d=264),
    }
    for words, options in problems.items():
        d = options.pop("d", 64)
        case = Case((1, 2, 2, 65, 65, d, d), options.pop("dtype", torch.bfloat16), fwd_backend="hopper", is_causal=True, **options)
        text = refused(case.run_forward)
        assert "the backend hopper cannot take the call" in text and words in text, text
        assert case.out.view.isnan().all(), "something was written"
        case.fwd_backend = None
        case.forward()


def same_in_every_way():
    """Forced through each API that can, and by default: the same bits."""
    case = Case((2, 4, 2, 300, 333, 80, 80), torch.bfloat16, window=WINDOWS["sliding"], fwd_backend="hopper")
    bits = [tuple(one.bits() for one in case.run_forward())]
    for case.way, case.fwd_backend in (("c", "hopper"), ("v3", "hopper"), ("python", None), ("c", None), ("v3", None)):
        bits.append(tuple(one.bits() for one in case.run_forward()))
    for other in bits[1:]:
        assert torch.equal(other[0], bits[0][0]) and torch.equal(other[1], bits[0][1])


def fifty_runs():
    """Which program makes a tile is a matter of luck; its bits are not."""
    for d, is_causal in itertools.product((64, 128, 256), (False, True)):
        case = Case((2, 8, 4, 2048, 2048, d, d), torch.bfloat16, is_causal=is_causal, fwd_backend="hopper")
        first = [one.bits() for one in case.run_forward()]
        for _ in range(49):
            again = [one.bits() for one in case.run_forward()]
            assert all(torch.equal(a, b) for a, b in zip(first, again)), f"head_dim {d}: not the same bits"


def streams():
    """8 threads, each with streams of its own: many launches at once, none draws the tiles of another."""
    failures, start = [], threading.Barrier(8)

    def work(index):
        try:
            case = Case((2, 8, 2, 700, 700, (64, 128)[index % 2], (64, 128)[index % 2]), torch.bfloat16, is_causal=True, fwd_backend="hopper",
                        numbers=index)
            case.forward()
            due = [one.bits() for one in (case.out, case.lse)]
            tensors = [(Placed(case.shapes["out"], case.dtype), Placed(case.lse_shape(), torch.float32)) for _ in range(4)]
            torch.cuda.synchronize()
            start.wait()
            for _ in range(25):
                for out, lse in tensors:
                    with torch.cuda.stream(torch.cuda.Stream()):
                        calls.attn_fwd("python", case.q.view, case.k.view, case.v.view, out=out.view, logsumexp=lse.view, backend="hopper",
                                       **case.options)
            torch.cuda.synchronize()
            for out, lse in tensors:
                assert torch.equal(out.bits(), due[0]) and torch.equal(lse.bits(), due[1]), "not the bits of a call alone"
        except Exception as error:
            start.abort()
            failures.append(f"thread {index}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures, "; ".join(failures)


def graphs():
    """Two graphs of two branches each, replayed on two streams while calls go out on a third: all give what they should."""
    case = Case((2, 8, 2, 700, 700, 128, 128), torch.bfloat16, is_causal=True, fwd_backend="hopper")
    case.forward()
    due = [one.bits() for one in (case.out, case.lse)]

    def call(out, lse):
        calls.attn_fwd("python", case.q.view, case.k.view, case.v.view, out=out.view, logsumexp=lse.view, backend="hopper", **case.options)

    outputs = [(Placed(case.shapes["out"], case.dtype), Placed(case.lse_shape(), torch.float32)) for _ in range(9)]
    captured = []
    for number in range(2):
        graph, branch = torch.cuda.CUDAGraph(), torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            branch.wait_stream(torch.cuda.current_stream())
            for one in outputs[4 * number:4 * number + 2]:
                call(*one)
            with torch.cuda.stream(branch):
                for one in outputs[4 * number + 2:4 * number + 4]:
                    call(*one)
            torch.cuda.current_stream().wait_stream(branch)
        captured.append((graph, torch.cuda.Stream()))
    for out, lse in outputs:
        out.view.fill_(math.nan)
        lse.view.fill_(math.nan)
    torch.cuda.synchronize()
    for _ in range(20):
        for graph, stream in captured:
            with torch.cuda.stream(stream):
                graph.replay()
        call(*outputs[8])
    torch.cuda.synchronize()
    for out, lse in outputs:
        assert torch.equal(out.bits(), due[0]) and torch.equal(lse.bits(), due[1])


def capture_as_the_first_call():
    """After prepare() a call on a stream that never had one is captured: it neither loads nor allocates."""
    case = Case((1, 2, 2, 300, 300, 256, 256), torch.float16, fwd_backend="hopper")
    out, lse = Placed(case.shapes["out"], case.dtype), Placed(case.lse_shape(), torch.float32)
    tensors = {"out": out.view, "logsumexp": lse.view, "backend": "hopper"}
    aotriton.prepare(case.q.view, case.k.view, case.v.view, **tensors, **case.options)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        calls.attn_fwd("python", case.q.view, case.k.view, case.v.view, **tensors, **case.options)
    graph.replay()
    torch.cuda.synchronize()
    case.out, case.lse = out, lse
    case.check_forward()


def tests():
    functions = [masked_nan, leaves_the_rest_to_triton, same_in_every_way, fifty_runs, streams, graphs, capture_as_the_first_call]
    return [*[(f"hopper/{one.__name__}", _on_hopper(one)) for one in functions], *grid(), *every_seqlen(), *long_causal(), *varlen(), *special()]
