// The functions of AOTriton 0.8 to 0.11. The guard has upstream's name: callers that want only
// the newer functions define it before they include aotriton/flash.h.
#ifndef AOTRITON_V2_API_FLASH_ATTN_H
#define AOTRITON_V2_API_FLASH_ATTN_H

#include <aotriton/config.h>
#include <aotriton/runtime.h>
#include <aotriton/util.h>

namespace AOTRITON_NS::v2 {

// Tuning hooks; none in this library.
struct CppTune {};

}  // namespace AOTRITON_NS::v2

namespace AOTRITON_NS::v2::flash {

using T4 = AOTRITON_NS::TensorView<4>;
using T2 = AOTRITON_NS::TensorView<2>;
using T1 = AOTRITON_NS::TensorView<1>;
using T0 = AOTRITON_NS::TensorView<0>;

struct FwdExtraArguments : public CppTune {};
struct BwdExtraArguments : public CppTune {};
struct FusedBwdExtraArguments : public CppTune {};

// Of all functions: a refusal writes nothing, and aotriton_last_error() (aotriton/aotriton.h) says
// why. What an argument means, and which may be null, stands there too. The philox scalars, int64
// or uint64 in device memory, are not read while dropout_p is not positive.
// atomic_for_causal is what persistent_atomic_counter is in v3.
// softmax_lse is in base 2 if the library claims 0.10 or an older release, else natural.

// Out = softmax(sm_scale * q k^T + b) v. is_causal: query m sees the keys 0 to m.
AOTRITON_API hipError_t attn_fwd(T4 q,    // (batch, num_head_q, seqlen_q, head_dim_qk)
                                 T4 k,    // (batch, num_head_k, seqlen_k, head_dim_qk)
                                 T4 v,    // (batch, num_head_k, seqlen_k, head_dim_vo)
                                 T4 b,    // (batch, num_head_q, seqlen_q, seqlen_k), dtype of q; may be null
                                 float sm_scale,
                                 T2 softmax_lse,  // (batch * num_head_q, seqlen_q), fp32, contiguous; may be null
                                 T4 Out,          // (batch, num_head_q, seqlen_q, head_dim_vo)
                                 float dropout_p,
                                 T0 philox_seed,
                                 T0 philox_offset1,
                                 int64_t philox_offset2,
                                 T0 philox_seed_output,
                                 T0 philox_offset_output,
                                 T4 encoded_softmax,  // (batch, num_head_q, seqlen_q, seqlen_k); may be null
                                 bool is_causal,
#if AOTRITON_INTERNAL_RELEASE >= 9
                                 T0 atomic_for_causal,
#endif
                                 AOTRITON_NS::Stream stream,
                                 FwdExtraArguments* extargs = nullptr);

// The same for sequences that lie one after another: batch is 1, sequence i is the rows
// cu_seqlens[i] to cu_seqlens[i + 1]; int32, one more than there are sequences.
AOTRITON_API hipError_t attn_fwd_compact_varlen(T4 q,
                                                T4 k,
                                                T4 v,
#if AOTRITON_INTERNAL_RELEASE >= 9
                                                T4 b,  // must be null
#endif
                                                T1 cu_seqlens_q,
                                                T1 cu_seqlens_k,
                                                int32_t max_seqlen_q,
                                                int32_t max_seqlen_k,
#if AOTRITON_INTERNAL_RELEASE < 9
                                                T4 b,  // must be null
#endif
                                                float sm_scale,
                                                T2 softmax_lse,  // (sequences * num_head_q, max_seqlen_q) or (num_head_q, rows)
                                                T4 Out,
                                                float dropout_p,
                                                T0 philox_seed,
                                                T0 philox_offset1,
                                                int64_t philox_offset2,
                                                T0 philox_seed_output,
                                                T0 philox_offset_output,
                                                T4 encoded_softmax,  // (sequences, num_head_q, max_seqlen_q, max_seqlen_k)
                                                bool is_causal,
#if AOTRITON_INTERNAL_RELEASE >= 9
                                                T0 atomic_for_causal,
#endif
                                                AOTRITON_NS::Stream stream,
                                                FwdExtraArguments* extargs = nullptr);

// The gradients of attn_fwd, in three launches.
AOTRITON_API hipError_t attn_bwd(T4 q,
                                 T4 k,
                                 T4 v,
                                 T4 b,
                                 float sm_scale,
                                 T4 out,
                                 T4 dout,
                                 T4 dq,
                                 T4 dk,
                                 T4 dv,
                                 T4 db,  // may be null; no stride may be 0
                                 T2 softmax_lse,
                                 T2 delta,  // workspace of softmax_lse's shape and dtype
                                 float dropout_p,
                                 T0 philox_seed,
                                 T0 philox_offset1,
                                 int64_t philox_offset2,
                                 bool is_causal,
                                 AOTRITON_NS::Stream stream,
                                 BwdExtraArguments* extargs = nullptr);

// The same in one launch, without the workspace.
AOTRITON_API hipError_t attn_bwd_fused(T4 q,
                                       T4 k,
                                       T4 v,
                                       T4 b,
                                       float sm_scale,
                                       T4 out,
                                       T4 dout,
                                       T4 dq,
                                       T4 dk,
                                       T4 dv,
                                       T4 db,
                                       T2 softmax_lse,
                                       float dropout_p,
                                       T0 philox_seed,
                                       T0 philox_offset1,
                                       int64_t philox_offset2,
                                       bool is_causal,
                                       AOTRITON_NS::Stream stream,
                                       FusedBwdExtraArguments* extargs = nullptr);

// The gradients of attn_fwd_compact_varlen.
AOTRITON_API hipError_t attn_bwd_compact_varlen(T4 q,
                                                T4 k,
                                                T4 v,
                                                T1 cu_seqlens_q,
                                                T1 cu_seqlens_k,
                                                int32_t max_seqlen_q,
                                                int32_t max_seqlen_k,
                                                T4 b,  // must be null, like db
                                                float sm_scale,
                                                T4 out,
                                                T4 dout,
                                                T4 dq,
                                                T4 dk,
                                                T4 dv,
                                                T4 db,
                                                T2 softmax_lse,
                                                T2 delta,
                                                float dropout_p,
                                                T0 philox_seed,
                                                T0 philox_offset1,
                                                int64_t philox_offset2,
                                                bool is_causal,
                                                AOTRITON_NS::Stream stream,
                                                BwdExtraArguments* extargs = nullptr);

}  // namespace AOTRITON_NS::v2::flash

#endif  // AOTRITON_V2_API_FLASH_ATTN_H
