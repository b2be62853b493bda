"""One attention problem: its tensors, the calls on it, what is due, and what the calls may not touch.

    case = Case((b, hq, hk, sq, sk, d, dv), torch.bfloat16, window=..., bias="share01", dropout_p=0.1)
    case.forward()                 # runs, and checks all that attn_fwd promises
    case.backward("split")         # runs on the forward's results, and checks all that attn_bwd promises

A Case of which one promise is broken raises AssertionError that says which and by how much. Every
error over its floor goes to the ledger.
"""

import contextlib
import functools
import math
import operator
import os

import aotriton
import torch

from tests.gpu import calls, dropout, ledger
from tests.gpu.placing import DEVICE, Placed, generator
from tests.kernels import reference

FORWARD_FACTOR, BACKWARD_FACTOR = 2.0, 3.0
# Upstream's: seed, offset 1, offset 2.
SEED, OFFSET1, OFFSET2 = 0x1BF52, 0x1D4000, 0xB42

# Of a simulated GPU: multiplications of Q K^T and P V, those of fp32 four times.
MOST_WORK = float(os.environ.get("AOTRITON_TEST_MOST_WORK", "inf"))

EPS_FP32 = torch.finfo(torch.float32).eps


class TooLarge(Exception):
    """The problem is more work than AOTRITON_TEST_MOST_WORK."""


