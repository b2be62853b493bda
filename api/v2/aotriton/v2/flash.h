// The functions of AOTriton 0.9 to 0.11. The guard has upstream's name: callers that want only
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

// Out = softmax(sm_scale * q k^T) v. is_causal: query m sees the keys 0 to m. softmax_lse may be
// null; the philox scalars are not read while dropout_p is 0; the counter is not used. A refusal
// writes nothing, and aotriton_last_error() (aotriton/aotriton.h) says why.
AOTRITON_API hipError_t attn_fwd(T4 q,    // (batch, num_head_q, seqlen_q, head_dim_qk)
                                 T4 k,    // (batch, num_head_k, seqlen_k, head_dim_qk)
                                 T4 v,    // (batch, num_head_k, seqlen_k, head_dim_vo)
                                 T4 b,    // bias; must be null
                                 float sm_scale,
                                 T2 softmax_lse,  // (batch * num_head_q, seqlen_q), fp32, contiguous
                                 T4 Out,          // (batch, num_head_q, seqlen_q, head_dim_vo)
                                 float dropout_p,
                                 T0 philox_seed,
                                 T0 philox_offset1,
                                 int64_t philox_offset2,
                                 T0 philox_seed_output,
                                 T0 philox_offset_output,
                                 T4 encoded_softmax,  // must be null
                                 bool is_causal,
                                 T0 atomic_for_causal,
                                 AOTRITON_NS::Stream stream,
                                 FwdExtraArguments* extargs = nullptr);

}  // namespace AOTRITON_NS::v2::flash

#endif  // AOTRITON_V2_API_FLASH_ATTN_H
