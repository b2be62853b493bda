// The structs of older releases, field for field, and what they are in today's.
#ifndef AOTRITON_API_V3_OLD_PARAMS_H_
#define AOTRITON_API_V3_OLD_PARAMS_H_

#include <aotriton/flash.h>

#include <cstddef>
#include <cstdint>

namespace AOTRITON_NS::v3::flash {

// attn_fwd_params of AOTriton 0.10 and 0.11.
struct FwdParamsV1 {
  T4 Q, K, V, B;
  T2 A;
  float Sm_scale;
  T2 L;
  T4 Out;
  T1 cu_seqlens_q, cu_seqlens_k;
  int32_t Max_seqlen_q, Max_seqlen_k;
  float dropout_p;
  T0 philox_seed_ptr, philox_offset1;
  uint64_t philox_offset2;
  T0 philox_seed_output, philox_offset_output;
  T4 encoded_softmax;
  T0 persistent_atomic_counter;
  int8_t causal_type, varlen_type;
  int32_t window_left, window_right;
};

// attn_bwd_params of AOTriton 0.10 (version 1) with D a tensor, and 0.11 (version 3) with D made by
// callbacks that take the cookie.
template <int Rank>
struct OldLazyTensor {
  void* cookie;
  TensorView<Rank> (*acquire)(void* cookie);
  void (*dispose)(void* cookie);
};

template <typename D_>
struct OldBwdParams {
  T4 Q, K, V, B;
  float Sm_scale;
  T4 Out, DO, DK, DV, DQ, DB;
  T2 L;
  D_ D;
  T1 cu_seqlens_q, cu_seqlens_k;
  int32_t Max_seqlen_q, Max_seqlen_k;
  float dropout_p;
  T0 philox_seed_ptr, philox_offset1;
  uint64_t philox_offset2;
  int8_t causal_type, varlen_type;
  int32_t window_left, window_right;
};

using BwdParamsV1 = OldBwdParams<T2>;

struct BwdParamsV3 : OldBwdParams<OldLazyTensor<2>> {
  OldLazyTensor<4> DQ_ACC;
};

static_assert(sizeof(FwdParamsV1) == 768 && sizeof(attn_fwd_params) == 832, "the layouts of upstream's releases");
static_assert(offsetof(FwdParamsV1, Max_seqlen_k) == 572 && offsetof(attn_fwd_params, Max_seqlen_k) == 572);
static_assert(offsetof(attn_fwd_params, seq_strides_q) == 576 && offsetof(attn_fwd_params, window_right) == 824);
static_assert(sizeof(BwdParamsV1) == 1040 && sizeof(BwdParamsV3) == 1040 && sizeof(attn_bwd_params) == 1232);
static_assert(offsetof(BwdParamsV1, D) == 856 && offsetof(attn_bwd_params, D) == 856);
static_assert(offsetof(attn_bwd_params, seq_strides_q) == 1000 && offsetof(attn_bwd_params, DQ_ACC) == 1128);
static_assert(sizeof(attn_options) == 8);

// Fields that the older struct lacks are null.
inline attn_fwd_params FromOld(const FwdParamsV1& old) {
  attn_fwd_params p;
  p.Q = old.Q;
  p.K = old.K;
  p.V = old.V;
  p.B = old.B;
  p.A = old.A;
  p.Sm_scale = old.Sm_scale;
  p.L = old.L;
  p.Out = old.Out;
  p.cu_seqlens_q = old.cu_seqlens_q;
  p.cu_seqlens_k = old.cu_seqlens_k;
  p.Max_seqlen_q = old.Max_seqlen_q;
  p.Max_seqlen_k = old.Max_seqlen_k;
  p.dropout_p = old.dropout_p;
  p.philox_seed_ptr = old.philox_seed_ptr;
  p.philox_offset1 = old.philox_offset1;
  p.philox_offset2 = old.philox_offset2;
  p.philox_seed_output = old.philox_seed_output;
  p.philox_offset_output = old.philox_offset_output;
  p.encoded_softmax = old.encoded_softmax;
  p.persistent_atomic_counter = old.persistent_atomic_counter;
  p.causal_type = old.causal_type;
  p.varlen_type = old.varlen_type;
  p.window_left = old.window_left;
  p.window_right = old.window_right;
  return p;
}

// All but D.
template <typename D_>
attn_bwd_params FromOldExceptD(const OldBwdParams<D_>& old) {
  attn_bwd_params p;
  p.Q = old.Q;
  p.K = old.K;
  p.V = old.V;
  p.B = old.B;
  p.Sm_scale = old.Sm_scale;
  p.Out = old.Out;
  p.DO = old.DO;
  p.DK = old.DK;
  p.DV = old.DV;
  p.DQ = old.DQ;
  p.DB = old.DB;
  p.L = old.L;
  p.cu_seqlens_q = old.cu_seqlens_q;
  p.cu_seqlens_k = old.cu_seqlens_k;
  p.Max_seqlen_q = old.Max_seqlen_q;
  p.Max_seqlen_k = old.Max_seqlen_k;
  p.dropout_p = old.dropout_p;
  p.philox_seed_ptr = old.philox_seed_ptr;
  p.philox_offset1 = old.philox_offset1;
  p.philox_offset2 = old.philox_offset2;
  p.causal_type = old.causal_type;
  p.varlen_type = old.varlen_type;
  p.window_left = old.window_left;
  p.window_right = old.window_right;
  return p;
}

inline attn_bwd_params FromOld(const BwdParamsV1& old) {
  attn_bwd_params p = FromOldExceptD(old);
  p.D.eager = old.D;
  return p;
}

// The result points to `old`.
inline attn_bwd_params FromOld(const BwdParamsV3& old) {
  using OldLazy = OldLazyTensor<2>;
  attn_bwd_params p = FromOldExceptD<OldLazy>(old);
  if (old.D.cookie == nullptr || old.D.acquire == nullptr) return p;
  p.D.cookie = const_cast<OldLazy*>(&old.D);
  p.D.acquire = [](LT2* self) {
    const auto* lazy = static_cast<const OldLazy*>(self->cookie);
    return lazy->acquire(lazy->cookie);
  };
  if (old.D.dispose == nullptr) return p;
  p.D.dispose = [](LT2* self) {
    const auto* lazy = static_cast<const OldLazy*>(self->cookie);
    lazy->dispose(lazy->cookie);
  };
  return p;
}

}  // namespace AOTRITON_NS::v3::flash

#endif  // AOTRITON_API_V3_OLD_PARAMS_H_
