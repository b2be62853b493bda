"""TFLOP/s of forward and backward beside PyTorch's flash, cuDNN and efficient attention, and the host time of a call.

bf16, batch * seqlen = 16384, heads * head_dim = 2048. The contestants take turns within a round, so
that clock and power drift hits all alike; a contestant's time is the median of its rounds' medians.
Ours writes given outputs, logsumexp too; PyTorch's allocate theirs from its cache. Before a contestant is
timed its result is compared with ours. A backward counts 2.5 times the forward's operations; PyTorch's
are autograd's.
"""

import contextlib
import ctypes
import statistics
import time

import aotriton
import torch
from aotriton import attention, library
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from tests.gpu.placing import DEVICE, generator
from tests.kernels.reference import keep_mask

TOKENS, WIDTH = 16384, 2048
ROUND_MS = 25


def _backend(name):
    """The context in which a contestant runs; entered outside what is timed."""
    backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
                "efficient": SDPBackend.EFFICIENT_ATTENTION}
    return sdpa_kernel(backends[name]) if name in backends else contextlib.nullcontext()


def _median_ms(function):
    """Median time of a call, by events around each, over about ROUND_MS after a warm-up of a third."""
    # Written before each call, so that no call finds its inputs in the cache (60 MB on an H200).
    cache = torch.empty(128 * 2**20, dtype=torch.int8, device=DEVICE)

    def timed(count):
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
        for begin, end in pairs:
            cache.zero_()
            begin.record()
            function()
            end.record()
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) for begin, end in pairs]

    estimate = statistics.median(timed(3))
    timed(max(1, int(ROUND_MS / 3 / estimate)))
    return statistics.median(timed(max(3, int(ROUND_MS / estimate))))


def _forwards(q, k, v, is_causal):
    """{name: function that gives out}; "triton" is that backend where the library may choose another."""
    out, lse = aotriton.attn_fwd(q, k, v, is_causal=is_causal)

    def ours(**options):
        return lambda: aotriton.attn_fwd(q, k, v, is_causal=is_causal, out=out, logsumexp=lse, **options)[0]

    contestants = {"aotriton": ours(), "triton": ours(backend="triton")}
    if is_causal:
        counter = torch.zeros(1, dtype=torch.int32, device=DEVICE)
        contestants["persistent"] = ours(backend="triton", persistent_counter=counter)
    for name in ("flash", "cudnn", "efficient"):
        contestants[name] = lambda: scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=q.shape[1] != k.shape[1])
    return _agreeing(contestants)


