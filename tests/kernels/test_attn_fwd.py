"""attn_fwd in Triton's interpreter against the plain formula in float64."""

import itertools
import math

import pytest
import torch

from tests.kernels import interpreter_fixes
from tests.kernels.bounds import FORWARD, compare_forward
from tests.kernels.launch_attn_fwd import HEAD_DIMS, INT_MAX, Dropout, Guarded, Varlen, fp32, normal, run
from tests.kernels.reference import (
    BOTTOM_RIGHT_ALIGNED,
    TOP_LEFT_ALIGNED,
    attention,
    error,
    floors,
    rows_of,
)

interpreter_fixes.install()

FP16, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
CAUSAL_TL = (TOP_LEFT_ALIGNED, TOP_LEFT_ALIGNED)
CAUSAL_BR = (BOTTOM_RIGHT_ALIGNED, BOTTOM_RIGHT_ALIGNED)


def make_bias(kind, shape, dtype, generator):
    """A bias of (batch, head, seqlen_q, seqlen_k), or broadcast to it by strides of 0, in a buffer of NaN."""
    b, h, m, n = shape
    if kind == "transposed":
        return normal(shape, dtype, "transposed", generator).view
    stored = {"full": shape, "heads": (b, 1, m, n), "keys": (1, 1, 1, n), "rows": (b, h, m, 1)}[kind]
    return normal(stored, dtype, "bhsd", generator).view.expand(shape)


def check(dtype, d, seqlens, window=None, heads=(2, 2), batch=1, layout="bhsd", sm_scale=None,
          bias=None, dropout=None, **kwargs):
    d_qk, d_vo = d if isinstance(d, tuple) else (d, d)
    generator = torch.Generator().manual_seed(1)
    q = normal((batch, heads[0], seqlens[0], d_qk), dtype, layout, generator).view
    k = normal((batch, heads[1], seqlens[1], d_qk), dtype, layout, generator).view
    v = normal((batch, heads[1], seqlens[1], d_vo), dtype, layout, generator).view
    sm_scale = fp32(d_qk**-0.5 if sm_scale is None else sm_scale)
    inputs = {}
    if bias is not None:
        bias = inputs["bias"] = make_bias(bias, (batch, heads[0], *seqlens), dtype, generator)
    if dropout is not None:
        inputs.update(keep=dropout.keep(batch, heads[0], *seqlens), dropout_p=fp32(dropout.p))
    out, lse = run(q, k, v, sm_scale, window, layout, bias=bias, dropout=dropout, **kwargs)
    compare_forward(out, lse, q, k, v, sm_scale, window, **inputs)