class Case:
    """See the module.

    Args:
      shape: (b, hq, hk, sq, sk, d, dv); with variable lengths b, sq and sk are not read.
      layouts: by tensor name (q, k, v, bias, out, do, dq, dk, dv, db) what Placed takes, or a function
        of the shape that gives it; default bhsd.
      bias: None, or True; its layout may have stride 0.
      bias_scale, scale: standard deviations of the bias and of q, k, v, do.
      varlen: None or (Rows of the queries, Rows of the keys, kind).
      given: tensors by name in place of random ones: anything with a `view`.
      lse_by_sequence: with varlen, logsumexp is (N, Hq, max_seqlen_q) though it need not be.
      fwd_backend: of attn_fwd; None: the library chooses.
      way: which API the calls go through, one of calls.WAYS; may be set anew at any time.
    """

    def __init__(self, shape, dtype, *, layouts=None, sm_scale=None, window=None, is_causal=False, bias=False,
                 bias_scale=1.0, scale=1.0, dropout_p=0.0, seed=SEED, offset1=OFFSET1, offset2=OFFSET2,
                 varlen=None, lse_by_sequence=False, given=None, fwd_backend=None, way="python", numbers=0):
        b, hq, hk, sq, sk, d, dv = shape
        self.dtype, self.sm_scale, self.window, self.is_causal = dtype, sm_scale, window, is_causal
        self.dropout_p, self.philox = dropout_p, (seed, offset1, offset2)
        self.layouts, self.varlen, self.way, self.fwd_backend = layouts or {}, varlen, way, fwd_backend
        self.lse_by_sequence = lse_by_sequence or bool(varlen) and varlen[2] == "padded"
        bq = bk = b
        if varlen:
            bq, sq, bk, sk = varlen[0].batch, varlen[0].rows, varlen[1].batch, varlen[1].rows
        pairs = sum(map(operator.mul, varlen[0].lengths, varlen[1].lengths)) if varlen else b * sq * sk
        work = hq * pairs * (d + dv) * (4 if dtype == torch.float32 else 1)
        if work > MOST_WORK:
            raise TooLarge(f"{work / 1e6:.0f} million multiplications; at most {MOST_WORK / 1e6:.0f}")
        self.shapes = {
            "q": (bq, hq, sq, d), "k": (bk, hk, sk, d), "v": (bk, hk, sk, dv), "bias": (b, hq, sq, sk),
            "out": (bq, hq, sq, dv), "do": (bq, hq, sq, dv), "dq": (bq, hq, sq, d), "dk": (bk, hk, sk, d),
            "dv": (bk, hk, sk, dv), "db": (b, hq, sq, sk)}
        random = generator(numbers)
        given = given or {}
        for name in ("q", "k", "v", "do"):
            setattr(self, name, given.get(name) or self._place(name).fill_random(random, scale))
            if varlen:
                self._poison_gaps(name)
        self.bias = given.get("bias") or (self._place("bias").fill_random(random, bias_scale) if bias else None)
        self.clean = {}  # tensors for the reference, where those of the call hold NaN that is masked off
        self.out = self.lse = None
        self.counter = torch.zeros(1, dtype=torch.int32, device=DEVICE)

    def _place(self, name):
        layout = self.layouts.get(name, "bhsd")
        shape = self.shapes[name]
        return Placed(shape, self.dtype, layout(shape) if callable(layout) else layout)

    def _rows(self, name):
        return self.varlen[0 if name in ("q", "do", "out", "dq", "lse") else 1]

    def _poison_gaps(self, name):
        """Rows of no sequence hold NaN: they may not be read."""
        view = getattr(self, name).view
        clean = view.clone()
        view.fill_(math.nan)
        for to, content in zip(self._rows(name).views(view), self._rows(name).views(clean)):
            to.copy_(content)

    def parts(self, name, tensor):
        """`tensor` (that of `name`) as a list: one entry a sequence, or the whole where lengths do not vary."""
        return self._rows(name).views(tensor) if self.varlen else [tensor]

    def lse_parts(self, lse):
        """Logsumexp likewise: each (1 or batch, head, length)."""
        if not self.varlen:
            return [lse]
        rows = self.varlen[0]
        if self.lse_by_sequence:
            return [lse[i:i + 1, :, :length] for i, length in enumerate(rows.lengths)]
        return [lse[None, :, row:row + length] for (_, row), length in zip(rows.first, rows.lengths)]

    def lse_shape(self):
        _, hq, sq, _ = self.shapes["q"]
        if not self.varlen:
            return self.shapes["q"][:3]
        rows = self.varlen[0]
        return (len(rows.lengths), hq, rows.longest) if self.lse_by_sequence else (hq, sq)

    def scores_shape(self):
        """Of encoded_softmax."""
        if not self.varlen:
            return (*self.shapes["q"][:3], self.shapes["k"][2])
        rows_q, rows_k, _ = self.varlen
        return len(rows_q.lengths), self.shapes["q"][1], rows_q.longest, rows_k.longest

    # -- the calls

    @functools.cached_property
    def options(self):
        """What both calls are given beside their tensors."""
        options = {"sm_scale": self.sm_scale, "window": self.window, "is_causal": self.is_causal}
        if self.bias:
            options["bias"] = self.bias.view
        if self.dropout_p:
            options.update(dropout_p=self.dropout_p, philox_seed=self.philox[0], philox_offset1=self.philox[1],
                           philox_offset2=self.philox[2])
        if self.varlen:
            rows_q, rows_k, kind = self.varlen
            options.update(varlen=kind, cu_seqlens_q=rows_q.cu_seqlens(), cu_seqlens_k=rows_k.cu_seqlens(),
                           max_seqlen_q=rows_q.longest, max_seqlen_k=rows_k.longest)
            if kind == "strided":
                options.update(seq_starts_q=rows_q.seq_starts(), seq_starts_k=rows_k.seq_starts())
        return options

    def expressible(self, backend=None):
        """Whether the API in use has words for this problem (for its backward, where a backend is named)."""
        return calls.expresses(self.way, window=self.window, is_causal=self.is_causal,
                               varlen=self.varlen and self.varlen[2], backend=backend)

    def run_forward(self, with_lse=True, **more):
        """Calls attn_fwd with poisoned outputs; checks what it may not touch. Sets out and lse."""
        self.out = self._place("out")
        self.lse = Placed(self.lse_shape(), torch.float32)
        if calls.has_counter(self.way):
            more.setdefault("persistent_counter", self.counter)
        with self._untouched(("q", "k", "v", "bias"), {"out": self.out, "lse": self.lse}):
            calls.attn_fwd(self.way, self.q.view, self.k.view, self.v.view, out=self.out.view,
                           logsumexp=self.lse.view if with_lse else False, backend=self.fwd_backend, **self.options, **more)
        assert self.counter.item() == 0, f"the persistent schedule left its counter at {self.counter.item()}"
        return self.out, self.lse

    def run_backward(self, backend=None, with_db=False):
        """Calls attn_bwd with poisoned outputs; checks what it may not touch. Returns {name: Placed}."""
        grads = {name: self._place(name) for name in ("dq", "dk", "dv", *(["db"] if with_db else []))}
        with self._untouched(("q", "k", "v", "bias", "do", "out", "lse"), grads):
            names = {"dq": "dq", "dk": "dk", "dv": "dv", "db": "dbias"}
            calls.attn_bwd(self.way, self.do.view, self.q.view, self.k.view, self.v.view, self.out.view, self.lse.view,
                           backend=backend, **{names[name]: one.view for name, one in grads.items()}, **self.options)
        return grads

    @contextlib.contextmanager
    def _untouched(self, inputs, outputs):
        """Checks that no byte of the inputs changes, nor any of the outputs outside their sequences."""
        inputs = {name: getattr(self, name) for name in inputs if getattr(self, name) is not None}
        inside = {name: self._inside(name, one.view) for name, one in outputs.items()}
        before = {name: one.bits() for name, one in inputs.items()}
        outside = {name: one.bits_outside(inside[name]) for name, one in outputs.items()}
        yield
        for name, one in inputs.items():
            assert torch.equal(one.bits(), before[name]), f"{name} was written"
        for name, one in outputs.items():
            assert torch.equal(one.bits_outside(inside[name]), outside[name]), f"something was written outside {name}"

    def _inside(self, name, view):
        if not self.varlen:
            return None
        return self.lse_parts(view) if name == "lse" else self.parts(name, view)

    # -- what is due

    def keep(self, index):
        """The dropout mask of part `index`, or None."""
        if not self.dropout_p:
            return None
        seed, offset1, offset2 = self.philox
        b, hq, sq, _ = self.shapes["q"]
        sk = self.shapes["k"][2]
        if not self.varlen:
            return dropout.keep(seed, offset1 + offset2, self.dropout_p, range(b), hq, sq, sk)
        rows_q, rows_k, _ = self.varlen
        return dropout.keep(seed, offset1 + offset2, self.dropout_p, [index], hq, rows_q.lengths[index],
                            rows_k.lengths[index], rows_q.longest, rows_k.longest)

    @functools.cached_property
    def problems(self):
        """Of each part: (q, k, v, do) and the other arguments of the functions of tests/kernels/reference.py."""
        window = (aotriton.WINDOW_TOP_LEFT,) * 2 if self.is_causal else self.window
        sm_scale = self.shapes["q"][3] ** -0.5 if self.sm_scale is None else self.sm_scale
        parts = zip(*(self.parts(name, (self.clean.get(name) or getattr(self, name)).view)
                      for name in ("q", "k", "v", "do")))
        return [(tensors, {"sm_scale": sm_scale, "window": window, "bias": self.bias.view if self.bias else None,
                           "keep": self.keep(index), "dropout_p": self.dropout_p})
                for index, tensors in enumerate(parts)]

    @functools.cached_property
    def due_forward(self):
        """Of each part: (out, lse) in float64, and the same by the plain formula in a few orders."""
        return [_evaluate(reference.attention, tensors[:3], options) for tensors, options in self.problems]

    @functools.cached_property
    def due_backward(self):
        """Of each part: (dq, dk, dv, db) likewise."""
        return [_evaluate(reference.gradients, tensors, options) for tensors, options in self.problems]

    # -- checks

    def forward(self, with_lse=True):
        """Runs attn_fwd and checks everything it promises. Returns (out, lse)."""
        self.run_forward(with_lse)
        self.check_forward(with_lse)
        return self.out, self.lse

    def check_forward(self, with_lse=True):
        due = self.due_forward
        self.check_output("attn_fwd", FORWARD_FACTOR, "out", self.parts("out", self.out.view),
                          [(want[0], [run[0] for run in runs]) for want, runs in due])
        for got, (want, _) in zip(self.parts("out", self.out.view), due):
            assert (got[want[1].isinf()] == 0).all(), "out is not 0 where a row keeps no key"
        if with_lse:
            for got, (want, _), problem in zip(self.lse_parts(self.lse.view), due, self.problems):
                self._check_lse(got, want[1], *problem)

    def _check_lse(self, got, want, tensors, options):
        q, k, v, _ = tensors
        empty = want.isinf()
        assert not got.isnan().any(), f"logsumexp has {int(got.isnan().sum())} NaN of {got.numel()}"
        assert (got[empty] == math.inf).all(), "logsumexp is not +inf where a row keeps no key"
        got, want = got[~empty].double(), want[~empty]
        if not want.numel():
            return
        plain = reference.attention(q, k, v, **options, dtype=torch.float32)[1][~empty]
        # logsumexp adds to the scores, whose rounding scales with |q| |k| before any cancels.
        score = abs(options["sm_scale"]) * (_longest(q) * _longest(k)).item()
        floor = max(reference.error(plain, want), EPS_FP32 * (1 + reference.largest(want) + score))
        self._note("attn_fwd", "lse", reference.error(got, want) / floor, FORWARD_FACTOR)

    def backward(self, backend, with_db=False):
        """Runs attn_bwd on the results of the forward and checks everything it promises. Returns the gradients."""
        grads = self.run_backward(backend, with_db)
        self.check_backward(grads, backend)
        return grads

    def check_backward(self, grads, backend):
        names = [name for name in ("dq", "dk", "dv", "db") if name in grads]
        parts = {name: self.parts(name, grads[name].view) if name != "db" else [grads[name].view] for name in names}
        # P is found again from the logsumexp, which is stored in fp32: half a unit in its last place is what P errs.
        lse = max((reference.largest(want[1][want[1].isfinite()]) for want, _ in self.due_forward), default=0.0)
        roundings = [reference.gradient_roundings(*tensors, options["sm_scale"], options["dropout_p"])
                     for tensors, options in self.problems]
        for i, name in enumerate(("dq", "dk", "dv", "db")):
            if name in grads:
                due = [(want[i], [run[i] for run in runs]) for want, runs in self.due_backward]
                self.check_output(f"attn_bwd {backend}", BACKWARD_FACTOR, name, parts[name], due, EPS_FP32 / 2 * lse,
                                  [one[i] for one in roundings])
        for index, ((forward, _), problem) in enumerate(zip(self.due_forward, self.problems)):
            got = {name: parts[name][index] for name in names}
            assert (got["dq"][forward[1].isinf()] == 0).all(), "dq is not 0 where a row keeps no key"
            seen = _seen(*problem)
            (b, hk, sk, _), hq = problem[0][1].shape, problem[0][0].shape[1]
            unseen = ~seen.any(dim=2).expand(b, hq, sk).reshape(b, hk, hq // hk, sk).any(dim=2)
            for name in ("dk", "dv"):
                assert (got[name][unseen] == 0).all(), f"{name} is not 0 where no row keeps the key"
            if "db" in got:
                assert (got["db"][~seen.expand(got["db"].shape)] == 0).all(), "db is not 0 where a key is masked"

    def check_output(self, op, factor, output, got, due, relative=0.0, rounding=()):
        """Checks all parts of one output, by the largest error and by the norm of the errors.

        The floor is the plain formula's error, and at least half a unit in the last place of the result.

        Args:
          got: the parts.
          due: of each part, (float64, [the plain formula in a few orders]).
          relative: at least this share of the result is floor, too.
          rounding: of each part, the floor of an element where the plain formula's errors are far below it.
        """
        for one in got:
            assert not one.isnan().any(), f"{output} of {op} has {int(one.isnan().sum())} NaN of {one.numel()}"
        relative = max(relative, torch.finfo(self.dtype).eps / 2)
        worst = 0.0
        for measure, together in ((reference.largest, lambda numbers: max(numbers, default=0.0)),
                                  (_norm, lambda numbers: math.hypot(*numbers))):
            errors, floors = [], []
            for one, (want, runs), rounded in zip(got, due, rounding or [0.0] * len(due)):
                errors.append(measure(one.double() - want))
                floor = max(relative * measure(want), *(measure(run.double() - want) for run in runs))
                if measure is _norm:
                    rounded *= math.sqrt(one.numel())
                floors.append(floor if floor >= rounded / 1000 else rounded)
            error, floor = together(errors), together(floors)
            worst = max(worst, error / floor if floor else math.inf if error else 0.0)
        self._note(op, output, worst, factor)

    def _note(self, op, output, ratio, factor):
        ledger.ratio(op, self.dtype, output, ratio)
        assert ratio <= factor, f"{output} of {op} errs {ratio:.2f} x the floor; allowed {factor}"


def _evaluate(function, tensors, options):
    """(float64 results, [results in the inputs' precision, for each order])."""
    want = function(*tensors, **options)
    runs = [function(*tensors, **options, dtype=tensors[0].dtype, order=order) for order in reference.orders(*tensors[:3])]
    return want, runs


def _seen(tensors, options):
    """Which keys each row keeps: bool, broadcasts to (batch, head, row, key)."""
    q, k, _, _ = tensors
    seen = reference.keep_mask(q.shape[2], k.shape[2], options["window"], q.device)[None, None]
    return seen if options["bias"] is None else seen & (options["bias"] > -math.inf)


def _norm(difference):
    return difference.norm().item()


def _longest(tensor):
    """The largest norm of a row."""
    return tensor.double().norm(dim=-1).max()
