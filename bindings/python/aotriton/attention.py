"""softmax(sm_scale * Q K^T, masked) V."""

import ctypes

from aotriton.library import WINDOW_TOP_LEFT, AotritonError, AttnFwdArgs, check, load
from aotriton.tensors import empty, on_device, pack, same_device, stream_handle


def attn_fwd(q, k, v, *, sm_scale=None, window=None, is_causal=False, out=None, logsumexp=None, stream=None):
    """Attention, forward: out = softmax(sm_scale * q k^T, masked) v. Not recorded by autograd.

    Query m keeps key n iff m - left <= n <= m + right. A query that keeps no key gets out 0 and
    logsumexp +inf.

    Args:
      q: (batch, num_head_q, seqlen_q, head_dim_qk), float16, bfloat16 or float32, on a GPU; any
        strides, the last 1.
      k: (batch, num_head_k, seqlen_k, head_dim_qk), dtype of q; num_head_q % num_head_k == 0.
      v: (batch, num_head_k, seqlen_k, head_dim_vo), dtype of q.
      sm_scale: any finite number, also 0 or negative; default head_dim_qk ** -0.5.
      window: (left, right), ints, negative ones too; either may be WINDOW_TOP_LEFT or
        WINDOW_BOTTOM_RIGHT. None: every key is kept.
      is_causal: the window (WINDOW_TOP_LEFT, WINDOW_TOP_LEFT), i.e. n <= m.
      out: (batch, num_head_q, seqlen_q, head_dim_vo), dtype of q, any strides, the last 1, is
        written; None: allocated by torch.
      logsumexp: (batch, num_head_q, seqlen_q), float32, contiguous, is written with natural
        logarithms; None: allocated by torch; False: not computed.
      stream: an int (hipStream_t, CUstream) or a torch stream; None: torch's current stream of
        q's device if torch is loaded, else the default stream.

    Returns:
      (out, logsumexp); logsumexp is None if it was not computed. The work is enqueued, not done.

    Raises:
      AotritonError: the call was refused, nothing was enqueued; the text says which argument.
      ValueError: both window and is_causal are given.
    """
    call = _Call(q, k, v, sm_scale, window, is_causal, out, logsumexp, stream)
    call.run(load().aotriton_attn_fwd)
    return call.out, call.logsumexp


def supported(q, k, v, *, sm_scale=None, window=None, is_causal=False, out=None, logsumexp=None, stream=None):
    """Whether attn_fwd would accept the same arguments.

    Returns:
      None, or the text that says why not. Outputs that are not given are allocated and dropped.
    """
    try:
        call = _Call(q, k, v, sm_scale, window, is_causal, out, logsumexp, stream)
        call.run(load().aotriton_attn_fwd_supported)
    except AotritonError as error:
        return str(error)
    return None


def prepare(q, k, v, *, sm_scale=None, window=None, is_causal=False, out=None, logsumexp=None, stream=None):
    """Loads what attn_fwd with the same arguments needs; enqueues nothing.

    After it, attn_fwd with out and logsumexp given neither loads nor allocates, so it can be
    captured in a graph. Other tensors will do if their shapes, strides and alignment agree.

    Raises:
      AotritonError: attn_fwd would refuse the arguments, or loading failed.
    """
    _Call(q, k, v, sm_scale, window, is_causal, out, logsumexp, stream).run(load().aotriton_attn_fwd_prepare)


class _Call:
    """One call's arguments in C form, its stream, and the tensors that keep its memory alive."""

    def __init__(self, q, k, v, sm_scale, window, is_causal, out, logsumexp, stream):
        if is_causal:
            if window is not None:
                raise ValueError(f"is_causal is a window of its own; got window={window} too")
            window = (WINDOW_TOP_LEFT, WINDOW_TOP_LEFT)
        left, right = (0, 0) if window is None else window
        for name, bound in (("left", left), ("right", right)):
            if not -(2**31) <= bound < 2**31:  # ctypes would wrap it silently
                raise ValueError(f"window {name} is {bound}; accepted: a 32-bit number")
        # q, k, v first: a dtype that torch can allocate may still be one that is refused.
        packed = pack("q", q), pack("k", k), pack("v", v)
        if out is None:
            out = empty((*q.shape[:-1], v.shape[-1]), q)
        if logsumexp is None:
            logsumexp = empty(q.shape[:-1], q, "float32")
        elif logsumexp is False:
            logsumexp = None
        if sm_scale is None:
            sm_scale = max(q.shape[-1], 1) ** -0.5
        self.out = out
        self.logsumexp = logsumexp
        self.device = same_device(q=q, k=k, v=v, out=out, logsumexp=logsumexp)
        self.stream = stream_handle(stream, self.device)
        self.args = AttnFwdArgs(
            ctypes.sizeof(AttnFwdArgs), window is not None, *packed, pack("out", out),
            pack("logsumexp", logsumexp), sm_scale, left, right)

    def run(self, function):
        with on_device(self.device, self.stream):
            check(function(self.args, self.stream))