@pytest.mark.parametrize("dtype, d, seqlens, window, heads, layout", [
    # Every head dimension, most of them in pieces.
    (FP16, 16, (65, 63), None, (2, 2), "bhsd"),
    (FP32, 32, (63, 65), CAUSAL_TL, (2, 1), "bshd"),
    (BF16, 48, (63, 127), CAUSAL_BR, (4, 2), "bhsd"),
    (FP16, 64, (143, 337), CAUSAL_TL, (1, 1), "bshd"),
    (FP32, 80, (65, 143), (20, 11), (2, 2), "bhsd"),
    (FP16, 96, (127, 65), CAUSAL_BR, (2, 1), "bshd"),
    (BF16, 128, (127, 143), CAUSAL_TL, (2, 1), "bhsd"),
    (FP32, 160, (7, 63), None, (3, 1), "bshd"),
    (FP16, 192, (63, 7), (0, 5), (2, 2), "bhsd"),
    (FP32, 224, (65, 65), CAUSAL_BR, (2, 1), "bhsd"),
    (FP16, 256, (63, 65), None, (2, 2), "bshd"),
    (BF16, 512, (33, 65), CAUSAL_BR, (2, 1), "bhsd"),
    (FP32, (400, 300), (17, 40), None, (1, 1), "odd"),
    # Head dimensions that fill no tile, V's unlike Q's, rows at odd addresses (K17, K18).
    (FP16, 5, (65, 63), CAUSAL_TL, (2, 2), "odd"),
    (FP32, 1, (65, 143), None, (3, 1), "bhsd"),
    (FP32, 5, (143, 337), None, (2, 2), "bhsd"),
    (FP32, 40, (63, 65), (-3, 30), (4, 2), "odd"),
    (FP16, (72, 40), (65, 127), CAUSAL_BR, (2, 1), "odd"),
    (FP16, (24, 152), (7, 65), None, (2, 2), "odd"),
    (BF16, (120, 8), (63, 63), (15, TOP_LEFT_ALIGNED), (2, 2), "bshd"),
    (FP32, (192, 128), (65, 33), CAUSAL_TL, (2, 2), "bhsd"),
    (FP16, (64, 128), (1, 143), None, (4, 1), "bshd"),
    # Long and short.
    (FP32, 64, (337, 127), CAUSAL_TL, (1, 1), "odd"),
    (FP16, 16, (1, 1), None, (2, 2), "odd"),
    (FP16, 16, (1, 337), CAUSAL_BR, (2, 1), "bhsd"),
    (FP32, 16, (337, 1), CAUSAL_TL, (1, 1), "bhsd"),
], ids=lambda value: str(value).removeprefix("torch."))
def test_axes(dtype, d, seqlens, window, heads, layout):
    # An odd layout keeps no promise of alignment, so it runs the general kernel.
    general = True if layout == "odd" else None
    check(dtype, d, seqlens, window, heads, batch=2 if max(seqlens) < 128 else 1, layout=layout, general=general)


# Every head dimension with bias, dropout and a window by pairs (with neither: above); the other axes go round.
KINDS = itertools.cycle([(FP16, False), (BF16, False), (FP16, True), (BF16, True), (FP32, True)])
VARIANTS = [
    (d, *next(KINDS), *variant) for d in HEAD_DIMS
    for variant in [("full", None, CAUSAL_BR), (None, Dropout(), CAUSAL_TL), ("heads", Dropout(0.7), None)]
]


@pytest.mark.parametrize("d, dtype, general, bias, dropout, window", VARIANTS,
                         ids=lambda value: str(value).removeprefix("torch."))
def test_bias_and_dropout(d, dtype, general, bias, dropout, window):
    check(dtype, d, (35, 66), window, heads=(2, 1), bias=bias, dropout=dropout, general=general)


# Every functional, in small.
@pytest.mark.parametrize("bias, dropout, window, general", list(itertools.product(
    [None, "full"], [None, Dropout(0.1)], [None, (9, -2)], [False, True])))
def test_functionals(bias, dropout, window, general):
    for dtype in (FP16, BF16, FP32)[:3 if general else 2]:
        check(dtype, 32, (21, 43), window, heads=(4, 2), batch=2, layout="bshd", bias=bias, dropout=dropout,
              general=general, blocks=(16, 16))


@pytest.mark.parametrize("kind, general", [
    ("full", False), ("heads", False), ("keys", False), ("keys", True), ("rows", True), ("transposed", True)])
def test_bias_strides(kind, general):
    check(FP16, 16, (35, 50), CAUSAL_TL, heads=(4, 2), batch=2, bias=kind, general=general, blocks=(16, 32))


# The mask is the same whatever the blocks, and sequences, heads and rows each have their own.
@pytest.mark.parametrize("blocks", [(16, 16), (16, 64), (64, 32)])
def test_dropout_blocks(blocks):
    check(FP16, 16, (70, 83), heads=(3, 1), batch=2, dropout=Dropout(0.5), blocks=blocks, general=False)


# Everything is dropped: Out 0; LSE does not know.
def test_dropout_of_all():
    q = torch.randn(1, 2, 20, 16)
    out, lse = run(q, q, q, 0.25, dropout=Dropout(1.0))
    assert (out == 0).all() and error(lse, attention(q, q, q, 0.25)[1]) < 1e-5


