"""What the v2 and v3 functions have in common: from views to the structs of aotriton.h, and the calls."""

import ctypes
import typing

from aotriton.library import FWD_BACKENDS, WINDOW_TOP_LEFT, AttnBwdArgs, AttnFwdArgs, load

from pyaotriton.runtime import Stream, hipError_t, report
from pyaotriton.views import T0, T1, DType, pack, pack_rows

CAUSAL = (WINDOW_TOP_LEFT, WINDOW_TOP_LEFT)
VARLEN_NONE, VARLEN_COMPACT = 0, 1


class Refusal(Exception):
    """An argument that the C ABI has no field for, or that no longer can be told apart there."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Dropout(typing.NamedTuple):
    p: float
    seed: T0
    offset1: T0
    offset2: int
    seed_output: T0 = T0()
    offset_output: T0 = T0()

    def fields(self, outputs=False):
        """Those of the structs; none of the scalars is looked at where nothing is dropped."""
        if self.p <= 0:
            return {}
        scalars = {"philox_seed": self.seed, "philox_offset1": self.offset1}
        if outputs:
            scalars.update(philox_seed_output=self.seed_output, philox_offset_output=self.offset_output)
        for name, scalar in scalars.items():
            if scalar and scalar.dtype not in (DType.kInt64, DType.kUInt64):
                raise Refusal(hipError_t.hipErrorInvalidValue,
                              f"{name} has dtype {scalar.dtype.name}; it must be int64 (13) or uint64 (23)")
        return {"dropout_p": self.p, "philox_offset2": int(self.offset2) % 2**64,
                **{name: scalar.data_ptr or None for name, scalar in scalars.items()}}


class Varlen(typing.NamedTuple):
    type: int = VARLEN_NONE
    cu_seqlens_q: T1 = T1()
    cu_seqlens_k: T1 = T1()
    seq_starts_q: T1 = T1()
    seq_starts_k: T1 = T1()
    max_seqlen_q: int = 0
    max_seqlen_k: int = 0

    def fields(self):
        arrays = {name: pack(getattr(self, name))
                  for name in ("cu_seqlens_q", "cu_seqlens_k", "seq_starts_q", "seq_starts_k")}
        if self.type == VARLEN_NONE:  # callers leave the numbers unset
            return {"varlen_type": VARLEN_NONE, **arrays}
        return {"varlen_type": _int32("varlen_type", self.type), "max_seqlen_q": _int32("max_seqlen_q", self.max_seqlen_q),
                "max_seqlen_k": _int32("max_seqlen_k", self.max_seqlen_k), **arrays}


def _int32(name, number):
    if not -(2**31) <= number < 2**31:  # ctypes would wrap it silently
        raise TypeError(f"{name} is {number}; accepted: a 32-bit number")
    return number


def _common(q, k, v, b, out, lse, sm_scale, window, varlen):
    left, right = window or (0, 0)
    return {"q": pack(q), "k": pack(k), "v": pack(v), "bias": pack(b), "out": pack(out), "logsumexp": pack_rows(lse),
            "sm_scale": sm_scale, "is_windowed": window is not None, "window_left": _int32("window_left", left),
            "window_right": _int32("window_right", right), **varlen.fields()}


def answer(call, *arguments):
    """What `call` returns, as hipError_t, or what it refuses."""
    try:
        return report(call(*arguments))
    except Refusal as refusal:
        return report(refusal.status, str(refusal))


def handle_of(stream):
    """None is the default stream."""
    return (Stream() if stream is None else stream).handle


def attn_fwd(stream, q, k, v, b, out, lse, encoded_softmax, counter, sm_scale, window, varlen, dropout,
             backend=FWD_BACKENDS[None]):
    if counter and window and counter.dtype != DType.kInt32:  # without a window it is not used, and may be anything
        raise Refusal(hipError_t.hipErrorInvalidValue,
                      f"persistent_counter has dtype {counter.dtype.name}; it must be int32 (12)")
    args = AttnFwdArgs(struct_size=ctypes.sizeof(AttnFwdArgs), **_common(q, k, v, b, out, lse, sm_scale, window, varlen),
                       persistent_counter=counter.data_ptr or None, backend=backend, **dropout.fields(outputs=True))
    lib, handle = load(), handle_of(stream)
    if encoded_softmax:
        _check_encoded_softmax(encoded_softmax, q, k, varlen)
        # Nothing may be enqueued if either is refused, and only the forward can be asked beforehand.
        status = lib.aotriton_attn_fwd_prepare(args, handle)
        status = status or debug_simulate_encoded_softmax(stream, encoded_softmax, dropout)
        if status:
            return status
    return lib.aotriton_attn_fwd(args, handle)


def _check_encoded_softmax(encoded_softmax, q, k, varlen):
    shape = [q.size(0), q.size(1), q.size(2), k.size(2)]
    if varlen.type != VARLEN_NONE:
        shape = [varlen.cu_seqlens_q.size(0) - 1, q.size(1), varlen.max_seqlen_q or q.size(2), varlen.max_seqlen_k or k.size(2)]
    if encoded_softmax.sizes != shape:
        raise Refusal(hipError_t.hipErrorInvalidValue,
                      f"encoded_softmax has sizes {encoded_softmax.sizes}; it must be {shape}: sequences, num_head_q, "
                      "max_seqlen_q, max_seqlen_k")


def attn_bwd(stream, q, k, v, b, out, lse, dout, dq, dk, dv, db, delta, sm_scale, window, varlen, dropout, backend):
    args = AttnBwdArgs(struct_size=ctypes.sizeof(AttnBwdArgs), **_common(q, k, v, b, out, lse, sm_scale, window, varlen),
                       dout=pack(dout), dq=pack(dq), dk=pack(dk), dv=pack(dv), dbias=pack(db), delta=pack_rows(delta),
                       backend=backend, **dropout.fields())
    return load().aotriton_attn_bwd(args, handle_of(stream))


def debug_simulate_encoded_softmax(stream, r, dropout):
    fields = dropout.fields()
    return load().aotriton_debug_simulate_encoded_softmax(
        pack(r), fields.get("dropout_p", 0.0), fields.get("philox_seed"), fields.get("philox_offset1"),
        fields.get("philox_offset2", 0), handle_of(stream))
