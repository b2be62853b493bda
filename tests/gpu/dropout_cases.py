"""Dropout: the mask is Philox's, the same everywhere, and the caller's offsets are honoured."""

import itertools
import math

import aotriton
import numpy
import torch

from tests.gpu import calls, dropout, ledger
from tests.gpu.attention_case import OFFSET1, OFFSET2, SEED, Case
from tests.gpu.family_cases import BACKENDS, test_of
from tests.gpu.forward_cases import DTYPES, short
from tests.gpu.placing import DEVICE, Placed
from tests.kernels import philox

# (seed, offset1, offset2): upstream's, past 32 bits, and a sum past 64.
SEEDS = [(SEED, OFFSET1, OFFSET2), (2**63 + 12345, 2**32 - 3, 7), (1, 2**64 - 100, 99), (2**64 - 1, 0, 0)]


def masks_agree():
    """numpy's mask, torch's, that of the C library on the host, and the GPU's."""
    for (seed, offset1, offset2), p in itertools.product(SEEDS, (0.1, 0.5, 0.9)):
        for b, h, sq, sk in ((2, 3, 5, 7), (1, 2, 65, 130), (1, 1, 1, 1)):
            want = philox.keep_mask(p, seed, offset1 + offset2, b, h, sq, sk)
            fast = dropout.keep(seed, offset1 + offset2, p, range(b), h, sq, sk)
            assert (fast.cpu().numpy() == want).all(), "torch's Philox differs from numpy's"
            host = numpy.frombuffer(aotriton.dropout_mask(seed, offset1 + offset2, p, b, h, sq, sk), numpy.uint8)
            assert (host.reshape(want.shape) == want).all(), "the C library's host mask differs from numpy's"
            r = Placed((b, h, sq, sk), torch.float32)
            outside = r.bits_outside()
            aotriton.debug_simulate_encoded_softmax(
                r.view, dropout_p=p, philox_seed=seed, philox_offset1=offset1, philox_offset2=offset2)
            assert torch.equal(r.bits_outside(), outside), "something was written outside encoded_softmax"
            assert (r.view.abs() == 0.5).all() and torch.equal(r.view > 0, fast), "the GPU's mask differs"


def encoded_softmax_layouts():
    """Any dtype, any strides, ragged sizes; and attn_fwd writes it when it is asked to."""
    for dtype, layout in itertools.product(DTYPES, ("bhsd", "bshd", "wide", "odd", "transposed")):
        r = Placed((2, 3, 143, 337), dtype, layout)
        outside = r.bits_outside()
        aotriton.debug_simulate_encoded_softmax(r.view, dropout_p=0.5, philox_seed=SEED, philox_offset1=OFFSET1)
        assert torch.equal(r.bits_outside(), outside), f"something was written outside: {layout}"
        keep = dropout.keep(SEED, OFFSET1, 0.5, range(2), 3, 143, 337)
        assert torch.equal(r.view.float(), torch.where(keep, 0.5, -0.5)), f"{short(dtype)} {layout}"
    case = Case((2, 3, 3, 143, 337, 64, 64), torch.float16, dropout_p=0.1)
    r = Placed((2, 3, 143, 337), torch.float16)
    case.run_forward(encoded_softmax=r.view)
    case.check_forward()
    assert torch.equal(r.view > 0, case.keep(0))


def _one_hot(case, p):
    """q = 0 makes P = 1 / seqlen_k; then v = 1 shows the forward's mask in out, do = 1 the backward's in dv."""
    case.q.view.zero_()
    eye = torch.eye(64, device=DEVICE, dtype=case.dtype)
    case.v.view.copy_(eye.expand(case.v.view.shape))
    case.do.view.copy_(eye.expand(case.do.view.shape))
    keep = case.keep(0)
    case.run_forward()
    assert torch.equal(case.out.view != 0, keep), "the forward's mask differs"
    scaled = keep / (64 * (1 - p))
    assert ((case.out.view - scaled).abs() <= 2e-2 * scaled).all(), "what is kept is not scaled by 1 / (1 - p)"
    for backend in BACKENDS:
        dv = case.run_backward(backend)["dv"].view
        assert torch.equal(dv.transpose(2, 3) != 0, keep), f"{backend}: the backward's mask differs"


def mask_seen_directly():
    """The masks of attn_fwd and of both backwards, element by element."""
    for dtype, p, (seed, offset1, offset2) in itertools.product(DTYPES, (0.1, 0.5), SEEDS):
        _one_hot(Case((2, 3, 3, 64, 64, 64, 64), dtype, dropout_p=p, seed=seed, offset1=offset1, offset2=offset2), p)


def as_often_as_asked():
    """The share of what is dropped is p within five standard deviations."""
    for p in (0.1, 0.5):
        keep = dropout.keep(SEED, OFFSET1, p, range(4), 16, 256, 256)
        assert abs(keep.double().mean().item() - (1 - p)) < 5 * (p * (1 - p) / keep.numel()) ** 0.5


