"""The functions of the v2 API. What each argument means stands in aotriton/v2/flash.h."""

import ctypes

from aotriton.library import BACKENDS, AttnFwdArgs, load

from pyaotriton import calls
from pyaotriton.calls import CAUSAL, VARLEN_COMPACT, Dropout, Varlen, answer
from pyaotriton.runtime import hipError_t, report
from pyaotriton.views import T2, T4, DType, pack


class CppTune:
    """Tuning hooks; none in this library."""


class FwdExtraArguments(CppTune):
    pass


class BwdExtraArguments:
    pass


class FusedBwdExtraArguments(CppTune):
    pass


def check_gpu(stream):
    """hipSuccess if the library serves the stream's GPU: it knows the arch and has a pack for it."""
    # The smallest problem there is; a pack that was built without its kernel is a pack nevertheless.
    view = pack(T4(4096, [1] * 4, [1] * 4, DType.kFloat16))
    args = AttnFwdArgs(struct_size=ctypes.sizeof(AttnFwdArgs), q=view, k=view, v=view, out=view, sm_scale=1.0)
    status = load().aotriton_attn_fwd_supported(args, calls.handle_of(stream))
    return report(0 if status == hipError_t.hipErrorProfilerNotInitialized else status)


def attn_fwd(q, k, v, b, sm_scale, softmax_lse, out, dropout_p, philox_seed, philox_offset1, philox_offset2,
             philox_seed_output, philox_offset_output, encoded_softmax, is_causal, atomic_for_causal, stream=None,
             extargs=None):
    dropout = Dropout(dropout_p, philox_seed, philox_offset1, philox_offset2, philox_seed_output, philox_offset_output)
    return answer(calls.attn_fwd, stream, q, k, v, b, out, softmax_lse, encoded_softmax, atomic_for_causal,
                  sm_scale, _window(is_causal), Varlen(), dropout)


def attn_fwd_compact_varlen(q, k, v, b, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, sm_scale, softmax_lse,
                            out, dropout_p, philox_seed, philox_offset1, philox_offset2, philox_seed_output,
                            philox_offset_output, encoded_softmax, is_causal, atomic_for_causal, stream=None, extargs=None):
    dropout = Dropout(dropout_p, philox_seed, philox_offset1, philox_offset2, philox_seed_output, philox_offset_output)
    return answer(calls.attn_fwd, stream, q, k, v, b, out, softmax_lse, encoded_softmax, atomic_for_causal,
                  sm_scale, _window(is_causal), _compact(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k), dropout)


def attn_bwd(q, k, v, b, sm_scale, out, dout, dq, dk, dv, db, softmax_lse, delta, dropout_p, philox_seed,
             philox_offset1, philox_offset2, is_causal, stream=None, extargs=None):
    dropout = Dropout(dropout_p, philox_seed, philox_offset1, philox_offset2)
    return answer(calls.attn_bwd, stream, q, k, v, b, out, softmax_lse, dout, dq, dk, dv, db, delta, sm_scale,
                  _window(is_causal), Varlen(), dropout, BACKENDS["split"])


def attn_bwd_fused(q, k, v, b, sm_scale, out, dout, dq, dk, dv, db, softmax_lse, dropout_p, philox_seed,
                   philox_offset1, philox_offset2, is_causal, stream=None, extargs=None):
    dropout = Dropout(dropout_p, philox_seed, philox_offset1, philox_offset2)
    return answer(calls.attn_bwd, stream, q, k, v, b, out, softmax_lse, dout, dq, dk, dv, db, T2(), sm_scale,
                  _window(is_causal), Varlen(), dropout, BACKENDS["fused"])


def attn_bwd_compact_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, b, sm_scale, out, dout,
                            dq, dk, dv, db, softmax_lse, delta, dropout_p, philox_seed, philox_offset1, philox_offset2,
                            is_causal, stream=None, extargs=None):
    dropout = Dropout(dropout_p, philox_seed, philox_offset1, philox_offset2)
    return answer(calls.attn_bwd, stream, q, k, v, b, out, softmax_lse, dout, dq, dk, dv, db, delta, sm_scale,
                  _window(is_causal), _compact(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k), dropout,
                  BACKENDS["split"])


def debug_simulate_encoded_softmax(r, dropout_p, philox_seed_ptr, philox_offset1, philox_offset2, stream=None):
    """Writes the dropout mask: 0.5 where an element is kept, -0.5 where it is dropped."""
    return answer(calls.debug_simulate_encoded_softmax, stream, r,
                  Dropout(dropout_p, philox_seed_ptr, philox_offset1, philox_offset2))


def _window(is_causal):
    return CAUSAL if is_causal else None


def _compact(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k):
    return Varlen(VARLEN_COMPACT, cu_seqlens_q, cu_seqlens_k, max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k)