# Without dropout and bias the general kernel reads neither's pointers: here they are null.
def test_no_dropout_reads_no_seed():
    check(FP16, 16, (20, 20), general=True)


# Types 1, 2, 3: sequences.py. Empty sequences of queries, of keys, and of both (V03).
RAGGED = ([0, 0, 17, 50, 50, 51, 84], [0, 40, 41, 41, 41, 109, 112])


@pytest.mark.parametrize("general, dtype, window, dropout, heads, lse_compact", [
    (False, FP16, None, None, (2, 2), True),
    (False, BF16, CAUSAL_BR, None, (4, 2), False),
    (False, FP16, CAUSAL_TL, Dropout(), (2, 1), True),
    (True, FP32, CAUSAL_BR, Dropout(), (2, 2), False),
    (True, FP16, (12, 3), None, (3, 1), True),
    (True, BF16, None, Dropout(), (2, 1), False),
], ids=str)
@pytest.mark.parametrize("varlen_type", [1, 2, 3])
def test_varlen(varlen_type, general, dtype, window, dropout, heads, lse_compact):
    starts = ([3, 3, 60, 55, 25, 100], [70, 1, 111, 0, 2, 115]) if varlen_type == 3 else (None, None)
    check_varlen(Varlen(varlen_type, *RAGGED, *starts), dtype, 16, window, dropout, heads, lse_compact, general)


def check_varlen(varlen, dtype, d, window, dropout, heads, lse_compact, general):
    if varlen.type == 2:
        lse_compact = False  # there its sequences would share rows
    generator = torch.Generator().manual_seed(2)
    sequences = len(varlen.cu_q) - 1
    layout = "odd" if general else "bshd"

    def make(heads, cu, starts, longest):
        """NaN wherever no sequence is."""
        rows = {1: cu[-1], 2: longest + 5, 3: max(start + cu[i + 1] - cu[i] for i, start in enumerate(starts or [0])) + 5}
        tensor = Guarded((sequences if varlen.type == 2 else 1, heads, rows[varlen.type], d), dtype, layout).view
        for i in range(sequences):
            part = rows_of(tensor, i, cu, starts, varlen.type)
            part.copy_(torch.randn(part.shape, generator=generator))
        return tensor

    q = make(heads[0], varlen.cu_q, varlen.starts_q, varlen.max_q)
    k, v = (make(heads[1], varlen.cu_k, varlen.starts_k, varlen.max_k) for _ in "kv")
    out, lse = run(q, k, v, 0.25, window, layout, (16, 32), general=general, dropout=dropout, varlen=varlen,
                   lse_compact=lse_compact)
    keep = dropout.keep(sequences, heads[0], varlen.max_q, varlen.max_k) if dropout else None
    for i in range(sequences):
        one_q, one_out = (rows_of(x, i, varlen.cu_q, varlen.starts_q, varlen.type) for x in (q, out))
        one_k, one_v = (rows_of(x, i, varlen.cu_k, varlen.starts_k, varlen.type) for x in (k, v))
        rows, keys = one_q.shape[2], one_k.shape[2]
        begin = (varlen.starts_q or varlen.cu_q)[i]
        one_lse = lse[None, :, begin:begin + rows] if lse_compact else lse[i:i + 1, :, :rows]
        inputs = {"keep": keep[i:i + 1, :, :rows, :keys], "dropout_p": fp32(dropout.p)} if dropout else {}
        compare_forward(one_out, one_lse, one_q, one_k, one_v, 0.25, window, **inputs)
        for written in (one_out, one_lse):
            assert not written.isnan().any()
            written.fill_(math.nan)
    assert out.isnan().all() and lse.isnan().all()


