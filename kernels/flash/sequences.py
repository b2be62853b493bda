"""Where the rows of a sequence lie.

varlen_type 0: sequence i is batch i of (batch, head, seqlen, head_dim); there are no arrays.
1, compact: all sequences lie one after another in (1, head, total, head_dim), i at the rows
   cu_seqlens[i] to cu_seqlens[i + 1].
2, padded: sequence i is the first cu_seqlens[i + 1] - cu_seqlens[i] rows of batch i.
3, strided: like compact, with the same lengths, but sequence i starts at row seq_starts[i].
"""

import triton
import triton.language as tl

COMPACT = tl.constexpr(1)
STRIDED = tl.constexpr(3)


@triton.jit
def sequence(index, max_seqlen, cu_seqlens, seq_starts, varlen_type):
    """(z, first row, length) of sequence index: int64, int64, int32.

    Arrays that varlen_type does not use may be null.
    """
    varlen = varlen_type != 0
    begin = tl.load(cu_seqlens + index, mask=varlen, other=0)
    end = tl.load(cu_seqlens + index + 1, mask=varlen, other=max_seqlen)
    start = tl.load(seq_starts + index, mask=varlen_type == STRIDED, other=0)
    start = tl.where(varlen_type == COMPACT, begin, start)
    z = tl.where((varlen_type == COMPACT) | (varlen_type == STRIDED), 0, index)
    return z.to(tl.int64), start.to(tl.int64), end - begin
