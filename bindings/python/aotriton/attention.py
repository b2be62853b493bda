"""softmax(sm_scale * Q K^T + bias, masked) V, its gradients, and its dropout mask."""

import ctypes

from aotriton.library import (
    BACKENDS,
    FWD_BACKENDS,
    INVALID_VALUE,
    VARLEN_TYPES,
    WINDOW_TOP_LEFT,
    AotritonError,
    AttnBwdArgs,
    AttnFwdArgs,
    check,
    load,
)
from aotriton.tensors import empty, on_device, pack, pack_counter, pack_scalar, same_device, stream_handle


def attn_fwd(q, k, v, *, out=None, logsumexp=None, encoded_softmax=None, philox_seed_output=None,
             philox_offset_output=None, persistent_counter=None, backend=None, stream=None, **problem):
    """Attention, forward: out = softmax(sm_scale * q k^T + bias, masked) v. Not recorded by autograd.

    Query m keeps key n iff m - left <= n <= m + right. A query that keeps no key gets out 0 and
    logsumexp +inf.

    Args:
      q: (batch, num_head_q, seqlen_q, head_dim_qk), float16, bfloat16 or float32, on a GPU; any
        strides, the last 1.
      k: (batch, num_head_k, seqlen_k, head_dim_qk), dtype of q; num_head_q % num_head_k == 0.
      v: (batch, num_head_k, seqlen_k, head_dim_vo), dtype of q.
      out: (batch, num_head_q, seqlen_q, head_dim_vo), dtype of q, any strides, the last 1, is
        written; None: allocated by torch.
      logsumexp: float32, contiguous, is written with natural logarithms; None: allocated by torch;
        False: not computed. (batch, num_head_q, seqlen_q); where lengths vary
        (N, num_head_q, max_seqlen_q) or, unless padded, (num_head_q, seqlen_q).
      encoded_softmax: see debug_simulate_encoded_softmax; is written if given.
      philox_seed_output, philox_offset_output: tensors of one int64, are written with the seed and
        with offset1 + offset2 if there is dropout.
      persistent_counter: a tensor of one int32, 0, and 0 again after the call; of one call at a time. With
        it, a windowed call without bias and dropout that the backend "triton" takes runs as many work groups
        as fit at once, which take tile after tile from it.
      backend: "triton", which takes every call; "hopper": on sm_90, 16 bits, head dims up to 256, sm_scale above
        0, no bias, no dropout, addresses that are multiples of 16 bytes, strides that are multiples of 8; None:
        hopper if it takes the call and is the faster one.
      stream: an int (hipStream_t, CUstream) or a torch stream; None: torch's current stream of
        q's device if torch is loaded, else the default stream.

    `problem`, for the backward too:
      sm_scale: any finite number, also 0 or negative; default head_dim_qk ** -0.5.
      window: (left, right), ints, negative ones too; either may be WINDOW_TOP_LEFT or
        WINDOW_BOTTOM_RIGHT. None: every key is kept.
      is_causal: the window (WINDOW_TOP_LEFT, WINDOW_TOP_LEFT), i.e. n <= m.
      bias: (batch, num_head_q, seqlen_q, seqlen_k), dtype of q, any strides, also 0.
      dropout_p: the probability that an element of the softmax is dropped, 0 to 1.
      philox_seed, philox_offset1: ints, or tensors of one int64; required with dropout.
      philox_offset2: an int that is added to philox_offset1; default 0.
      varlen: how the N sequences of varying length lie in q, k, v and out. None: they do not vary.
        "compact": batch is 1, one after another. "padded": batch is N, each from row 0 of its entry.
        "strided": batch is 1, sequence i from row seq_starts[i] on.
      cu_seqlens_q, cu_seqlens_k: (N + 1), int32: sums of the lengths before each sequence.
      seq_starts_q, seq_starts_k: (N) or (N + 1), int32; for "strided".
      max_seqlen_q, max_seqlen_k: the longest sequence; default the tensor's size.

    Returns:
      (out, logsumexp); logsumexp is None if it was not computed. The work is enqueued, not done.

    Raises:
      AotritonError: the call was refused, nothing was enqueued; the text says which argument.
      ValueError: both window and is_causal are given; a name in varlen that is not one of the three;
        encoded_softmax without dropout.
    """
    if encoded_softmax is not None and not problem.get("dropout_p"):
        raise ValueError("encoded_softmax is the dropout mask; dropout_p is 0")
    call = _Forward(q, k, v, out, logsumexp, philox_seed_output, philox_offset_output, persistent_counter, stream, backend, **problem)
    if encoded_softmax is not None:
        # Nothing may be enqueued if either is refused, and only the forward can be asked beforehand.
        call.run(load().aotriton_attn_fwd_prepare)
        call.encode(encoded_softmax)
    call.run(load().aotriton_attn_fwd)
    return call.out, call.logsumexp


