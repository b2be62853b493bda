// Flash attention.
#ifndef AOTRITON_FLASH_H_
#define AOTRITON_FLASH_H_

#include <aotriton/config.h>
#include <aotriton/runtime.h>
#include <aotriton/util.h>
#include <aotriton/v2/flash.h>

namespace AOTRITON_NS::v2::flash {

// hipSuccess if the library serves the stream's GPU: it knows the arch and has an intact pack for
// it. Cheap after the first success.
AOTRITON_API hipError_t check_gpu(AOTRITON_NS::Stream stream);

}  // namespace AOTRITON_NS::v2::flash

namespace AOTRITON_NS::v3::flash {

using T4 = AOTRITON_NS::TensorView<4>;
using T2 = AOTRITON_NS::TensorView<2>;
using T1 = AOTRITON_NS::TensorView<1>;
using T0 = AOTRITON_NS::TensorView<0>;

struct CausalType {
  static constexpr int8_t None = 0;               // every key is kept; the windows are not read
  static constexpr int8_t WindowedAttention = 3;  // keys m - window_left <= n <= m + window_right are kept
};

// In place of a window's number; resolved for each sequence.
struct WindowValue {
  static constexpr int32_t TopLeftAligned = -2147483647;
  static constexpr int32_t BottomRightAligned = -2147483646;
};

struct VarlenType {
  static constexpr int8_t None = 0;
  static constexpr int8_t CompactVarlen = 1;
  static constexpr int8_t PaddedVarlen = 2;
  static constexpr int8_t StridedVarlen = 3;
};

// Fields marked "must be null" or "must be 0" are for what this library does not do yet: a call
// that sets them is refused with hipErrorNotSupported.
struct attn_fwd_params {
  T4 Q;                                 // (batch, num_head_q, seqlen_q, head_dim_qk), last stride 1
  T4 K;                                 // (batch, num_head_k, seqlen_k, head_dim_qk)
  T4 V;                                 // (batch, num_head_k, seqlen_k, head_dim_vo)
  T4 B;                                 // bias; must be null
  T2 A;                                 // alibi slopes; must be null
  float Sm_scale = 0;
  T2 L;                                 // logsumexp, (batch * num_head_q, seqlen_q), fp32, contiguous; may be null
  T4 Out;                               // (batch, num_head_q, seqlen_q, head_dim_vo)
  T1 cu_seqlens_q;                      // must be null
  T1 cu_seqlens_k;                      // must be null
  int32_t Max_seqlen_q = 0;             // of variable lengths; not read
  int32_t Max_seqlen_k = 0;
  T1 seq_strides_q;                     // must be null
  T1 seq_strides_k;                     // must be null
  float dropout_p = 0;                  // must be 0
  T0 philox_seed_ptr;                   // not touched while dropout_p is 0, like the next four
  T0 philox_offset1;
  uint64_t philox_offset2 = 0;
  T0 philox_seed_output;
  T0 philox_offset_output;
  T4 encoded_softmax;                   // must be null
  T0 persistent_atomic_counter;         // not used
  int8_t causal_type = CausalType::None;
  int8_t varlen_type = VarlenType::None;  // must be None
  int32_t window_left = 0;
  int32_t window_right = 0;

  static constexpr int32_t kVersion = 3;

  // Always inline, so that no caller exports it: it would take the place of the library's own,
  // which older callers import to construct their smaller struct (api/v3/params.cc).
#if defined(_WIN32)
  attn_fwd_params() {}
#else
  __attribute__((always_inline)) attn_fwd_params() {}
#endif
};

struct attn_options {
  int force_backend_index = -1;  // -1: the library chooses; 0: Triton
  bool deterministic = false;    // for the backward
};

// Out = softmax(Sm_scale * Q K^T, masked) V. params_version is attn_fwd_params::kVersion; the
// structs of AOTriton 0.10 and 0.11 (version 1) are accepted too. A refusal writes nothing, and
// aotriton_last_error() (aotriton/aotriton.h) says why.
AOTRITON_API hipError_t attn_fwd(const attn_fwd_params& params,
                                 int32_t params_version,
                                 AOTRITON_NS::Stream stream,
                                 const attn_options* options = nullptr);

}  // namespace AOTRITON_NS::v3::flash

#endif  // AOTRITON_FLASH_H_