# V03
@pytest.mark.parametrize("general", [False, True])
def test_varlen_empty_sequences(general):
    check_varlen(Varlen(1, [0, 0, 1, 1, 2], [0, 0, 3, 3, 8]), FP16, 64, CAUSAL_BR, None, (9, 3), True, general)
    check_varlen(Varlen(1, [0, 0, 12, 20, 20], [0, 25, 42, 51, 81]), FP16, 256, CAUSAL_TL, None, (4, 1), False, general)


# The queries of a longer batch, the keys of a shorter one: tiles of no rows, sequences of no keys.
@pytest.mark.parametrize("varlen_type", [1, 2])
def test_varlen_no_keys_at_all(varlen_type):
    q, k = torch.randn(2, 2, 40, 16).half(), torch.empty(2, 2, 0, 16).half()
    if varlen_type == 1:
        q, k = q[:1], k[:1]
    out, lse = run(q, k, k, 0.25, varlen=Varlen(varlen_type, [0, 3, 40], [0, 0, 0]))
    out_rows = torch.cat([rows_of(out, i, [0, 3, 40], None, varlen_type) for i in range(2)], dim=2)
    assert (out_rows == 0).all() and (lse[1, :, :37] == math.inf).all()


# K07: additive mask of the lowest fp16 in the padding columns of one batch.
@pytest.mark.parametrize("general", [False, True])
def test_lowest_fp16_mask(general):
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(2, 32, 7, 128, generator=generator).half() for _ in "qkv")
    bias = torch.zeros(2, 1, 7, 7, dtype=FP16)
    bias[1, :, :, :3] = -65504
    bias[1, :, :3] = -0.0
    bias = bias.expand(2, 32, 7, 7)
    sm_scale = fp32(128**-0.5)
    out, lse = run(q, k, v, sm_scale, bias=bias, general=general, blocks=(16, 16))
    compare_forward(out, lse, q, k, v, sm_scale, None, bias=bias)


# K11: a row of -inf has no key; a row of the lowest finite number has all of them, alike.
@pytest.mark.parametrize("dtype, general", [(FP16, False), (BF16, False), (BF16, True), (FP32, True)], ids=str)
def test_rows_of_masks(dtype, general):
    generator = torch.Generator().manual_seed(4)
    q, k, v = (torch.randn(1, 2, 40, 16, generator=generator).to(dtype) for _ in "qkv")
    bias = torch.zeros(1, 2, 40, 40, dtype=dtype)
    bias[:, :, 3] = bias[:, 1, 20:] = -math.inf
    bias[:, :, 5] = torch.finfo(dtype).min
    bias[:, :, 6, ::2] = torch.finfo(dtype).min
    bias[:, :, 7, ::2] = -math.inf
    out, lse = run(q, k, v, 0.25, bias=bias, general=general)
    assert (out[:, :, 3] == 0).all() and (lse[:, :, 3] == math.inf).all()
    assert (out[:, 1, 20:] == 0).all() and (lse[:, 1, 20:] == math.inf).all()
    assert out.isfinite().all() and lse[:, :, 5].isfinite().all()
    want, want_lse = attention(q, k, v, 0.25, bias=bias)
    assert ((lse[:, 0, 5] / want_lse[:, 0, 5] - 1).abs() < 1e-6).all()
    # In fp32 nothing of the scores is left beside the lowest bf16 or fp32.
    want[:, 0, 5] = v[:, 0].double().mean(dim=1) if dtype != FP16 else want[:, 0, 5]
    rest = [row for row in range(40) if dtype != FP16 or row != 5]
    assert error(out[:, 0, rest], want[:, 0, rest]) <= FORWARD * floors(q, k, v, 0.25, bias=bias)[0]