def supported(q, k, v, *, out=None, logsumexp=None, persistent_counter=None, backend=None, stream=None, **problem):
    """Whether attn_fwd would accept the same arguments.

    Returns:
      None, or the text that says why not. Outputs that are not given are allocated and dropped.
    """
    return _reason(lambda: _Forward(q, k, v, out, logsumexp, None, None, persistent_counter, stream, backend, **problem),
                   "aotriton_attn_fwd_supported")


def prepare(q, k, v, *, out=None, logsumexp=None, persistent_counter=None, backend=None, stream=None, **problem):
    """Loads what attn_fwd with the same arguments needs; enqueues nothing.

    After it, attn_fwd with out and logsumexp given neither loads nor allocates, so it can be
    captured in a graph. Other tensors will do if their shapes, strides and alignment agree.

    Raises:
      AotritonError: attn_fwd would refuse the arguments, or loading failed.
    """
    _Forward(q, k, v, out, logsumexp, None, None, persistent_counter, stream, backend, **problem).run(load().aotriton_attn_fwd_prepare)


def attn_bwd(do, q, k, v, out, logsumexp, *, backend=None, dq=None, dk=None, dv=None, dbias=False, delta=None,
             stream=None, **problem):
    """The gradients of attn_fwd. The same call gives the same bits each time.

    Args:
      do: the gradient of out: shape and dtype of out, any strides, the last 1.
      q, k, v: what attn_fwd was given.
      out, logsumexp: what it wrote.
      backend: "split" (three launches), "fused" (one launch, head dims up to 256) or None: the
        library chooses.
      dq, dk, dv: shapes and dtype of q, k, v, any strides, the last 1, are written; None: allocated
        by torch.
      dbias: (batch, num_head_q, seqlen_q, seqlen_k), dtype of q, is written; True: allocated by
        torch; False: not computed. Sums over the dimensions in which bias was broadcast are the caller's.
      delta: workspace of "split", shape and dtype of logsumexp; None: allocated by torch.
      stream: as for attn_fwd.
      problem: what attn_fwd was given.

    Returns:
      (dq, dk, dv), and dbias as a fourth if it was asked for. The work is enqueued, not done.

    Raises:
      AotritonError, ValueError: as for attn_fwd; also a backend that is not one of the two.
    """
    call = _Backward(do, q, k, v, out, logsumexp, backend, dq, dk, dv, dbias, delta, stream, **problem)
    call.run(load().aotriton_attn_bwd)
    return call.results


def attn_bwd_supported(do, q, k, v, out, logsumexp, *, backend=None, dq=None, dk=None, dv=None, dbias=False,
                       delta=None, stream=None, **problem):
    """Whether attn_bwd would accept the same arguments: None, or the text that says why not."""
    return _reason(
        lambda: _Backward(do, q, k, v, out, logsumexp, backend, dq, dk, dv, dbias, delta, stream, **problem),
        "aotriton_attn_bwd_supported")


def attn_bwd_prepare(do, q, k, v, out, logsumexp, *, backend=None, dq=None, dk=None, dv=None, dbias=False,
                     delta=None, stream=None, **problem):
    """For attn_bwd, what prepare is for attn_fwd."""
    call = _Backward(do, q, k, v, out, logsumexp, backend, dq, dk, dv, dbias, delta, stream, **problem)
    call.run(load().aotriton_attn_bwd_prepare)


def debug_simulate_encoded_softmax(encoded_softmax, *, dropout_p, philox_seed, philox_offset1, philox_offset2=0,
                                   stream=None):
    """Writes attn_fwd's dropout mask: 0.5 where an element is kept, -0.5 where it is dropped.

    Args:
      encoded_softmax: (batch or N, num_head_q, max_seqlen_q, max_seqlen_k), float16, bfloat16 or
        float32, any strides.
      dropout_p, philox_seed, philox_offset1, philox_offset2, stream: as for attn_fwd.
    """
    device = same_device(encoded_softmax=encoded_softmax)
    seed, _keep_seed = pack_scalar("philox_seed", philox_seed, device)
    offset, _keep_offset = pack_scalar("philox_offset1", philox_offset1, device)
    handle = stream_handle(stream, device)
    with on_device(device, handle):
        check(load().aotriton_debug_simulate_encoded_softmax(
            pack("encoded_softmax", encoded_softmax), dropout_p, seed, offset, philox_offset2 % 2**64, handle))


