"""TFLOP/s of the forward beside PyTorch's flash and cuDNN attention, and the host time of a call.

bf16, batch * seqlen = 16384, heads * head_dim = 2048. The contestants take turns within a round, so
that clock and power drift hits all alike; a contestant's time is the median of its rounds' medians.
Ours writes given outputs, logsumexp too; PyTorch's allocate theirs from its cache. Before a contestant is
timed its result is compared with ours.
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
    if name == "aotriton":
        return contextlib.nullcontext()
    return sdpa_kernel({"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}[name])


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


def _contestants(q, k, v, is_causal):
    out, lse = aotriton.attn_fwd(q, k, v, is_causal=is_causal)
    contestants = {
        "aotriton": lambda: aotriton.attn_fwd(q, k, v, is_causal=is_causal, out=out, logsumexp=lse)[0],
        "flash": lambda: scaled_dot_product_attention(q, k, v, is_causal=is_causal),
        "cudnn": lambda: scaled_dot_product_attention(q, k, v, is_causal=is_causal),
    }
    for name in ("flash", "cudnn"):
        try:
            with _backend(name):
                other = contestants[name]().float()
        except RuntimeError as error:
            print(f"no {name}: {str(error).splitlines()[0][:100]}")
            del contestants[name]
            continue
        difference = ((out.float() - other).norm() / other.norm()).item()
        assert difference < 1e-2, f"ours and {name} differ by {difference:.1e}: not worth timing"
    return contestants


def measure(head_dim, seqlen, is_causal, rounds):
    """{"head_dim", "seqlen", "is_causal", "tflops": {name: median}, "spread": {name: max / min - 1}}."""
    shape = (TOKENS // seqlen, WIDTH // head_dim, seqlen, head_dim)
    numbers = generator(0)
    q, k, v = (torch.randn(shape, dtype=torch.bfloat16, device=DEVICE, generator=numbers) for _ in range(3))
    flops = 4 * shape[0] * shape[1] * seqlen * seqlen * head_dim / (2 if is_causal else 1)
    contestants = _contestants(q, k, v, is_causal)
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
    call = attention._Call(q, q, q, None, None, False, out, lse, None)
    function, args, stream = library.load().aotriton_attn_fwd, ctypes.byref(call.args), call.stream
    with _backend("flash"):
        flash = _host_us(lambda: scaled_dot_product_attention(q, q, q))
    return {
        "aotriton, C call": _host_us(lambda: function(args, stream)),
        "aotriton, Python": _host_us(lambda: aotriton.attn_fwd(q, q, q, out=out, logsumexp=lse)),
        "torch flash": flash,
    }


def run(quick):
    """Prints the table; returns {"forward": rows of measure(), "host_us": host_overhead()}."""
    rounds = 1 if quick else 4
    print(f"\nforward, bf16, batch * seqlen {TOKENS}, heads * head_dim {WIDTH}; TFLOP/s, median of {rounds} rounds "
          "(± half the range of the rounds)")
    print(f"{'head_dim':>8} {'seqlen':>6} {'causal':>6} {'aotriton':>13} {'flash':>13} {'cudnn':>13} {'/flash':>7} {'/cudnn':>7}")
    rows = []
    for head_dim in (64, 128):
        for seqlen in (1024, 4096, 16384):
            for is_causal in (False, True):
                row = measure(head_dim, seqlen, is_causal, rounds)
                rows.append(row)
                print(_line(row), flush=True)
    host = host_overhead()
    print("host time of one call, us: " + ", ".join(f"{name} {us:.1f}" for name, us in host.items()))
    return {"forward": rows, "host_us": host}


def _line(row):
    tflops, spread = row["tflops"], row["spread"]
    cells = [f"{tflops[name]:6.0f} (±{spread[name] * 50:3.1f}%)" if name in tflops else "-"
             for name in ("aotriton", "flash", "cudnn")]
    ratios = [f"{tflops['aotriton'] / tflops[name]:.2f}" if name in tflops else "-" for name in ("flash", "cudnn")]
    return (f"{row['head_dim']:8} {row['seqlen']:6} {'yes' if row['is_causal'] else 'no':>6} "
            + " ".join(f"{cell:>13}" for cell in cells) + " " + " ".join(f"{ratio:>7}" for ratio in ratios))
