"""Attention by its plain formula, and the error that the plain formula itself makes.

Torch only and device independent: the CPU tests and the GPU driver share it.
Tensors are (batch, head, seqlen, head_dim), whatever their strides.
"""

import math

import torch

TOP_LEFT_ALIGNED = -2147483647
BOTTOM_RIGHT_ALIGNED = -2147483646


def keep_mask(seqlen_q, seqlen_k, window=None, device="cpu"):
    """[seqlen_q, seqlen_k] bool: m - left <= n <= m + right. window None keeps all."""
    m = torch.arange(seqlen_q, device=device)[:, None]
    n = torch.arange(seqlen_k, device=device)[None, :]
    if window is None:
        return torch.ones(seqlen_q, seqlen_k, dtype=torch.bool, device=device)
    left, right = window
    if left in (TOP_LEFT_ALIGNED, BOTTOM_RIGHT_ALIGNED):
        left = seqlen_q
    if right == TOP_LEFT_ALIGNED:
        right = 0
    elif right == BOTTOM_RIGHT_ALIGNED:
        right = seqlen_k - seqlen_q
    return (n >= m - left) & (n <= m + right)


def attention(q, k, v, sm_scale, window=None, dtype=torch.float64, order=None, *,
              bias=None, keep=None, dropout_p=0.0):
    """Out in dtype and the natural logsumexp; every step is computed in dtype.

    bias: broadcast to (batch, head, seqlen_q, seqlen_k). keep: bool of that shape, what dropout
    keeps (philox.keep_mask). A row that keeps no key has Out 0 and logsumexp +inf.
    order: permutations (of the rows, of the keys, of the columns of Q and K, of those of V), which change
    nothing but the rounding.
    """
    group = q.shape[1] // k.shape[1]
    seen = keep_mask(q.shape[2], k.shape[2], window, q.device)
    if order is not None:
        rows, keys, columns, columns_v = order
        q, k, seen = q[:, :, rows][..., columns], k[:, :, keys][..., columns], seen[rows][:, keys]
        v = v[:, :, keys][..., columns_v]
        whole = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        bias, keep = (x if x is None else x.expand(whole)[:, :, rows][..., keys] for x in (bias, keep))
    q = q.to(dtype)
    k = k.to(dtype).repeat_interleave(group, dim=1)
    v = v.to(dtype).repeat_interleave(group, dim=1)
    scores = torch.matmul(q, k.transpose(2, 3)) * sm_scale
    if bias is not None:
        scores = scores + bias.to(dtype)
    scores = scores.masked_fill(~seen, -math.inf)
    empty = (scores == -math.inf).all(dim=-1, keepdim=True)
    # Filled first, so that the gradient of an empty row is 0 and not NaN.
    scores = scores.masked_fill(empty, 0)
    p = torch.softmax(scores, dim=-1).masked_fill(empty, 0)
    if keep is not None:
        p = torch.where(keep, p * (1 / (1 - dropout_p)), 0)
    out = torch.matmul(p, v)
    lse = torch.logsumexp(scores, dim=-1).masked_fill(empty[..., 0], math.inf)
    if order is not None:
        back = rows.argsort()
        out, lse = out[:, :, back][..., columns_v.argsort()], lse[:, :, back]
    return out, lse


def gradients(q, k, v, do, sm_scale, window=None, dtype=torch.float64, order=None, *,
              bias=None, keep=None, dropout_p=0.0):
    """(dQ, dK, dV, dB) of sum(Out * do), every step in dtype.

    dB is dS, (batch, head, seqlen_q, seqlen_k), however bias is broadcast; None without bias.
    """
    leaves = [x.detach().to(dtype).requires_grad_() for x in (q, k, v)]
    if bias is not None:
        bias = bias.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        leaves.append(bias.detach().to(dtype).clone().requires_grad_())
    with torch.enable_grad():
        out, _ = attention(*leaves[:3], sm_scale, window, dtype, order,
                           bias=leaves[3] if bias is not None else None, keep=keep, dropout_p=dropout_p)
        result = torch.autograd.grad(out, leaves, do.to(dtype))
    return *result, *((None,) if bias is None else ())


def rows_of(tensor, i, cu_seqlens, seq_starts, varlen_type):
    """The view (1, head, length, head_dim) of sequence i (kernels/flash/sequences.py says what the types are)."""
    begin, end = int(cu_seqlens[i]), int(cu_seqlens[i + 1])
    z, first = {1: (0, begin), 2: (i, 0), 3: (0, None)}[varlen_type]
    if first is None:
        first = int(seq_starts[i])
    return tensor[z:z + 1, :, first:first + end - begin]


def largest(difference):
    """The largest absolute value; 0 if there is none."""
    return difference.abs().max().item() if difference.numel() else 0.0


def error(got, want):
    """Largest absolute error; NaN if there is one."""
    return largest(got.double() - want)


def orders(q, k, v):
    """A few orders, for `attention` and `gradients`: of the rows, the keys and both kinds of columns."""
    generator = torch.Generator().manual_seed(0)
    sizes = q.shape[2], k.shape[2], q.shape[3], v.shape[3]
    plain = tuple(torch.arange(size, device=q.device) for size in sizes)
    shuffled = tuple(torch.randperm(size, generator=generator).to(q.device) for size in sizes)
    return plain, tuple(order.flip(0) for order in plain), shuffled