def debug_fill_dropout_rng(random, *, philox_seed, philox_offset, stream=None):
    """Writes the random numbers that decide on attn_fwd's dropout.

    Args:
      random: (batch or N, num_head_q, max_seqlen_q, max_seqlen_k), any strides: int32, for the words themselves,
        or float32, for numbers in [0, 1): those greater than dropout_p are kept (aotriton.h: all but one in 2**25).
      philox_seed, philox_offset: ints: the forward's seed and its offset1 + offset2.
      stream: as for attn_fwd.
    """
    device = same_device(random=random)
    handle = stream_handle(stream, device)
    with on_device(device, handle):
        check(load().aotriton_debug_fill_dropout_rng(
            pack("random", random), philox_seed % 2**64, philox_offset % 2**64, handle))


def dropout_mask(seed, offset, dropout_p, batch, num_head_q, max_seqlen_q, max_seqlen_k):
    """The dropout mask, computed on the host.

    Args:
      seed, offset: ints: the forward's seed and its offset1 + offset2.
      batch: number of sequences.

    Returns:
      bytearray of batch * num_head_q * max_seqlen_q * max_seqlen_k bytes: 1 is kept, 0 dropped.
    """
    keep = ctypes.create_string_buffer(max(batch * num_head_q * max_seqlen_q * max_seqlen_k, 1))
    check(load().aotriton_dropout_mask(
        seed % 2**64, offset % 2**64, dropout_p, batch, num_head_q, max_seqlen_q, max_seqlen_k, keep))
    return bytearray(keep.raw[: batch * num_head_q * max_seqlen_q * max_seqlen_k])


def _reason(make_call, function):
    try:
        make_call().run(getattr(load(), function))
    except AotritonError as error:
        return str(error)
    return None


class _Call:
    """What both directions have in common: the problem in C form, the stream, and the owners of its memory."""

    def _problem(self, q, k, v, *, sm_scale=None, window=None, is_causal=False, bias=None, dropout_p=0.0,
                 philox_seed=None, philox_offset1=None, philox_offset2=0, varlen=None, cu_seqlens_q=None,
                 cu_seqlens_k=None, seq_starts_q=None, seq_starts_k=None, max_seqlen_q=0, max_seqlen_k=0):
        """The fields that both structs have, by name."""
        if is_causal:
            if window is not None:
                raise ValueError(f"is_causal is a window of its own; got window={window} too")
            window = (WINDOW_TOP_LEFT, WINDOW_TOP_LEFT)
        left, right = (0, 0) if window is None else window
        for name, number in (("window left", left), ("window right", right),
                             ("max_seqlen_q", max_seqlen_q), ("max_seqlen_k", max_seqlen_k)):
            if not -(2**31) <= number < 2**31:  # ctypes would wrap it silently
                raise ValueError(f"{name} is {number}; accepted: a 32-bit number")
        self.varlen_type = _choice("varlen", varlen, VARLEN_TYPES)
        self.max_seqlen_q = max_seqlen_q or q.shape[2]
        tensors = {"q": q, "k": k, "v": v, "bias": bias, "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k,
                   "seq_starts_q": seq_starts_q, "seq_starts_k": seq_starts_k}
        # Packed before any output is allocated: a dtype that torch can allocate may still be refused.
        packed = {name: pack(name, tensor) for name, tensor in tensors.items()}
        self.device = same_device(**tensors)
        self.scalars = {"dropout_p": dropout_p, "philox_offset2": philox_offset2 % 2**64}
        self.owners = [tensors]
        if dropout_p:
            self._scalar("philox_seed", philox_seed)
            self._scalar("philox_offset1", philox_offset1)
        if sm_scale is None:
            sm_scale = max(q.shape[-1], 1) ** -0.5
        return {**packed, "sm_scale": sm_scale, "is_windowed": window is not None, "window_left": left,
                "window_right": right, "varlen_type": self.varlen_type, "max_seqlen_q": max_seqlen_q,
                "max_seqlen_k": max_seqlen_k, **self.scalars}

    def _scalar(self, name, scalar):
        self.scalars[name], owner = pack_scalar(name, scalar, self.device)
        self.owners.append(owner)

    def _finish(self, stream, **tensors):
        """Packs the outputs and whatever else only one direction has."""
        self.owners.append(tensors)
        same_device(**self.owners[0], **tensors)
        self.stream = stream_handle(stream, self.device)
        return {name: pack(name, tensor) for name, tensor in tensors.items()}

    def run(self, function):
        with on_device(self.device, self.stream):
            check(function(self.args, self.stream))


