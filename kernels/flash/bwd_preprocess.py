"""Flash attention, backward: Delta = rowsum(Out * dO), in fp32 (bwd_common.py says what for).

One program makes Delta of BLOCK_M queries of one head. A row without keys has Out = 0.
"""

import triton
import triton.language as tl

from kernels.flash.sequences import sequence
from kernels.flash.tiles import load_pieces, row_dot


@triton.jit
def bwd_preprocess(
    Out, DO,  # (batch, num_head_q, row, head_dim_vo); the head_dim stride is 1
    Delta,  # fp32, laid out like L: attn_fwd.py
    stride_oz, stride_oh, stride_om,  # in elements, int64
    stride_doz, stride_doh, stride_dom,
    stride_lz, stride_lh,
    num_head_q, max_seqlen_q,
    cu_seqlens_q, seq_starts_q, varlen_type,  # sequences.py
    head_dim_vo,  # columns in use; read if GENERAL
    lse_compact,
    HEAD_DIM: tl.constexpr,
    GENERAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    num_tiles = tl.cdiv(max_seqlen_q, BLOCK_M)
    program = tl.program_id(0)
    head = ((program // num_tiles) % num_head_q).to(tl.int64)
    index = program // num_tiles // num_head_q
    z, row_0, seqlen_q = sequence(index, max_seqlen_q, cu_seqlens_q, seq_starts_q, varlen_type)
    rows = (program % num_tiles) * BLOCK_M + tl.arange(0, BLOCK_M)
    row_ok = rows < seqlen_q
    Out += z * stride_oz + head * stride_oh + row_0 * stride_om
    DO += z * stride_doz + head * stride_doh + row_0 * stride_dom
    Delta += index.to(tl.int64) * stride_lz + head * stride_lh + tl.where(lse_compact != 0, row_0, 0)
    out = load_pieces(Out, rows, stride_om, row_ok, head_dim_vo, HEAD_DIM, True, GENERAL)
    do = load_pieces(DO, rows, stride_dom, row_ok, head_dim_vo, HEAD_DIM, True, GENERAL)
    tl.store(Delta + rows, row_dot(out, do), mask=row_ok)