def floor(q, k, v, sm_scale, window=None, measure=largest, **inputs):
    """What the plain formula errs in the precision of its inputs, by `measure`.

    The worst of a few orders of its sums, since the order of a sum is no part of the formula
    and one order is a matter of luck; and at least half a unit in the last place of the
    result, which storing it costs. inputs: bias, keep, dropout_p.
    """
    want, _ = attention(q, k, v, sm_scale, window, **inputs)
    errors = [measure(torch.finfo(q.dtype).eps / 2 * want)]
    for order in orders(q, k, v):
        out, _ = attention(q, k, v, sm_scale, window, q.dtype, order, **inputs)
        errors.append(measure(out.double() - want))
    return max(errors)


def gradient_floors(q, k, v, do, sm_scale, window=None, measure=largest, **inputs):
    """floor() of each of `gradients`: four numbers, the last None without bias."""
    want = gradients(q, k, v, do, sm_scale, window, **inputs)
    runs = [gradients(q, k, v, do, sm_scale, window, q.dtype, order, **inputs) for order in orders(q, k, v)]
    return tuple(
        None if exact is None else
        max([measure(torch.finfo(q.dtype).eps / 2 * exact)] + [measure(run[i].double() - exact) for run in runs])
        for i, exact in enumerate(want))


def stored_out_floors(q, k, v, do, sm_scale, window=None, *, bias=None, keep=None, dropout_p=0.0):
    """What (dQ, dK, dV, dB) err because the backward is given Out as it was stored.

    Delta = rowsum(dO Out) then errs by the roundings of Out, and dS = P (dP - Delta) with it. The plain
    formula never stores Out: where one key has nearly all of a row, its own error is far less.
    """
    q, k, v, do_exact = (x.double() for x in (q, k, v, do))
    group = q.shape[1] // k.shape[1]
    out, lse = attention(q, k, v, sm_scale, window, bias=bias, keep=keep, dropout_p=dropout_p)
    keys = k.repeat_interleave(group, dim=1)
    scores = torch.matmul(q, keys.transpose(2, 3)) * sm_scale + (0.0 if bias is None else bias.double())
    p = torch.exp(scores - lse[..., None]).masked_fill(~keep_mask(q.shape[2], k.shape[2], window, q.device), 0)
    delta = torch.finfo(do.dtype).eps / 2 * (do_exact * out).norm(dim=-1, keepdim=True)
    dq = delta * torch.matmul(p, keys)
    dk_squared = torch.matmul((p * delta).square().transpose(2, 3), q.square())
    dk = dk_squared.view(k.shape[0], k.shape[1], group, *k.shape[2:]).sum(dim=2).sqrt()
    return abs(sm_scale) * largest(dq), abs(sm_scale) * largest(dk), 0.0, largest(p * delta)


def gradient_roundings(q, k, v, do, sm_scale, dropout_p=0.0):
    """Floors of (dQ, dK, dV, dB) where the plain formula errs nothing at all.

    A row of one key has dS = P (dP - Delta) = 0, and the plain formula finds that without an error. A
    kernel that sums dP and Delta apart keeps their rounding, and what storing it next to 0 costs. With
    dropout_p also that of the stored Out, which is then no copy of a row of V.
    """
    if not q.numel() or not k.numel():
        return 0.0, 0.0, 0.0, 0.0
    # dP and Delta each err by about half an eps of |do| |v|, whatever cancels in them; the roundings of Out
    # are independent of each other.
    eps = torch.finfo(torch.float32).eps
    eps += torch.finfo(q.dtype).eps / 2 / math.sqrt(v.shape[3]) if dropout_p else 0.0
    ds = eps * (do.double().norm(dim=-1).max() * v.double().norm(dim=-1).max()).item() / max(1 - dropout_p, 1e-3)
    ds += 2.0**-24 if q.dtype == torch.float16 else 0.0
    rows_of_key = q.shape[2] * (q.shape[1] // k.shape[1])
    return (abs(sm_scale) * largest(k) * ds * math.sqrt(k.shape[2]),
            abs(sm_scale) * largest(q) * ds * math.sqrt(rows_of_key), 0.0, ds)


def floors(q, k, v, sm_scale, window=None, **inputs):
    """The floors of Out and of LSE."""
    _, want_lse = attention(q, k, v, sm_scale, window, **inputs)
    # LSE is fp32 for every input type.
    _, lse = attention(q, k, v, sm_scale, window, torch.float32, **inputs)
    finite = want_lse.isfinite()
    # logsumexp adds to the scores, whose rounding scales with |q| |k| before any cancels.
    largest_score = 0.0
    if q.numel() and k.numel():
        largest_score = abs(sm_scale) * (q.double().norm(dim=-1).max() * k.double().norm(dim=-1).max()).item()
    eps = torch.finfo(torch.float32).eps
    floor_lse = max(error(lse[finite], want_lse[finite]), eps * (1.0 + largest(want_lse[finite]) + largest_score))
    return floor(q, k, v, sm_scale, window, **inputs), floor_lse
