"""Variable lengths, all three kinds, forward and both backwards; empty sequences everywhere."""

import itertools
import math
import random

import torch

from tests.gpu import ledger, lengths
from tests.gpu.attention_case import Case
from tests.gpu.family_cases import BACKENDS, both_ways, test_of
from tests.gpu.forward_cases import DTYPES, WINDOWS, short

KINDS = ["compact", "padded", "strided"]
# Of queries and of keys.
LISTS = {
    "one": ([129], [300]),
    "equal": ([64, 64, 64], [128, 128, 128]),
    "ragged": ([1, 7, 63, 0, 65, 127, 143], [337, 1, 0, 5, 64, 63, 130]),
    "all_empty": ([0, 0, 0], [0, 0, 0]),
    "no_keys": ([5, 70, 1], [0, 0, 0]),
    "no_queries": ([0, 0], [5, 70]),
    "uneven": ([2, 611, 3], [500, 4, 1]),
}


def _case(shape, dtype, lens, kind, **options):
    return Case(shape, dtype, varlen=(lengths.make(kind, lens[0]), lengths.make(kind, lens[1]), kind), **options)


def grid():
    windows = itertools.cycle(("full", "causal", "causal_bottom_right", "sliding", "negative_left"))
    dims = itertools.cycle(((64, 64), (128, 128), (72, 40), (192, 128)))
    by_sequence = itertools.cycle((False, True, True, False, False))
    for (name, lens), kind, dtype in itertools.product(LISTS.items(), KINDS, DTYPES):
        window, (d, dv), whole = next(windows), next(dims), next(by_sequence)
        yield test_of(f"varlen/{name}-{kind}-{short(dtype)}-d{d}/{dv}-{window}-{'by_sequence' if whole else 'short'}_lse",
                      (len(lens[0]), 4, 2, 0, 0, d, dv), dtype, window=WINDOWS[window], lse_by_sequence=whole,
                      varlen=(lengths.make(kind, lens[0]), lengths.make(kind, lens[1]), kind))


def tenth_empty():
    """Random lists with a tenth of the sequences empty, on either side, with and without dropout."""
    for seed, kind in itertools.product(range(4), KINDS):
        rng = random.Random(seed)
        count = rng.randint(10, 30)
        lens = lengths.random_lengths(rng, count, 200), lengths.random_lengths(rng, count, 300)
        both_ways(_case((count, 4, 2, 0, 0, 64, 64), DTYPES[seed % 3], lens, kind, is_causal=seed % 2 == 0,
                        dropout_p=(0.0, 0.5)[seed // 2], numbers=seed))


def upstream_lists():
    """As upstream draws them: 1 to 21 sequences of 1 to 1024 rows, with and without dropout, GQA."""
    for count, kind in itertools.product((1, 6, 11, 16, 21), KINDS):
        rng = random.Random(count)
        lens = [[rng.randint(1, 1024) for _ in range(count)] for _ in range(2)]
        both_ways(_case((count, 5, 5, 0, 0, 64, 64) if count % 2 else (count, 10, 2, 0, 0, 64, 64), DTYPES[count % 3], lens,
                        kind, is_causal=kind != "padded", dropout_p=0.5 if count % 2 else 0.0, numbers=count))


def max_seqlens_unknown():
    """0 for max_seqlen: the tensor's size serves."""
    for kind in KINDS:
        case = _case((3, 4, 2, 0, 0, 64, 64), torch.bfloat16, LISTS["ragged"], kind)
        if kind == "padded":  # then logsumexp is as long as the tensor
            case.lse_shape = lambda: case.shapes["q"][:3]
        case.options.update(max_seqlen_q=0, max_seqlen_k=0)
        both_ways(case)


def last_sequence_masked():
    """A masked tile longer than its sequence keeps to it: nothing lies behind the last one but the end of logsumexp."""
    for kind, window, keys in itertools.product(("compact", "strided"), ("nothing", "causal_bottom_right"), (0, 5)):
        for dtype in DTYPES:
            both_ways(_case((3, 4, 2, 0, 0, 72, 72), dtype, ([64, 200, 37], [80, 80, keys]), kind, window=WINDOWS[window]))


def same_as_alone():
    """A sequence gives the same bits as it does in a call of its own."""
    lens = [100, 1, 64], [130, 300, 0]
    for kind in KINDS:
        case = _case((3, 4, 2, 0, 0, 64, 64), torch.float16, lens, kind, is_causal=True)
        out, lse = case.run_forward()
        views = [case.parts(name, getattr(case, name).view) for name in ("q", "k", "v")]
        for i in range(3):
            alone = Case((1, 4, 2, lens[0][i], lens[1][i], 64, 64), torch.float16, is_causal=True)
            for name, parts in zip("qkv", views):
                getattr(alone, name).view.copy_(parts[i])
            alone.run_forward()
            assert torch.equal(alone.out.view, case.parts("out", out.view)[i]), f"{kind}: out of sequence {i}"
            assert torch.equal(alone.lse.view, case.lse_parts(lse.view)[i]), f"{kind}: lse of sequence {i}"


def v02_layouts_of_lse():
    """aotriton#149: compact logsumexp, and Delta with it, are (Hq, total_q); (N, Hq, max) is accepted as well."""
    with ledger.equals_formula("V02", "LSE and Delta are (Hq, total_q)"):
        for by_sequence in (False, True):
            case = _case((7, 6, 3, 0, 0, 64, 64), torch.bfloat16, LISTS["ragged"], "compact", lse_by_sequence=by_sequence)
            both_ways(case)
            total = sum(LISTS["ragged"][0])
            assert case.lse_shape() == ((7, 6, 143) if by_sequence else (6, total))


def v03_empty_sequences():
    """flash-attention#1537, #2562: no queries: dK and dV are 0; no keys: Out 0, LSE +inf."""
    lists = [((0, 0, 1, 1, 2), (0, 0, 3, 3, 8), 9, 3, 64),
             ((0, 0, 1208, 2048, 2048), (0, 2538, 4280, 5120, 8192), 4, 1, 256)]
    for cu_q, cu_k, hq, hk, d in lists:
        lens = tuple([b - a for a, b in zip(cu, cu[1:])] for cu in (cu_q, cu_k))
        with ledger.equals_formula(f"V03 cu_q {list(cu_q)}", "exact zeros"):
            for dtype in (torch.bfloat16, torch.float16):
                case = _case((4, hq, hk, 0, 0, d, d), dtype, lens, "compact", is_causal=True)
                case.forward()
                for backend in BACKENDS:
                    grads = case.backward(backend)
                    for name in ("dk", "dv"):
                        for part, queries in zip(case.parts(name, grads[name].view), lens[0]):
                            assert queries or (part == 0).all(), f"{name} of a sequence without queries is not 0"
                for out, lse, keys in zip(case.parts("out", case.out.view), case.lse_parts(case.lse.view), lens[1]):
                    assert keys or ((out == 0).all() and (lse == math.inf).all())


def v03_without_a_window():
    both_ways(_case((4, 9, 3, 0, 0, 64, 64), torch.float32, ([0, 1, 0, 1], [0, 3, 0, 5]), "compact"))


def tests():
    functions = [tenth_empty, max_seqlens_unknown, last_sequence_masked, upstream_lists, same_as_alone, v02_layouts_of_lse,
                 v03_empty_sequences, v03_without_a_window]
    return [*grid(), *[(f"varlen/{one.__name__}", one) for one in functions]]
