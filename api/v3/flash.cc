#include <aotriton/flash.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "api/common/views.h"
#include "dispatcher/report.h"
#include "dispatcher/run.h"
#include "dispatcher/text.h"

namespace AOTRITON_NS::v3::flash {
namespace {

namespace api = ::aotriton::api;
namespace dispatcher = ::aotriton::dispatcher;

// The struct of AOTriton 0.10 and 0.11, field for field.
struct ParamsV1 {
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

static_assert(sizeof(ParamsV1) == 768 && sizeof(attn_fwd_params) == 832, "the layouts of upstream's releases");
static_assert(offsetof(ParamsV1, Max_seqlen_k) == 572 && offsetof(attn_fwd_params, Max_seqlen_k) == 572);
static_assert(offsetof(attn_fwd_params, seq_strides_q) == 576 && offsetof(attn_fwd_params, window_right) == 824);
static_assert(sizeof(attn_options) == 8);

// Of version 1, where this library's struct has fields more: they are null.
attn_fwd_params FromV1(const ParamsV1& v1) {
  attn_fwd_params p;
  p.Q = v1.Q;
  p.K = v1.K;
  p.V = v1.V;
  p.B = v1.B;
  p.A = v1.A;
  p.Sm_scale = v1.Sm_scale;
  p.L = v1.L;
  p.Out = v1.Out;
  p.cu_seqlens_q = v1.cu_seqlens_q;
  p.cu_seqlens_k = v1.cu_seqlens_k;
  p.dropout_p = v1.dropout_p;
  p.encoded_softmax = v1.encoded_softmax;
  p.causal_type = v1.causal_type;
  p.varlen_type = v1.varlen_type;
  p.window_left = v1.window_left;
  p.window_right = v1.window_right;
  return p;
}

dispatcher::Status Read(const attn_fwd_params& p, const attn_options* options, dispatcher::AttnFwd* op) {
  struct Absent {
    const char* name;
    const void* data;
  };
  for (const Absent& absent : {Absent{"B (bias)", p.B.data_ptr()}, Absent{"A (alibi slopes)", p.A.data_ptr()},
                               Absent{"cu_seqlens_q", p.cu_seqlens_q.data_ptr()},
                               Absent{"cu_seqlens_k", p.cu_seqlens_k.data_ptr()},
                               Absent{"seq_strides_q", p.seq_strides_q.data_ptr()},
                               Absent{"seq_strides_k", p.seq_strides_k.data_ptr()},
                               Absent{"encoded_softmax", p.encoded_softmax.data_ptr()}}) {
    dispatcher::Status status = api::RequireNull(absent.name, absent.data);
    if (!status.ok()) return status;
  }
  if (dispatcher::Status status = api::RequireNoDropout(p.dropout_p); !status.ok()) return status;
  if (p.varlen_type != VarlenType::None) {
    return {dispatcher::kNotSupported, dispatcher::Text("varlen_type is ", int{p.varlen_type},
                                                        "; this library does not support variable lengths yet: it must be 0 (None)")};
  }
  if (p.causal_type != CausalType::None && p.causal_type != CausalType::WindowedAttention) {
    return {dispatcher::kNotSupported, dispatcher::Text("causal_type is ", int{p.causal_type},
                                                        "; it must be 0 (None) or 3 (WindowedAttention)")};
  }
  if (options != nullptr && options->force_backend_index != -1 && options->force_backend_index != 0) {
    return {dispatcher::kNotSupported, dispatcher::Text("force_backend_index is ", options->force_backend_index,
                                                        "; it must be -1 (the library chooses) or 0 (Triton)")};
  }
  op->q = api::Required(p.Q);
  op->k = api::Required(p.K);
  op->v = api::Required(p.V);
  op->out = api::Required(p.Out);
  op->logsumexp = api::Logsumexp(p.L);
  op->sm_scale = p.Sm_scale;
  op->is_windowed = p.causal_type == CausalType::WindowedAttention;
  if (op->is_windowed) {  // else callers leave the windows unset
    op->window_left = p.window_left;
    op->window_right = p.window_right;
  }
  return {};
}

}  // namespace

hipError_t attn_fwd(const attn_fwd_params& params, int32_t params_version, Stream stream, const attn_options* options) {
  return static_cast<hipError_t>(dispatcher::Report([&]() -> dispatcher::Status {
    dispatcher::AttnFwd op;
    dispatcher::Status status;
    if (params_version == attn_fwd_params::kVersion) {
      status = Read(params, options, &op);
    } else if (params_version == 1) {
      // Options of that time have no version, and 1 byte in 0.10: they are not read.
      status = Read(FromV1(reinterpret_cast<const ParamsV1&>(params)), nullptr, &op);
    } else {
      status = {dispatcher::kInvalidSymbol, dispatcher::Text("params_version is ", params_version, "; this library knows 1 (AOTriton 0.10 and 0.11) and ",
                                                             int{attn_fwd_params::kVersion}, " (0.12 and 0.13)")};
    }
    return status.ok() ? dispatcher::Run(op, stream.native(), dispatcher::Goal::kLaunch) : status;
  }));
}

}  // namespace AOTRITON_NS::v3::flash
