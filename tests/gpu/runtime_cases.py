"""Graph capture, threads, streams, determinism; forward and backward.

These run first: then their variants are not loaded yet, and loading is part of what they try.
"""

import ctypes
import math
import pathlib
import shutil
import tempfile
import threading

import aotriton
import torch
from aotriton import attention, library

from tests.gpu import ledger
from tests.gpu.attention_case import Case
from tests.gpu.checks import compare
from tests.gpu.error_cases import images_folder
from tests.gpu.family_cases import both_ways
from tests.gpu.placing import DEVICE, random_qkv

CAUSAL = (aotriton.WINDOW_TOP_LEFT,) * 2


def _tensors(*args, **options):
    return [one.view for one in random_qkv(*args, **options)]


def graph_capture_after_prepare():
    """A call after prepare() neither loads nor allocates: it can be captured as the first one."""
    q, k, v = _tensors(2, 4, 2, 337, 337, 96, 96, torch.bfloat16)
    out = torch.full_like(q, float("nan"))
    lse = torch.full(q.shape[:3], float("nan"), device=DEVICE)
    aotriton.prepare(q, k, v, is_causal=True, out=out, logsumexp=lse)
    assert out.isnan().all(), "prepare wrote out"
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        aotriton.attn_fwd(q, k, v, is_causal=True, out=out, logsumexp=lse)
    for seed in (1, 2):  # the second replay has new numbers in the same tensors
        for old, new in zip((q, k, v), _tensors(2, 4, 2, 337, 337, 96, 96, torch.bfloat16, seed=seed)):
            old.copy_(new)
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        compare(q, k, v, out, lse, window=CAUSAL)
        eager, eager_lse = aotriton.attn_fwd(q, k, v, is_causal=True)
        assert torch.equal(out, eager) and torch.equal(lse, eager_lse), "replay differs from eager"


def backward_graph_capture_after_prepare():
    """So can a backward, forward and both backends in one graph."""
    case = Case((2, 4, 2, 337, 337, 112, 112), torch.bfloat16, is_causal=True)
    case.run_forward()
    delta = torch.empty_like(case.lse.view)
    inputs = [getattr(case, name).view for name in ("do", "q", "k", "v", "out", "lse")]
    grads = {backend: {name: torch.full_like(getattr(case, name[1:]).view, float("nan")) for name in ("dq", "dk", "dv")}
             for backend in ("split", "fused")}
    for backend, to in grads.items():
        aotriton.attn_bwd_prepare(*inputs, backend=backend, delta=delta, **to, **case.options)
        assert all(one.isnan().all() for one in to.values()), "prepare wrote a gradient"
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        aotriton.attn_fwd(*inputs[1:4], out=case.out.view, logsumexp=case.lse.view, **case.options)
        for backend, to in grads.items():
            aotriton.attn_bwd(*inputs, backend=backend, delta=delta, **to, **case.options)
    graph.replay()
    torch.cuda.synchronize()
    case.check_forward()
    for backend, to in grads.items():
        for name, one in case.backward(backend).items():
            assert torch.equal(one.view, to[name]), f"{backend}: {name} of the replay differs from eager"


def backward_threads():
    """8 threads, each on its own stream, half of them on either backend."""
    start, failures = threading.Barrier(8), []

    def work(index):
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                case = Case((1, 4, 2, 143, 337, 40, 40), torch.float16, is_causal=True, numbers=index)
                case.run_forward()
                start.wait()
                for _ in range(20):
                    grads = case.run_backward(("split", "fused")[index % 2])
                stream.synchronize()
                case.check_backward(grads, ("split", "fused")[index % 2])
        except Exception as error:
            start.abort()
            failures.append(f"thread {index}: {type(error).__name__}: {error}")

    _run_threads(work, 8)
    assert not failures, "; ".join(failures)


def threads():
    """8 threads, each on its own stream, all at once; pairs of them load the same variant."""
    start, failures = threading.Barrier(8), []

    def work(index):
        try:
            d = (32, 48, 80, 112)[index % 4]
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                q, k, v = _tensors(1, 4, 2, 143, 337, d, d, torch.float16, seed=index)
                start.wait()
                for _ in range(20):
                    out, lse = aotriton.attn_fwd(q, k, v)
                stream.synchronize()
                compare(q, k, v, out, lse)
        except Exception as error:
            start.abort()
            failures.append(f"thread {index}: {type(error).__name__}: {error}")

    _run_threads(work, 8)
    assert not failures, "; ".join(failures)


def last_error_is_the_threads_own():
    """A refusal in one thread neither shows in nor disturbs another."""
    q, k, v = _tensors(1, 2, 2, 65, 65, 64, 64, torch.float16)
    bad = _tensors(1, 3, 3, 65, 65, 64, 64, torch.float16)[1]
    failures = []

    def work(index):
        for _ in range(50):
            reason = aotriton.supported(q, bad if index % 2 else k, v)
            if (reason is None) != (index % 2 == 0) or (reason is not None and "3" not in reason):
                failures.append(reason)

    _run_threads(work, 8)
    assert not failures, failures[:3]


