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

// Writes attn_fwd's dropout mask into r, (batch, num_head_q, seqlen_q, seqlen_k), fp16, bf16 or
// fp32: 0.5 where an element is kept, -0.5 where it is dropped.
AOTRITON_API hipError_t debug_simulate_encoded_softmax(AOTRITON_NS::TensorView<4> r,
                                                       float dropout_p,
                                                       AOTRITON_NS::TensorView<0> philox_seed,
                                                       AOTRITON_NS::TensorView<0> philox_offset1,
                                                       uint64_t philox_offset2,
                                                       AOTRITON_NS::Stream stream);

}  // namespace AOTRITON_NS::v2::flash

namespace AOTRITON_NS::v3::flash {

using T4 = AOTRITON_NS::TensorView<4>;
using T2 = AOTRITON_NS::TensorView<2>;
using T1 = AOTRITON_NS::TensorView<1>;
using T0 = AOTRITON_NS::TensorView<0>;
using LT2 = AOTRITON_NS::LazyTensor<2>;
using LT4 = AOTRITON_NS::LazyTensor<4>;

struct CausalType {
  static constexpr int8_t None = 0;               // every key is kept; the windows are not read
  static constexpr int8_t WindowedAttention = 3;  // keys m - window_left <= n <= m + window_right are kept
};

// In place of a window's number; resolved for each sequence.
struct WindowValue {
  static constexpr int32_t TopLeftAligned = -2147483647;
  static constexpr int32_t BottomRightAligned = -2147483646;
};

// How the N sequences of a batch lie in the tensors.
struct VarlenType {
  static constexpr int8_t None = 0;           // each is an entry of the batch; if cu_seqlens_q is given: CompactVarlen
  static constexpr int8_t CompactVarlen = 1;  // batch is 1; i is the rows cu_seqlens[i] to cu_seqlens[i + 1]
  static constexpr int8_t PaddedVarlen = 2;   // batch is N; i is the first cu_seqlens[i + 1] - cu_seqlens[i] rows of entry i
  static constexpr int8_t StridedVarlen = 3;  // batch is 1; i is that many rows from row seq_strides[i] on
};

// aotriton/aotriton.h says more about what the arguments mean.
struct attn_fwd_params {
  T4 Q;                                 // (batch, num_head_q, seqlen_q, head_dim_qk), last stride 1
  T4 K;                                 // (batch, num_head_k, seqlen_k, head_dim_qk)
  T4 V;                                 // (batch, num_head_k, seqlen_k, head_dim_vo)
  T4 B;                                 // bias, (batch, num_head_q, seqlen_q, seqlen_k), dtype of Q; may be null
  T2 A;                                 // alibi slopes; must be null
  float Sm_scale = 0;
  T2 L;                                 // logsumexp, (batch * num_head_q, seqlen_q), fp32, contiguous; may be null.
                                        // Varlen: (num_head_q, seqlen_q) or (N * num_head_q, Max_seqlen_q)
  T4 Out;                               // (batch, num_head_q, seqlen_q, head_dim_vo)
  T1 cu_seqlens_q;                      // (N + 1), int32
  T1 cu_seqlens_k;
  int32_t Max_seqlen_q = 0;             // read with varlen; 0: not known, the rows of Q then
  int32_t Max_seqlen_k = 0;
  T1 seq_strides_q;                     // (N) or (N + 1), int32: the first rows, with StridedVarlen; "seq_starts" in texts
  T1 seq_strides_k;
  float dropout_p = 0;
  T0 philox_seed_ptr;                   // not touched while dropout_p is 0, like the next four
  T0 philox_offset1;
  uint64_t philox_offset2 = 0;
  T0 philox_seed_output;
  T0 philox_offset_output;
  T4 encoded_softmax;                   // is given the dropout mask, as debug_simulate_encoded_softmax writes it; may be null
  T0 persistent_atomic_counter;         // int32, 0; the call leaves it 0. May be null. With it, a windowed call without
                                        // B and dropout takes tile after tile from it, by as many work groups as run
                                        // at once
  int8_t causal_type = CausalType::None;
  int8_t varlen_type = VarlenType::None;
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

// Fields that attn_fwd_params has too must hold what the forward was given.
struct attn_bwd_params {
  T4 Q;
  T4 K;
  T4 V;
  T4 B;
  float Sm_scale = 0;
  T4 Out;                               // what the forward wrote, like L
  T4 DO;                                // shape of Out
  T4 DK;                                // shape of K
  T4 DV;                                // shape of V
  T4 DQ;                                // shape of Q
  T4 DB;                                // shape of B, no stride 0; may be null
  T2 L;
  mutable LT2 D;                        // workspace, shape and dtype of L. Acquired once if the split backend runs, and
                                        // disposed of once its launches are enqueued
  T1 cu_seqlens_q;
  T1 cu_seqlens_k;
  int32_t Max_seqlen_q = 0;
  int32_t Max_seqlen_k = 0;
  T1 seq_strides_q;
  T1 seq_strides_k;
  float dropout_p = 0;
  T0 philox_seed_ptr;
  T0 philox_offset1;
  uint64_t philox_offset2 = 0;
  int8_t causal_type = CausalType::None;
  int8_t varlen_type = VarlenType::None;
  int32_t window_left = 0;
  int32_t window_right = 0;
  mutable LT4 DQ_ACC;                   // not used

  static constexpr int32_t kVersion = 6;

  // As that of attn_fwd_params.
#if defined(_WIN32)
  attn_bwd_params() {}
#else
  __attribute__((always_inline)) attn_bwd_params() {}
#endif
};

// For attn_fwd there is one backend, 0. For attn_bwd there are
//   0  split: three launches, with D between them; what runs if there is a D
//   1  fused: one launch, head_dim up to 256; what runs if there is no D
// Both are deterministic.
struct attn_options {
  int force_backend_index = -1;  // -1: the library chooses
  bool deterministic = false;    // nothing changes: all backends are
};

// Out = softmax(Sm_scale * Q K^T + B, masked) V. params_version is attn_fwd_params::kVersion; the
// structs of AOTriton 0.10 and 0.11 (version 1) are accepted too. A refusal writes nothing, and
// aotriton_last_error() (aotriton/aotriton.h) says why.
AOTRITON_API hipError_t attn_fwd(const attn_fwd_params& params,
                                 int32_t params_version,
                                 AOTRITON_NS::Stream stream,
                                 const attn_options* options = nullptr);

// The gradients. params_version is attn_bwd_params::kVersion; the structs of AOTriton 0.10
// (version 1) and 0.11 (3) are accepted too.
AOTRITON_API hipError_t attn_bwd(const attn_bwd_params& params,
                                 int32_t params_version,
                                 AOTRITON_NS::Stream stream,
                                 const attn_options* options = nullptr);

}  // namespace AOTRITON_NS::v3::flash

#endif  // AOTRITON_FLASH_H_