# K12: the first block of keys is all masked, by a bias, for some rows or for all.
@pytest.mark.parametrize("general", [False, True])
def test_first_block_masked(general):
    generator = torch.Generator().manual_seed(5)
    q, k, v = (torch.randn(1, 1, 48, 16, generator=generator).half() for _ in "qkv")
    for rows in (slice(None), slice(0, 5)):
        bias = torch.zeros(1, 1, 48, 48, dtype=FP16)
        bias[:, :, rows, :16] = -math.inf
        for window in (None, (40, 40)):
            out, lse = run(q, k, v, 0.25, window, bias=bias, general=general, blocks=(16, 16))
            compare_forward(out, lse, q, k, v, 0.25, window, bias=bias)


# K10: the logsumexp of a large bias gives back the P it came from.
@pytest.mark.parametrize("general", [False, True])
def test_large_bias(general):
    generator = torch.Generator().manual_seed(6)
    q, k, v = (torch.randn(1, 2, 40, 32, generator=generator).bfloat16() for _ in "qkv")
    bias = (100 * torch.randn(1, 2, 40, 64, generator=generator)).bfloat16()[..., :40]
    out, lse = run(q, k, v, 0.25, bias=bias, general=general)
    compare_forward(out, lse, q, k, v, 0.25, None, bias=bias)
    scores = torch.matmul(q.double(), k.double().transpose(2, 3)) * 0.25 + bias.double()
    row_sums = torch.exp(scores - lse.double()[..., None]).sum(dim=-1)
    assert error(row_sums, torch.ones_like(row_sums)) < 1e-4


# NaN in a bias counts where its key is kept, and nowhere else.
def test_nan_in_bias():
    q = torch.randn(1, 1, 32, 16).half()
    bias = torch.zeros(1, 1, 32, 32, dtype=FP16)
    bias[0, 0, 3, 4:] = math.nan  # masked
    bias[0, 0, 9, 2] = math.nan
    out, _ = run(q, q, q, 0.25, CAUSAL_TL, bias=bias)
    assert out[0, 0].isnan().any(dim=-1).nonzero().flatten().tolist() == [9]


@pytest.mark.parametrize("blocks, general", [((16, 16), False), ((16, 64), True), ((64, 16), False)])
@pytest.mark.parametrize("window", [
    (0, 0),
    (50, 1),
    (-5, 20),  # keys after the query only
    (40, -8),  # keys before the query only
    (-3, -9),  # nothing at all
    (INT_MAX, INT_MAX),
    (-INT_MAX - 1, INT_MAX),  # -2147483648 is no sentinel: nothing is kept
    (INT_MAX, 3),
    (2, INT_MAX),
    (TOP_LEFT_ALIGNED, 4),
    (7, BOTTOM_RIGHT_ALIGNED),
    (BOTTOM_RIGHT_ALIGNED, TOP_LEFT_ALIGNED),
    (TOP_LEFT_ALIGNED, BOTTOM_RIGHT_ALIGNED),
], ids=str)
def test_windows(window, blocks, general):
    check(FP16, 16, (75, 101), window, heads=(1, 1), blocks=blocks, general=general)


# K13: both alignments, each way round, and the shortest sequences.
@pytest.mark.parametrize("window", [CAUSAL_TL, CAUSAL_BR], ids=["top_left", "bottom_right"])
@pytest.mark.parametrize("seqlens", [(40, 90), (90, 40), (64, 64), (1, 70), (70, 1), (1, 1)], ids=str)
def test_causal(seqlens, window):
    check(FP32, 16, seqlens, window, heads=(1, 1))


@pytest.mark.parametrize("sm_scale", [0.0, -0.0, -0.25, 1e-30, 8.0])
@pytest.mark.parametrize("window", [None, CAUSAL_BR], ids=["full", "causal"])
def test_scale(sm_scale, window):
    check(FP32, 32, (65, 50), window, sm_scale=sm_scale)
    check(FP16, 32, (65, 50), window, sm_scale=sm_scale)


