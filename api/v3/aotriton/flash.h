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

// Writes the random numbers that decide on attn_fwd's dropout into r, (batch, num_head_q, seqlen_q,
// seqlen_k): the words themselves (int32), or numbers in [0, 1) (fp32) of which those greater than
// dropout_p are kept. Seed and offset are numbers of the host.
AOTRITON_API hipError_t debug_fill_dropout_rng(AOTRITON_NS::TensorView<4> r,
                                               uint64_t philox_seed,
                                               uint64_t philox_offset,
                                               AOTRITON_NS::Stream stream);

}  // namespace AOTRITON_NS::v2::flash

namespace AOTRITON_NS::v3::flash {

using T4 = AOTRITON_NS::TensorView<4>;
using T2 = AOTRITON_NS::TensorView<2>;
using T1 = AOTRITON_NS::TensorView<1>;
using T0 = AOTRITON_NS::TensorView<0>;
#if AOTRITON_INTERNAL_RELEASE >= 11
using LT2 = AOTRITON_NS::LazyTensor<2>;
using LT4 = AOTRITON_NS::LazyTensor<4>;
#endif

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
#if AOTRITON_INTERNAL_RELEASE >= 14
struct VarlenStacked {
  static constexpr uint8_t BHSD = 0;  // each in its entry of the batch
  static constexpr uint8_t THD = 1;   // all in the rows of the only entry
};
struct VarlenLength {
  static constexpr uint8_t MAX = 0;         // each has all rows
  static constexpr uint8_t CUMULATIVE = 1;  // i has seqinfo_0[i + 1] - seqinfo_0[i] rows
  static constexpr uint8_t INDIVIDUAL = 2;  // not supported
};
struct VarlenPosition {
  static constexpr uint8_t IMPLIED = 0;  // i begins at the first row of its entry
  static constexpr uint8_t REUSE = 1;    // at row seqinfo_0[i]
  static constexpr uint8_t ARRAY = 2;    // at row seqinfo_1[i]
};
struct VarlenLseLayout {
  static constexpr uint8_t HT = 0;
  static constexpr uint8_t TH = 1;  // not supported
};

struct VarlenMode {
  uint8_t stacked : 1;
  uint8_t length : 2;
  uint8_t position : 2;
  uint8_t reserved : 3;
};

// Supported are, for queries and keys alike: BHSD and MAX (all zeros); BHSD, CUMULATIVE and IMPLIED;
// and THD, CUMULATIVE with either REUSE or ARRAY.
struct alignas(4) VarlenBits {
  VarlenMode qmode;
  VarlenMode kmode;
  uint16_t lse_layout : 2;
  uint16_t reserved : 14;
};
#else
struct VarlenType {
  static constexpr int8_t None = 0;           // each is an entry of the batch; if cu_seqlens_q is given: CompactVarlen
  static constexpr int8_t CompactVarlen = 1;  // batch is 1; i is the rows cu_seqlens[i] to cu_seqlens[i + 1]
  static constexpr int8_t PaddedVarlen = 2;   // batch is N; i is the first cu_seqlens[i + 1] - cu_seqlens[i] rows of entry i
#if AOTRITON_INTERNAL_RELEASE >= 12
  static constexpr int8_t StridedVarlen = 3;  // batch is 1; i is that many rows from row seq_strides[i] on
#endif
};
#endif

// The structs are those of the release that the library claims to be; it accepts those of all
// releases. aotriton/aotriton.h says more about what the arguments mean.
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
#if AOTRITON_INTERNAL_RELEASE >= 14
  T1 seqinfo_q0;                        // lengths: (N + 1), int32; "cu_seqlens" in texts
  T1 seqinfo_k0;
#else
  T1 cu_seqlens_q;                      // (N + 1), int32
  T1 cu_seqlens_k;
#endif
  int32_t Max_seqlen_q = 0;             // read with varlen; 0: not known, the rows of Q then
  int32_t Max_seqlen_k = 0;
#if AOTRITON_INTERNAL_RELEASE >= 14
  T1 seqinfo_q1;                        // positions: (N) or (N + 1), int32, with ARRAY; "seq_starts" in texts
  T1 seqinfo_k1;
#elif AOTRITON_INTERNAL_RELEASE >= 12
  T1 seq_strides_q;                     // (N) or (N + 1), int32: the first rows, with StridedVarlen; "seq_starts" in texts
  T1 seq_strides_k;
#endif
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
#if AOTRITON_INTERNAL_RELEASE < 14
  int8_t varlen_type = VarlenType::None;
#endif
  int32_t window_left = 0;
  int32_t window_right = 0;
#if AOTRITON_INTERNAL_RELEASE >= 14
  VarlenBits varlen_bits = {};          // read if seqinfo_q0 or seqinfo_k0 is given
#endif

#if AOTRITON_INTERNAL_RELEASE >= 14
  static constexpr int32_t kVersion = 4;
#elif AOTRITON_INTERNAL_RELEASE >= 12
  static constexpr int32_t kVersion = 3;
#else
  static constexpr int32_t kVersion = 1;
#endif

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
#if AOTRITON_INTERNAL_RELEASE >= 11
  mutable LT2 D;                        // workspace, shape and dtype of L. Acquired once if the split backend runs, and
                                        // disposed of once its launches are enqueued
#else
  T2 D;                                 // workspace, shape and dtype of L
#endif
#if AOTRITON_INTERNAL_RELEASE >= 14
  T1 seqinfo_q0;
  T1 seqinfo_k0;
#else
  T1 cu_seqlens_q;
  T1 cu_seqlens_k;
#endif
  int32_t Max_seqlen_q = 0;
  int32_t Max_seqlen_k = 0;
#if AOTRITON_INTERNAL_RELEASE >= 14
  T1 seqinfo_q1;
  T1 seqinfo_k1;
#elif AOTRITON_INTERNAL_RELEASE >= 12
  T1 seq_strides_q;
  T1 seq_strides_k;
#endif
  float dropout_p = 0;
  T0 philox_seed_ptr;
  T0 philox_offset1;
  uint64_t philox_offset2 = 0;
  int8_t causal_type = CausalType::None;
#if AOTRITON_INTERNAL_RELEASE < 14
  int8_t varlen_type = VarlenType::None;
#endif
  int32_t window_left = 0;
  int32_t window_right = 0;
#if AOTRITON_INTERNAL_RELEASE >= 11
  mutable LT4 DQ_ACC;                   // not used
#endif
#if AOTRITON_INTERNAL_RELEASE >= 14
  VarlenBits varlen_bits = {};
#endif

#if AOTRITON_INTERNAL_RELEASE >= 14
  static constexpr int32_t kVersion = 7;
#elif AOTRITON_INTERNAL_RELEASE >= 12
  static constexpr int32_t kVersion = 6;
#elif AOTRITON_INTERNAL_RELEASE == 11
  static constexpr int32_t kVersion = 3;
#else
  static constexpr int32_t kVersion = 1;
#endif

