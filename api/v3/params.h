// The structs of all releases, by layout. Callers of any release hand theirs over with a version;
// the header's own struct is that of the release that this build claims to be.
#ifndef AOTRITON_API_V3_PARAMS_H_
#define AOTRITON_API_V3_PARAMS_H_

#include <aotriton/util.h>

#include <cstddef>
#include <cstdint>

namespace AOTRITON_NS::v3::flash {

using T4 = TensorView<4>;
using T2 = TensorView<2>;
using T1 = TensorView<1>;
using T0 = TensorView<0>;

// The runs of fields that the layouts are made of.
struct FwdHead {
  T4 Q, K, V, B;
  T2 A;
  float Sm_scale;
  T2 L;
  T4 Out;
};

struct BwdHead {
  T4 Q, K, V, B;
  float Sm_scale;
  T4 Out, DO, DK, DV, DQ, DB;
  T2 L;
};

struct Lengths {
  T1 q, k;  // cu_seqlens; seqinfo 0
  int32_t max_q, max_k;
};

struct Starts {
  T1 q, k;  // seq_strides; seqinfo 1
};

struct FwdTail {
  float dropout_p;
  T0 philox_seed_ptr, philox_offset1;
  uint64_t philox_offset2;
  T0 philox_seed_output, philox_offset_output;
  T4 encoded_softmax;
  T0 persistent_atomic_counter;
  int8_t causal_type, varlen_type;
  int32_t window_left, window_right;
  uint32_t varlen_bits;  // from version 4 on
};

struct BwdTail {
  float dropout_p;
  T0 philox_seed_ptr, philox_offset1;
  uint64_t philox_offset2;
  int8_t causal_type, varlen_type;
  int32_t window_left, window_right;
};

// LazyTensor of 0.11, whose callbacks take the cookie.
struct CookieTensor {
  void* cookie;
  T2 (*acquire)(void* cookie);
  void (*dispose)(void* cookie);
};

// LazyTensor since 0.12, whose callbacks take itself.
template <int Rank>
struct SelfTensor {
  void* cookie;
  TensorView<Rank> (*acquire)(void* self);
  void (*dispose)(void* self);
  TensorView<Rank> eager;
};

// attn_fwd_params of 0.10 and 0.11; of 0.12 and 0.13 (version 3) and 0.14 (4).
struct FwdV1 {
  FwdHead head;
  Lengths lengths;
  FwdTail tail;
};

struct FwdV3 {
  FwdHead head;
  Lengths lengths;
  Starts starts;
  FwdTail tail;
};

// attn_bwd_params of 0.10; of 0.11; of 0.12 and 0.13; of 0.14.
struct BwdV1 {
  BwdHead head;
  T2 D;
  Lengths lengths;
  BwdTail tail;
};

struct BwdV3 {
  BwdHead head;
  CookieTensor D;
  Lengths lengths;
  BwdTail tail;
  CookieTensor DQ_ACC;
};

struct BwdV6 {
  BwdHead head;
  mutable SelfTensor<2> D;
  Lengths lengths;
  Starts starts;
  BwdTail tail;
  SelfTensor<4> DQ_ACC;
};

struct BwdV7 {
  BwdV6 v6;
  uint32_t varlen_bits;
};

static_assert(sizeof(FwdV1) == 768 && sizeof(FwdV3) == 832, "the layouts of upstream's releases");
static_assert(offsetof(FwdV1, lengths) == 504 && offsetof(FwdV1, tail) == 576 && offsetof(FwdV3, tail) == 640);
static_assert(offsetof(FwdTail, window_right) == 184 && offsetof(FwdTail, varlen_bits) == 188);
static_assert(sizeof(BwdV1) == 1040 && sizeof(BwdV3) == 1040 && sizeof(BwdV6) == 1232 && sizeof(BwdV7) == 1240);
static_assert(offsetof(BwdV1, D) == 856 && offsetof(BwdV1, tail) == 976 && offsetof(BwdV3, tail) == 952);
static_assert(offsetof(BwdV6, starts) == 1000 && offsetof(BwdV6, tail) == 1064 && offsetof(BwdV6, DQ_ACC) == 1128);

}  // namespace AOTRITON_NS::v3::flash

#endif  // AOTRITON_API_V3_PARAMS_H_