# K05: raw scores near 1e12, where a rounding of max * scale alone is worth thousands.
@pytest.mark.parametrize("seqlen", [1, 4])
@pytest.mark.parametrize("sm_scale", [0.25, 0.125])
def test_huge_scores(seqlen, sm_scale):
    x = torch.full((1, 1, seqlen, 64), 133120.0, dtype=BF16)
    out, lse = run(x, x, x, sm_scale)
    assert (out == 133120.0).all()
    want = attention(x, x, x, sm_scale)[1]
    assert error(lse, want) <= 1e-6 * want.max()


# K11: bottom-right causal with more queries than keys leaves the first rows with no key,
# in tiles that are skipped and in tiles that other rows share.
@pytest.mark.parametrize("sm_scale", [0.25, 0.0])
def test_fully_masked_rows(sm_scale):
    q = torch.randn(1, 1, 90, 16)
    k = torch.randn(1, 1, 45, 16)
    out, lse = run(q, k, k, sm_scale, CAUSAL_BR)
    assert (out[:, :, :45] == 0).all() and (lse[:, :, :45] == math.inf).all()
    assert lse[:, :, 45:].isfinite().all()


# K23
@pytest.mark.parametrize("base2", [False, True])
def test_lse_value(base2):
    q = torch.zeros(1, 1, 1, 16)
    k = torch.zeros(1, 1, 16, 16)
    q[..., 0] = k[0, 0, 3, 0] = 1.0
    _, lse = run(q, k, k, 0.25, base2=base2)
    assert lse.item() * (math.log(2) if base2 else 1) == pytest.approx(2.79018449783325195, abs=5e-7)


# V05: no keys. (An empty output is launched by nobody.)
@pytest.mark.parametrize("window", [None, CAUSAL_TL, CAUSAL_BR], ids=str)
def test_no_keys(window):
    q = torch.randn(1, 2, 10, 64).half()
    k = torch.empty(1, 2, 0, 64).half()
    out, lse = run(q, k, k, 0.125, window)
    assert (out == 0).all() and (lse == math.inf).all()


def test_null_lse():
    q = torch.randn(1, 1, 20, 16)
    out, lse = run(q, q, q, 0.25, store_lse=False)
    assert lse.isnan().all() and not out.isnan().any()


# Keys that no row of a tile keeps are not used, even when they hold NaN.
def test_nan_in_unused_keys():
    q = torch.randn(1, 1, 32, 16)
    k = torch.randn(1, 1, 64, 16)
    want, _ = attention(q, k[:, :, :32], k[:, :, :32], 0.25, CAUSAL_TL)
    k[:, :, 32:] = math.nan
    out, _ = run(q, k, k, 0.25, CAUSAL_TL, blocks=(32, 64))
    assert error(out, want) < 1e-6


# An unmasked NaN is not hidden.
def test_nan_propagates():
    q = torch.randn(1, 1, 32, 16)
    k = torch.randn(1, 1, 40, 16)
    k[0, 0, 5] = math.nan
    out, _ = run(q, k, q.new_ones(1, 1, 40, 16), 0.25)
    assert out.isnan().all()


@pytest.mark.parametrize("programs", [1, 3])
@pytest.mark.parametrize("window", [CAUSAL_TL, CAUSAL_BR, (-3, 7)])
def test_persistent_schedule(window, programs):
    # 143 rows see 63 keys: whole tiles keep no key, and those after them are made all the same.
    check(FP16, 32, (143, 63), window, heads=(4, 2), batch=2, persistent=programs)


def test_persistent_schedule_with_variable_lengths():
    generator = torch.Generator().manual_seed(3)
    varlen = Varlen(1, [0, 65, 65, 72], [0, 40, 47, 150])
    q, k, v = (normal((1, 2, rows, 32), FP16, "bshd", generator).view for rows in (72, 150, 150))
    plain = run(q, k, v, 0.2, CAUSAL_BR, varlen=varlen)
    persistent = run(q, k, v, 0.2, CAUSAL_BR, varlen=varlen, persistent=2)
    assert all(torch.equal(one.view(torch.uint8), other.view(torch.uint8)) for one, other in zip(plain, persistent))
