"""The operators of the v3 API. What each field means stands in aotriton/flash.h."""

from aotriton.library import BACKENDS, FWD_BACKENDS

from pyaotriton import calls
from pyaotriton.calls import VARLEN_COMPACT, VARLEN_NONE, Dropout, Refusal, Varlen, answer
from pyaotriton.lazy_tensor import LT2, NO_DELTA, NO_DQ_ACC
from pyaotriton.runtime import hipError_t
from pyaotriton.views import T0, T1, T2, T4

_CAUSAL_NONE, _CAUSAL_WINDOWED = 0, 3


class _Params:
    """Fields that can be set, and no others: a wrong name is an AttributeError."""

    _FIELDS = {}
    kVersion = 0

    def __init__(self):
        for name, default in self._FIELDS.items():
            object.__setattr__(self, name, default)

    def __setattr__(self, name, value):
        if name not in self._FIELDS:
            raise AttributeError(f"{type(self).__name__} has no field {name}; accepted: {', '.join(self._FIELDS)}")
        object.__setattr__(self, name, value)


_VARLEN = {"cu_seqlens_q": T1(), "cu_seqlens_k": T1(), "Max_seqlen_q": 0, "Max_seqlen_k": 0, "seq_strides_q": T1(),
           "seq_strides_k": T1()}
_DROPOUT = {"dropout_p": 0.0, "philox_seed_ptr": T0(), "philox_offset1": T0(), "philox_offset2": 0}
_MASK = {"causal_type": _CAUSAL_NONE, "varlen_type": VARLEN_NONE, "window_left": 0, "window_right": 0}


class attn_fwd_params(_Params):  # noqa: N801, its name in C++
    kVersion = 3
    _FIELDS = {"Q": T4(), "K": T4(), "V": T4(), "B": T4(), "Sm_scale": 0.0, "L": T2(), "Out": T4(), **_VARLEN, **_DROPOUT,
               "philox_seed_output": T0(), "philox_offset_output": T0(), "encoded_softmax": T4(),
               "persistent_atomic_counter": T0(), **_MASK}


class attn_bwd_params(_Params):  # noqa: N801, its name in C++
    """D: a T2, or one of lazy_tensor."""

    kVersion = 6
    _FIELDS = {"Q": T4(), "K": T4(), "V": T4(), "B": T4(), "Sm_scale": 0.0, "Out": T4(), "DO": T4(), "DK": T4(), "DV": T4(),
               "DQ": T4(), "DB": T4(), "L": T2(), "D": NO_DELTA, **_VARLEN, **_DROPOUT, **_MASK, "DQ_ACC": NO_DQ_ACC}


class attn_options(_Params):  # noqa: N801, its name in C++
    """force_backend_index: -1, the library chooses; of attn_bwd: 0 split, 1 fused. Both are deterministic."""

    _FIELDS = {"force_backend_index": -1, "deterministic": False}


def attn_fwd(params, params_version, stream=None, options=None):
    return answer(_attn_fwd, params, params_version, stream, options)


def attn_bwd(params, params_version, stream=None, options=None):
    return answer(_attn_bwd, params, params_version, stream, options)


def _attn_fwd(params, params_version, stream, options):
    _check_version(params_version, {1: "AOTriton 0.10 and 0.11", attn_fwd_params.kVersion: "0.12 and 0.13"})
    backend = _backend(options, {-1: None, 0: "triton", 1: "hopper"}, "-1 (the library chooses), 0 (triton) or 1 (hopper)")
    dropout = Dropout(params.dropout_p, params.philox_seed_ptr, params.philox_offset1, params.philox_offset2,
                      params.philox_seed_output, params.philox_offset_output)
    return calls.attn_fwd(stream, params.Q, params.K, params.V, params.B, params.Out, params.L, params.encoded_softmax,
                          params.persistent_atomic_counter, params.Sm_scale, _window(params), _varlen(params), dropout,
                          FWD_BACKENDS[backend])


def _attn_bwd(params, params_version, stream, options):
    _check_version(params_version, {1: "AOTriton 0.10", 3: "0.11", attn_bwd_params.kVersion: "0.12 and 0.13"})
    backend = _backend(options, {-1: None, 0: "split", 1: "fused"}, "-1 (the library chooses), 0 (split) or 1 (fused)")
    dropout = Dropout(params.dropout_p, params.philox_seed_ptr, params.philox_offset1, params.philox_offset2)
    delta, _owner = T2(), None
    if backend != "fused":
        delta, _owner = params.D.acquire() if isinstance(params.D, LT2) else (params.D, None)
    return calls.attn_bwd(stream, params.Q, params.K, params.V, params.B, params.Out, params.L, params.DO, params.DQ,
                          params.DK, params.DV, params.DB, delta, params.Sm_scale, _window(params), _varlen(params), dropout,
                          BACKENDS[backend])


def _check_version(version, known):
    if version not in known:
        names = [f"{number} ({release})" for number, release in known.items()]
        raise Refusal(hipError_t.hipErrorInvalidSymbol,
                      f"params_version is {version}; this library knows {', '.join(names[:-1])} and {names[-1]}")


def _backend(options, names, accepted):
    index = -1 if options is None else options.force_backend_index
    if index not in names:
        raise Refusal(hipError_t.hipErrorNotSupported, f"force_backend_index is {index}; it must be {accepted}")
    return names[index]


def _window(params):
    if params.causal_type not in (_CAUSAL_NONE, _CAUSAL_WINDOWED):
        raise Refusal(hipError_t.hipErrorNotSupported,
                      f"causal_type is {params.causal_type}; it must be 0 (None) or 3 (WindowedAttention)")
    return (params.window_left, params.window_right) if params.causal_type == _CAUSAL_WINDOWED else None


def _varlen(params):
    # As in upstream, cu_seqlens_q alone asks for variable lengths too.
    is_compact = params.varlen_type == VARLEN_NONE and params.cu_seqlens_q
    return Varlen(VARLEN_COMPACT if is_compact else params.varlen_type, params.cu_seqlens_q, params.cu_seqlens_k,
                  params.seq_strides_q, params.seq_strides_k, params.Max_seqlen_q, params.Max_seqlen_k)