class _Forward(_Call):
    def __init__(self, q, k, v, out, logsumexp, philox_seed_output, philox_offset_output, persistent_counter, stream,
                 backend=None, **problem):
        fields = self._problem(q, k, v, **problem)
        if out is None:
            out = empty((*q.shape[:-1], v.shape[-1]), q)
        if logsumexp is None:
            logsumexp = empty(self._logsumexp_shape(q), q, "float32")
        elif logsumexp is False:
            logsumexp = None
        self.out, self.logsumexp = out, logsumexp
        if problem.get("dropout_p"):
            self._scalar("philox_seed_output", philox_seed_output)
            self._scalar("philox_offset_output", philox_offset_output)
        self.scalars["backend"] = _choice("backend", backend, FWD_BACKENDS)
        self.scalars["persistent_counter"] = pack_counter("persistent_counter", persistent_counter)
        fields.update(self._finish(stream, out=out, logsumexp=logsumexp))
        self.owners.append(persistent_counter)
        self.args = AttnFwdArgs(struct_size=ctypes.sizeof(AttnFwdArgs), **{**fields, **self.scalars})

    def _logsumexp_shape(self, q):
        if self.varlen_type == VARLEN_TYPES["padded"]:
            return q.shape[0], q.shape[1], self.max_seqlen_q
        return q.shape[1:3] if self.varlen_type else q.shape[:3]

    def encode(self, encoded_softmax):
        """Fills encoded_softmax with the dropout mask of this call, which attn_fwd accepts."""
        q, k, cu_seqlens_q = (self.owners[0][name] for name in ("q", "k", "cu_seqlens_q"))
        sequences = cu_seqlens_q.shape[0] - 1 if self.varlen_type else q.shape[0]
        shape = (sequences, q.shape[1], self.max_seqlen_q, self.args.max_seqlen_k or k.shape[2])
        if tuple(encoded_softmax.shape) != shape:
            raise AotritonError(INVALID_VALUE, f"encoded_softmax has sizes {tuple(encoded_softmax.shape)}; it must be "
                                f"{shape}: sequences, num_head_q, max_seqlen_q, max_seqlen_k")
        packed = pack("encoded_softmax", encoded_softmax)
        with on_device(self.device, self.stream):
            check(load().aotriton_debug_simulate_encoded_softmax(
                packed, self.args.dropout_p, self.args.philox_seed, self.args.philox_offset1,
                self.args.philox_offset2, self.stream))


class _Backward(_Call):
    def __init__(self, do, q, k, v, out, logsumexp, backend, dq, dk, dv, dbias, delta, stream, **problem):
        fields = self._problem(q, k, v, **problem)
        fields["backend"] = _choice("backend", backend, BACKENDS)
        dq, dk, dv = (empty(tuple(like.shape), like) if given is None else given
                      for given, like in ((dq, q), (dk, k), (dv, v)))
        if dbias is True:
            dbias = empty((q.shape[0], q.shape[1], q.shape[2], k.shape[2]), q)
        elif dbias is False:
            dbias = None
        if delta is None and backend != "fused" and logsumexp is not None:
            delta = empty(tuple(logsumexp.shape), logsumexp)
        self.results = (dq, dk, dv) if dbias is None else (dq, dk, dv, dbias)
        fields.update(self._finish(stream, out=out, logsumexp=logsumexp, dout=do, dq=dq, dk=dk, dv=dv, dbias=dbias,
                                   delta=delta))
        self.args = AttnBwdArgs(struct_size=ctypes.sizeof(AttnBwdArgs), **{**fields, **self.scalars})


def _choice(name, value, choices):
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; accepted: " + ", ".join(map(repr, choices)))
    return choices[value]
