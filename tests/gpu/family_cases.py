"""Every variant of the backend triton and of both backwards once, and any two values of any two axes together."""

import itertools
import zlib

from tests.gpu import lengths, pairwise
from tests.gpu.attention_case import Case
from tests.gpu.forward_cases import DTYPES, HEADS, LAYOUTS, WINDOWS, short

HEAD_DIMS = [16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256, 512]
FUSED_MAX = 256
SEQLENS = [(143, 337), (337, 143), (65, 127), (128, 256), (1, 63), (257, 130), (64, 1)]
BACKENDS = ["split", "fused"]

# What a case that all axes share may have: (bias layout or None, is its gradient wanted).
BIASES = [(None, False), ("bhsd", True), ("pitch8", False), ("share01", True), ("share2", False),
          ("transposed", False), ("share013", False)]
VARLENS = [None, "compact", "padded", "strided"]
DIFFERENT_DIMS = [0, -3, 8]  # head_dim of V less that of Q


def both_ways(case, with_db=False):
    """Forward, then each backward, with all checks."""
    case.forward()
    for backend in backends_of(case):
        case.backward(backend, with_db)


def backends_of(case):
    """The backends that take the case and that its API can name."""
    takes = BACKENDS if max(case.shapes["q"][3], case.shapes["v"][3]) <= FUSED_MAX else ["split"]
    return [backend for backend in takes if case.expressible(backend)]


def test_of(name, shape, dtype, with_db=False, **options):
    def test():
        both_ways(Case(shape, dtype, numbers=zlib.crc32(name.encode()), **options), with_db)

    return name, test


def variants():
    """Tensors that keep all alignment promises: each variant compiled for them runs."""
    names = itertools.product(DTYPES, HEAD_DIMS, (0, 1), (0, 1), (0, 1))
    for i, (dtype, d, causal, bias, dropped) in enumerate(names):
        hq, hk = HEADS[i % len(HEADS)]
        sq, sk = SEQLENS[i % len(SEQLENS)]
        words = [word for word, on in (("causal", causal), ("bias", bias), ("dropout", dropped)) if on]
        yield test_of(
            f"variant/{short(dtype)}-d{d}-{'-'.join(words) or 'plain'}-h{hq}/{hk}-s{sq}/{sk}",
            (2, hq, hk, sq, sk, d, d), dtype, is_causal=bool(causal), bias=bool(bias),
            layouts={"bias": "pitch8", "db": "pitch8"}, with_db=bool(bias) and i % 3 != 0,
            dropout_p=(0.1, 0.5)[i % 2] if dropped else 0.0, fwd_backend="triton")


def pairs():
    """Any two values of any two axes; the layouts make many of them calls without alignment promises."""
    axes = {
        "dtype": DTYPES, "d": [*HEAD_DIMS, 7, 24, 72, 113], "window": list(WINDOWS), "heads": HEADS, "layouts": LAYOUTS,
        "seqlens": SEQLENS, "bias": BIASES, "dropout_p": [0.0, 0.1, 0.5], "varlen": VARLENS, "dv": DIFFERENT_DIMS,
        "sm_scale": [None, 0.0, 1.2, -0.3],
    }
    for i, one in enumerate(pairwise.combinations(axes)):
        name, shape, dtype, with_db, options = problem_of(i, **one)
        yield test_of(f"pair/{name}", shape, dtype, with_db, fwd_backend="triton", **options)


def problem_of(i, dtype, d, window, heads, layouts, seqlens, bias, dropout_p, varlen, dv, sm_scale):
    """(name, shape, dtype, whether the gradient of the bias is wanted, Case's other options) of combination i."""
    (hq, hk), (sq, sk), (bias_layout, with_db) = heads, seqlens, bias
    if varlen:  # bias and variable lengths exclude each other
        bias_layout, with_db = None, False
    dv = max(1, min(d + dv, 512))
    if 1.2 in (sm_scale,) and d > 128:
        sm_scale = 0.2  # scores of hundreds say nothing: one key takes all
    name = (f"{i}-{short(dtype)}-d{d}/{dv}-{window}-h{hq}/{hk}-s{sq}/{sk}-{'.'.join(layouts)}-bias_{bias_layout}"
            f"-p{dropout_p}-{varlen}-scale{sm_scale}")
    # What is written needs distinct elements: k and v may lie at stride 0, dk and dv not.
    plain = {"shared_heads": "bshd", "shared_batch": "wide"}
    q, k, v, out = layouts
    where = {"q": q, "k": k, "v": v, "out": out, "do": v if v not in plain else "wide", "dq": out,
             "dk": plain.get(v, v), "dv": plain.get(k, k), "bias": bias_layout or "bhsd", "db": ("bhsd", "wide", "odd")[i % 3]}
    rows = None
    if varlen:
        where = {name: layout for name, layout in where.items() if not layout.startswith("shared")}
        rows = (lengths.make(varlen, [sq, 0, 17, 1, 64]), lengths.make(varlen, [sk, 9, 0, 130, 1]), varlen)
    return name, (2, hq, hk, sq, sk, d, dv), dtype, with_db, {
        "layouts": where, "sm_scale": sm_scale, "window": WINDOWS[window], "bias": bias_layout is not None,
        "dropout_p": dropout_p, "varlen": rows, "lse_by_sequence": bool(varlen) and i % 2 == 0}


def tests(quick):
    found = [*variants(), *pairs()]
    return found[::3] if quick else found