def _run_threads(work, count):
    running = [threading.Thread(target=work, args=(index,)) for index in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def streams():
    """Calls on several streams do not disturb each other, and `stream=` is obeyed."""
    cases = [_tensors(2, 4, 4, 1063, 1063, 64, 64, torch.bfloat16, seed=seed) for seed in range(6)]
    expected = [aotriton.attn_fwd(*case, is_causal=True) for case in cases]
    torch.cuda.synchronize()
    queues = [torch.cuda.Stream() for _ in range(3)]
    outputs = [(torch.empty_like(out), torch.empty_like(lse)) for out, lse in expected]
    torch.cuda.synchronize()
    for _ in range(5):
        for index, (case, (out, lse)) in enumerate(zip(cases, outputs)):
            queue = queues[index % 3]
            aotriton.attn_fwd(*case, is_causal=True, out=out, logsumexp=lse,
                              stream=queue if index % 2 else queue.cuda_stream)
    torch.cuda.synchronize()
    for (out, lse), (want, want_lse) in zip(outputs, expected):
        assert torch.equal(out, want) and torch.equal(lse, want_lse)


def stream_order():
    """The default stream is torch's current one: a call waits for the work before it there."""
    q, k, v = _tensors(1, 4, 4, 512, 512, 64, 64, torch.float16)
    late = torch.empty_like(q)
    with torch.cuda.stream(torch.cuda.Stream()):
        late.fill_(float("nan"))
        torch.cuda._sleep(50_000_000)  # some 25 ms
        late.copy_(q)
        out, lse = aotriton.attn_fwd(late, k, v)
        torch.cuda.current_stream().synchronize()
    compare(q, k, v, out, lse)


def deterministic():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        for d in (64, 72, 128):
            q, k, v = _tensors(2, 8, 2, 1063, 1063, d, d, dtype)
            first = aotriton.attn_fwd(q, k, v, is_causal=True)
            for _ in range(5):
                again = aotriton.attn_fwd(q, k, v, is_causal=True)
                assert all(torch.equal(a, b) for a, b in zip(first, again)), f"{dtype} head_dim {d} differs between runs"


def two_devices():
    """D02: the same call on two GPUs, and on one that is not the current one."""
    if torch.cuda.device_count() < 2:
        ledger.value("D02", "not run: one GPU", "right on both")
        return
    cases = []
    for index in range(2):
        with torch.cuda.device(index):
            cases.append(Case((2, 4, 2, 143, 337, 64, 64), torch.bfloat16, is_causal=True))
            both_ways(cases[-1])
    q, k, v = (getattr(cases[1], name).view for name in "qkv")
    out, lse = aotriton.attn_fwd(q, k, v, is_causal=True)  # current: device 0
    torch.cuda.synchronize(1)
    assert torch.equal(out, cases[1].out.view) and torch.equal(lse, cases[1].lse.view)
    ledger.value("D02", "right on both", "right on both")


def d13_two_copies():
    """TransformerEngine#110: a second library in the process; in turn, each does its own calls right."""
    with tempfile.TemporaryDirectory() as folder:
        second = pathlib.Path(folder, library.LIBRARY_NAME)
        shutil.copyfile(library.find_library(), second)
        pathlib.Path(folder, "aotriton.images").symlink_to(images_folder().resolve())
        first, second = library.load(), ctypes.CDLL(str(second))
        for name in ("aotriton_attn_fwd", "aotriton_attn_bwd"):
            function = getattr(second, name)
            function.restype, function.argtypes = getattr(first, name).restype, getattr(first, name).argtypes
            addresses = {ctypes.cast(getattr(one, name), ctypes.c_void_p).value for one in (first, second)}
            assert len(addresses) == 2, "the second library is the first one"
        case = Case((2, 4, 2, 143, 337, 64, 64), torch.bfloat16, is_causal=True)
        case.forward()
        due = case.backward("split")
        q, k, v, do = (getattr(case, name).view for name in ("q", "k", "v", "do"))
        for one in (second, first, second):
            like = [getattr(case, name).view for name in ("out", "lse", "q", "k", "v")]
            out, lse, *grads = (torch.full_like(one, math.nan) for one in like)
            attention._Forward(q, k, v, out, lse, None, None, None, None, **case.options).run(one.aotriton_attn_fwd)
            attention._Backward(do, q, k, v, out, lse, "split", *grads, False, None, None, **case.options).run(
                one.aotriton_attn_bwd)
            assert torch.equal(out, case.out.view) and torch.equal(lse, case.lse.view)
            assert all(torch.equal(got, due[name].view) for got, name in zip(grads, ("dq", "dk", "dv")))
    ledger.value("D13 two copies of the library", "the same bits, in turn", "no clash")


def arch_and_version():
    assert len(aotriton.version().split(".")) == 3, aotriton.version()
    arch = aotriton.gpu_arch()
    assert arch == aotriton.gpu_arch(torch.cuda.current_stream())
    if torch.version.cuda:
        told = due = "sm_%d%d" % torch.cuda.get_device_capability()
    else:  # D10: "gfx90a:sramecc+:xnack-"
        told = torch.cuda.get_device_properties(0).gcnArchName
        due = told.partition(":")[0]
    ledger.value(f"D10 a device that reports {told}", arch, due)
    assert arch == due


def tests():
    functions = [graph_capture_after_prepare, backward_graph_capture_after_prepare, threads, backward_threads,
                 last_error_is_the_threads_own, streams, stream_order, deterministic, two_devices,
                 d13_two_copies, arch_and_version]
    return [(f"runtime/{one.__name__}", one) for one in functions]