# name -> (batch, heads of q, of k, seqlen_q, seqlen_k, head_dim_qk, head_dim_vo), what else the call has
CALLS = {
    "gqa 8:1": ((4, 16, 2, 4096, 4096, 128, 128), {}),
    "gqa 8:1, causal": ((4, 16, 2, 4096, 4096, 128, 128), {"is_causal": True}),
    "bottom-right causal": ((4, 16, 16, 4096, 5000, 128, 128), {"window": (aotriton.WINDOW_BOTTOM_RIGHT,) * 2}),
    "window 1024": ((4, 16, 16, 4096, 4096, 128, 128), {"window": (1023, 0)}),
    "window 1024, head_dim 64": ((4, 32, 32, 4096, 4096, 64, 64), {"window": (1023, 0)}),
    "head_dim 80": ((4, 16, 16, 4096, 4096, 80, 80), {}),
    "head_dim 96, causal": ((4, 16, 16, 4096, 4096, 96, 96), {"is_causal": True}),
    "head_dim 192/128, causal": ((4, 16, 16, 4096, 4096, 192, 128), {"is_causal": True}),
    "short": ((128, 16, 16, 128, 128, 64, 64), {}),
    "seqlen 512, causal": ((32, 16, 16, 512, 512, 128, 128), {"is_causal": True}),
    **{f"window {n}, head_dim {d}": ((4, 2048 // d, 2048 // d, 4096, 4096, d, d), {"window": (n - 1, 0)}) for n in (256, 512, 2048) for d in (64, 128)},
    **{f"{n} queries": ((16, 32, 8, n, 4096, 128, 128), {}) for n in (16, 64, 128)},
    "decode": ((64, 32, 8, 1, 4096, 128, 128), {}),
    "one decode": ((1, 32, 8, 1, 8192, 128, 128), {}),
    "varlen": ((1, 16, 16, 16384, 16384, 128, 128), {"lengths": [4096, 100, 3000, 2048, 1, 2500, 1100, 3539]}),
    "varlen, causal": ((1, 16, 16, 16384, 16384, 128, 128), {"is_causal": True, "lengths": [4096, 100, 3000, 2048, 1, 2500, 1100, 3539]}),
}


def _call(shape, options):
    """({name: function that gives out}, kept scores) of a row of CALLS."""
    b, hq, hk, sq, sk, d, dv = shape
    options = dict(options)
    lengths = options.pop("lengths", None)
    is_plain = lengths is None and "window" not in options
    random = generator(0)
    q, k, v = (torch.randn(size, dtype=torch.bfloat16, device=DEVICE, generator=random)
               for size in ((b, hq, sq, d), (b, hk, sk, d), (b, hk, sk, dv)))
    window = (aotriton.WINDOW_TOP_LEFT,) * 2 if options.get("is_causal") else options.get("window")
    pairs = [(n, n) for n in lengths] if lengths else [(sq, sk)] * b
    kept = hq * sum(int(keep_mask(*pair, window, DEVICE).sum()) for pair in pairs)
    if lengths:
        sums = torch.tensor([0, *lengths], device=DEVICE).cumsum(0).int()
        options.update(varlen="compact", cu_seqlens_q=sums, cu_seqlens_k=sums, max_seqlen_q=max(lengths), max_seqlen_k=max(lengths))
    out, lse = aotriton.attn_fwd(q, k, v, **options)

    def ours(**more):
        return lambda: aotriton.attn_fwd(q, k, v, out=out, logsumexp=lse, **options, **more)[0]

    contestants = {"aotriton": ours(), "triton": ours(backend="triton")}
    if is_plain:
        is_causal = options.get("is_causal", False)
        for name in ("flash", "cudnn", "efficient"):
            contestants[name] = lambda: scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=hq != hk)
    return _agreeing(contestants), kept


def _calls(names, rounds):
    """Prints a table of CALLS, by kept scores, and returns its rows."""
    print(f"\nforward of other calls, bf16; TFLOP/s of kept scores, median of {rounds} rounds (± half the range of the rounds), microseconds of ours")
    print(f"{'call':>26} {'us':>8} " + " ".join(f"{name:>14}" for name in names))
    rows = []
    for call, (shape, options) in CALLS.items():
        contestants, kept = _call(shape, options)
        flops = 2 * kept * (shape[5] + shape[6])
        times = _times(contestants, rounds)
        row = {"call": call, "us": statistics.median(times["aotriton"]) * 1e3, **_summary(times, flops)}
        rows.append(row)
        print(f"{call:>26} {row['us']:8.1f} " + " ".join(f"{cell:>14}" for cell in _cells(row, names)), flush=True)
    return rows


def _backwards(q, k, v, is_causal):
    """{name: function that gives (dq, dk, dv)}."""
    out, lse = aotriton.attn_fwd(q, k, v, is_causal=is_causal)
    do = torch.randn(out.shape, dtype=out.dtype, device=DEVICE, generator=generator(1))
    grads = {name: torch.empty_like(one) for name, one in (("dq", q), ("dk", k), ("dv", v))}
    delta = torch.empty_like(lse)
    leaves = [one.detach().requires_grad_() for one in (q, k, v)]

    def ours(backend):
        return lambda: aotriton.attn_bwd(do, q, k, v, out, lse, backend=backend, is_causal=is_causal, delta=delta, **grads)

    def autograd(name):
        with _backend(name):
            theirs = scaled_dot_product_attention(*leaves, is_causal=is_causal)
        return lambda: torch.autograd.grad(theirs, leaves, do, retain_graph=True)

    contestants = {"split": ours("split"), "fused": ours("fused")}
    for name in ("flash", "cudnn"):
        try:
            contestants[name] = autograd(name)
        except RuntimeError as error:
            print(f"no {name}: {str(error).splitlines()[0][:100]}")
    return _agreeing(contestants)


def _agreeing(contestants):
    """Those that can run; all of them give what the first of them gives."""

    def result(name):
        with _backend(name):
            results = contestants[name]()
        results = (results,) if isinstance(results, torch.Tensor) else results
        return torch.cat([one.float().flatten() for one in results])

    want, found = None, {}
    for name, function in contestants.items():
        try:
            other = result(name)
        except RuntimeError as error:
            print(f"no {name}: {str(error).splitlines()[0][:100]}")
            continue
        want = other if want is None else want
        difference = ((want - other).norm() / other.norm()).item()
        assert difference < 1e-2, f"{next(iter(found))} and {name} differ by {difference:.1e}: not worth timing"
        found[name] = function
    return found


def measure(contestants_of, factor, head_dim, seqlen, is_causal, rounds):
    """{"head_dim", "seqlen", "is_causal", "tflops": {name: median}, "spread": {name: max / min - 1}}.

    factor: operations beside those of a forward.
    """
    shape = (TOKENS // seqlen, WIDTH // head_dim, seqlen, head_dim)
    numbers = generator(0)
    q, k, v = (torch.randn(shape, dtype=torch.bfloat16, device=DEVICE, generator=numbers) for _ in range(3))
    flops = factor * 4 * shape[0] * shape[1] * seqlen * seqlen * head_dim / (2 if is_causal else 1)
    times = _times(contestants_of(q, k, v, is_causal), rounds)
    return {"head_dim": head_dim, "seqlen": seqlen, "is_causal": is_causal, **_summary(times, flops)}


def _times(contestants, rounds):
    """{name: [median of each round, in ms]}."""
    times = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, function in contestants.items():
            with _backend(name):
                times[name].append(_median_ms(function))
    return times


def _summary(times, flops):
    return {"tflops": {name: flops / statistics.median(ms) / 1e9 for name, ms in times.items()},
            "spread": {name: max(ms) / min(ms) - 1 for name, ms in times.items()}}


def _host_us(function, count=1000):
    """Host time of one of `count` calls that the GPU keeps up with, in microseconds."""
    for _ in range(50):
        function()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        function()
    seconds = time.perf_counter() - begin
    torch.cuda.synchronize()
    return seconds / count * 1e6


def host_overhead():
    """{name: microseconds}: one call of a tiny problem through Python, through C alone, and torch's."""
    q = torch.randn(1, 1, 128, 64, dtype=torch.bfloat16, device=DEVICE)
    out, lse = aotriton.attn_fwd(q, q, q)
    call = attention._Forward(q, q, q, out, lse, None, None, None, None)
    function, args, stream = library.load().aotriton_attn_fwd, ctypes.byref(call.args), call.stream
    triton = attention._Forward(q, q, q, out, lse, None, None, None, None, "triton")
    triton_args = ctypes.byref(triton.args)
    with _backend("flash"):
        flash = _host_us(lambda: scaled_dot_product_attention(q, q, q))
    return {
        "aotriton, C call": _host_us(lambda: function(args, stream)),
        "the same by triton": _host_us(lambda: function(triton_args, stream)),
        "aotriton, Python": _host_us(lambda: aotriton.attn_fwd(q, q, q, out=out, logsumexp=lse)),
        "torch flash": flash,
    }


def _table(title, contestants_of, factor, names, head_dims, seqlens, rounds):
    """Prints a table of measure()'s rows and returns them."""
    print(f"\n{title}, bf16, batch * seqlen {TOKENS}, heads * head_dim {WIDTH}; TFLOP/s, median of {rounds} rounds "
          "(± half the range of the rounds)")
    print(f"{'head_dim':>8} {'seqlen':>6} {'causal':>6} " + " ".join(f"{name:>14}" for name in names)
          + f" {names[0] + '/flash':>14} {names[0] + '/cudnn':>14}")
    rows = []
    for head_dim in head_dims:
        for seqlen in seqlens:
            for is_causal in (False, True):
                row = measure(contestants_of, factor, head_dim, seqlen, is_causal, rounds)
                rows.append(row)
                print(_line(row, names), flush=True)
    return rows


def _cells(row, names):
    tflops, spread = row["tflops"], row["spread"]
    return [f"{tflops[name]:6.1f} (±{spread[name] * 50:3.1f}%)" if name in tflops else "-" for name in names]


def _line(row, names):
    tflops = row["tflops"]
    ratios = [f"{tflops[names[0]] / tflops[name]:.2f}" if {name, names[0]} <= tflops.keys() else "-" for name in ("flash", "cudnn")]
    return (f"{row['head_dim']:8} {row['seqlen']:6} {'yes' if row['is_causal'] else 'no':>6} "
            + " ".join(f"{cell:>14}" for cell in [*_cells(row, names), *ratios]))


def run(quick):
    """Prints the tables; returns {"forward", "backward": rows of measure(), "calls": of CALLS, "host_us": host_overhead()}."""
    rounds = 1 if quick else 4
    report = {
        "forward": _table("forward", _forwards, 1, ["aotriton", "triton", "persistent", "flash", "cudnn", "efficient"], (64, 128, 256),
                          (1024, 4096, 16384), rounds),
        "calls": _calls(["aotriton", "triton", "flash", "cudnn", "efficient"], rounds),
        "backward": _table("backward", _backwards, 2.5, ["split", "fused", "flash", "cudnn"], (64, 128), (4096, 16384), rounds),
        "host_us": host_overhead(),
    }
    print("host time of one call, us: " + ", ".join(f"{name} {us:.1f}" for name, us in report["host_us"].items()))
    return report