def outputs_of_the_generator():
    """Seed and offset1 + offset2 are written; from ints, from tensors, past 64 bits; not without dropout."""
    for seed, offset1, offset2 in SEEDS:
        for as_tensors in (False, True):
            given = [torch.tensor([aotriton.tensors.as_int64(one)], device=DEVICE) if as_tensors else one
                     for one in (seed, offset1)]
            case = Case((1, 2, 2, 65, 127, 64, 64), torch.bfloat16, dropout_p=0.5, seed=seed, offset1=offset1, offset2=offset2)
            case.options.update(philox_seed=given[0], philox_offset1=given[1])
            written = [torch.full((3,), -7, dtype=torch.int64, device=DEVICE) for _ in range(2)]
            case.run_forward(philox_seed_output=written[0][1:2], philox_offset_output=written[1][1:2])
            case.check_forward()
            for got, due in zip(written, (seed, offset1 + offset2)):
                assert got.tolist() == [-7, aotriton.tensors.as_int64(due), -7], (got, due)


def offsets_add_up():
    """Only the sum of the offsets counts: the forward may have one split of it, the backward another."""
    case = Case((1, 4, 2, 143, 337, 64, 64), torch.float16, dropout_p=0.5)
    case.forward()
    case.options.update(philox_offset1=OFFSET1 + OFFSET2 - 5, philox_offset2=5)
    case.backward("split")
    case.options.update(philox_offset1=0, philox_offset2=OFFSET1 + OFFSET2)
    case.backward("fused")


def everything_dropped():
    """p = 1: Out and all gradients are 0, the logsumexp is what it is."""
    case = Case((1, 2, 2, 65, 127, 64, 64), torch.bfloat16, dropout_p=1.0)
    out, lse = case.run_forward()
    assert (out.view == 0).all() and lse.view.isfinite().all()
    for backend in BACKENDS:
        for name, grad in case.run_backward(backend).items():
            assert (grad.view == 0).all(), f"{backend}: {name} is not 0"


def r01_graph_capture():
    """aotriton#40: a graph of forward and both backwards, replayed with the generator moved on, is as eager calls are."""
    for way in ("python", "v3", "v3_lazy"):
        with ledger.equals_formula(f"R01 through {way}", "replays differ, each is its eager calls bit for bit"):
            _replays(way)


def _replays(way):
    """As a framework captures it: seed and offset lie in device memory, the backward reads what the forward wrote there.

    The graph itself moves the offset on; between replays the caller changes the seed.
    """
    shape, dtype, step = (2, 4, 2, 143, 143, 64, 64), torch.bfloat16, 4096 * 143
    seed, offset, written = (torch.zeros(count, dtype=torch.int64, device=DEVICE) for count in (1, 1, 2))
    case = Case(shape, dtype, is_causal=True, dropout_p=0.5, way=way)
    given = {name: getattr(case, name) for name in ("q", "k", "v", "do")}
    forward = {**case.options, "philox_seed": seed, "philox_offset1": offset,
               "philox_seed_output": written[:1], "philox_offset_output": written[1:]}
    backward = {**case.options, "philox_seed": written[:1], "philox_offset1": written[1:], "philox_offset2": 0}
    case.run_forward()
    grads = {backend: case.run_backward(backend) for backend in BACKENDS}  # loads what the graph needs
    delta = torch.empty_like(case.lse.view)
    outputs = {"out": case.out, "lse": case.lse,
               **{f"{name} of {backend}": one for backend, to in grads.items() for name, one in to.items()}}

    def call():
        calls.attn_fwd(way, case.q.view, case.k.view, case.v.view, out=case.out.view, logsumexp=case.lse.view, **forward)
        for backend, to in grads.items():
            calls.attn_bwd(way, case.do.view, case.q.view, case.k.view, case.v.view, case.out.view, case.lse.view,
                           backend=backend, delta=delta, **{name: one.view for name, one in to.items()}, **backward)
        offset.add_(step)

    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    outs = []
    for number, first in ((SEED, OFFSET1), (SEED, OFFSET1 + step), (2**62 + 12345, OFFSET1 + 2 * step), (SEED, 2**40 - 3)):
        seed.fill_(number)
        if len(outs) in (0, 3):
            offset.fill_(first)
        for one in outputs.values():
            one.view.fill_(math.nan)
        written.fill_(-7)
        graph.replay()
        torch.cuda.synchronize()
        assert offset.item() == first + step and written.tolist() == [number, first + OFFSET2], (offset, written)
        # The same with numbers from the host, checked by float64 and the mask of these numbers.
        eager = Case(shape, dtype, is_causal=True, dropout_p=0.5, seed=number, offset1=first, given=given)
        eager.forward()
        due = {"out": eager.out, "lse": eager.lse,
               **{f"{name} of {backend}": one for backend in BACKENDS for name, one in eager.backward(backend).items()}}
        for name, one in due.items():
            assert torch.equal(one.bits(), outputs[name].bits()), f"replay {len(outs)}: {name} differs from the eager call's"
        outs.append(case.out.view.clone())
    for one, other in itertools.combinations(outs, 2):
        assert not torch.equal(one, other), "two replays dropped the same elements"


def grid():
    for (dtype, d), p in itertools.product(itertools.product(DTYPES, (64, 72, 256)), (0.1, 0.5)):
        yield test_of(f"dropout/{short(dtype)}-d{d}-p{p}", (2, 4, 2, 143, 587, d, d), dtype, dropout_p=p, is_causal=d == 64)


def tests():
    functions = [masks_agree, encoded_softmax_layouts, mask_seen_directly, as_often_as_asked, outputs_of_the_generator,
                 offsets_add_up, everything_dropped, r01_graph_capture]
    return [*[(f"dropout/{one.__name__}", one) for one in functions], *grid()]