  // As that of attn_fwd_params.
#if defined(_WIN32)
  attn_bwd_params() {}
#else
  __attribute__((always_inline)) attn_bwd_params() {}
#endif
};

// For attn_fwd there are
//   0  triton: takes every call
//   1  hopper: on sm_90, what AOTRITON_FWD_HOPPER of aotriton/aotriton.h says; runs where it is faster
// For attn_bwd there are
//   0  split: three launches, with D between them; what runs if there is a D
//   1  fused: one launch, head_dim up to 256; what runs if there is no D
// Both are deterministic.
struct attn_options {
#if AOTRITON_INTERNAL_RELEASE >= 11
  int force_backend_index = -1;  // -1: the library chooses
#endif
#if AOTRITON_INTERNAL_RELEASE >= 12
  bool deterministic = false;    // nothing changes: all backends are
#endif
};

// Out = softmax(Sm_scale * Q K^T + B, masked) V. params_version is attn_fwd_params::kVersion, of
// whatever release the caller was built with: 1 (AOTriton 0.10, 0.11), 3 (0.12, 0.13) or 4 (0.14).
// Version 1 reads no options, and its L is in base 2 if the library claims 0.10 or an older release.
// A refusal writes nothing, and aotriton_last_error() (aotriton/aotriton.h) says why.
AOTRITON_API hipError_t attn_fwd(const attn_fwd_params& params,
                                 int32_t params_version,
                                 AOTRITON_NS::Stream stream,
                                 const attn_options* options = nullptr);

// The gradients. params_version is attn_bwd_params::kVersion: 1 (0.10), 3 (0.11), 6 (0.12, 0.13) or
// 7 (0.14). Version 1 is as that of attn_fwd.
AOTRITON_API hipError_t attn_bwd(const attn_bwd_params& params,
                                 int32_t params_version,
                                 AOTRITON_NS::Stream stream,
                                 const attn_options* options = nullptr);

}  // namespace AOTRITON_NS::v3::flash

#endif  // AOTRITON_FLASH_H_
