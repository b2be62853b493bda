"""TFLOP/s of forward and backward beside PyTorch's flash and cuDNN attention, and the host time of a call.

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

TOKENS, WIDTH = 16384, 2048
ROUND_MS = 25


def _backend(name):
    """The context in which a contestant runs; entered outside what is timed."""
    backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
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
    """{name: function that gives out}."""
    out, lse = aotriton.attn_fwd(q, k, v, is_causal=is_causal)
    contestants = {
        "aotriton": lambda: aotriton.attn_fwd(q, k, v, is_causal=is_causal, out=out, logsumexp=lse)[0],
        "flash": lambda: scaled_dot_product_attention(q, k, v, is_causal=is_causal),
        "cudnn": lambda: scaled_dot_product_attention(q, k, v, is_causal=is_causal),
    }
    if is_causal:
        counter = torch.zeros(1, dtype=torch.int32, device=DEVICE)
        contestants["persistent"] = lambda: aotriton.attn_fwd(
            q, k, v, is_causal=True, out=out, logsumexp=lse, persistent_counter=counter)[0]
    return _agreeing(contestants, "aotriton")


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
    return _agreeing(contestants, "split")


def _agreeing(contestants, first):
    """Those that can run; all of them give what `first` gives."""

    def result(name):
        with _backend(name):
            results = contestants[name]()
        results = (results,) if isinstance(results, torch.Tensor) else results
        return torch.cat([one.float().flatten() for one in results])

    want, found = result(first), {}
    for name, function in contestants.items():
        try:
            other = result(name)
        except RuntimeError as error:
            print(f"no {name}: {str(error).splitlines()[0][:100]}")
            continue
        difference = ((want - other).norm() / other.norm()).item()
        assert difference < 1e-2, f"{first} and {name} differ by {difference:.1e}: not worth timing"
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
    contestants = contestants_of(q, k, v, is_causal)
    times = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, function in contestants.items():
            with _backend(name):
                times[name].append(_median_ms(function))
    return {
        "head_dim": head_dim, "seqlen": seqlen, "is_causal": is_causal,
        "tflops": {name: flops / statistics.median(ms) / 1e9 for name, ms in times.items()},
        "spread": {name: max(ms) / min(ms) - 1 for name, ms in times.items()},
    }


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
    q = torch.randn(1, 1, 16, 64, dtype=torch.bfloat16, device=DEVICE)
    out, lse = aotriton.attn_fwd(q, q, q)
    call = attention._Forward(q, q, q, out, lse, None, None, None, None)
    function, args, stream = library.load().aotriton_attn_fwd, ctypes.byref(call.args), call.stream
    with _backend("flash"):
        flash = _host_us(lambda: scaled_dot_product_attention(q, q, q))
    return {
        "aotriton, C call": _host_us(lambda: function(args, stream)),
        "aotriton, Python": _host_us(lambda: aotriton.attn_fwd(q, q, q, out=out, logsumexp=lse)),
        "torch flash": flash,
    }


def _table(title, contestants_of, factor, names, seqlens, rounds):
    """Prints a table of measure()'s rows and returns them."""
    print(f"\n{title}, bf16, batch * seqlen {TOKENS}, heads * head_dim {WIDTH}; TFLOP/s, median of {rounds} rounds "
          "(± half the range of the rounds)")
    print(f"{'head_dim':>8} {'seqlen':>6} {'causal':>6} " + " ".join(f"{name:>14}" for name in names)
          + f" {names[0] + '/flash':>14} {names[0] + '/cudnn':>14}")
    rows = []
    for head_dim in (64, 128):
        for seqlen in seqlens:
            for is_causal in (False, True):
                row = measure(contestants_of, factor, head_dim, seqlen, is_causal, rounds)
                rows.append(row)
                print(_line(row, names), flush=True)
    return rows


def _line(row, names):
    tflops, spread = row["tflops"], row["spread"]
    cells = [f"{tflops[name]:6.0f} (±{spread[name] * 50:3.1f}%)" if name in tflops else "-" for name in names]
    ratios = [f"{tflops[names[0]] / tflops[name]:.2f}" if name in tflops else "-" for name in ("flash", "cudnn")]
    return (f"{row['head_dim']:8} {row['seqlen']:6} {'yes' if row['is_causal'] else 'no':>6} "
            + " ".join(f"{cell:>14}" for cell in [*cells, *ratios]))


def run(quick):
    """Prints the tables; returns {"forward", "backward": rows of measure(), "host_us": host_overhead()}."""
    rounds = 1 if quick else 4
    report = {
        "forward": _table("forward", _forwards, 1, ["aotriton", "persistent", "flash", "cudnn"], (1024, 4096, 16384), rounds),
        "backward": _table("backward", _backwards, 2.5, ["split", "fused", "flash", "cudnn"], (4096, 16384), rounds),
        "host_us": host_overhead(),
    }
    print("host time of one call, us: " + ", ".join(f"{name} {us:.1f}" for name, us in report["host_us"].items()))
    return report
