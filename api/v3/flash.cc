#include <aotriton/flash.h>

#include <exception>

#include "api/common/views.h"
#include "api/v3/old_params.h"
#include "dispatcher/report.h"
#include "dispatcher/run.h"
#include "dispatcher/text.h"

namespace AOTRITON_NS::v3::flash {
namespace {

namespace api = ::aotriton::api;
namespace dispatcher = ::aotriton::dispatcher;
using dispatcher::Status;

// What both structs have under the same names.
template <typename Params>
Status ReadCommon(const Params& p, dispatcher::Attention* op) {
  if (p.causal_type != CausalType::None && p.causal_type != CausalType::WindowedAttention) {
    return {dispatcher::kNotSupported, dispatcher::Text("causal_type is ", int{p.causal_type},
                                                        "; it must be 0 (None) or 3 (WindowedAttention)")};
  }
  op->q = api::Required(p.Q);
  op->k = api::Required(p.K);
  op->v = api::Required(p.V);
  op->bias = api::Optional(p.B);
  op->out = api::Required(p.Out);
  op->logsumexp = api::RowNumbers(p.L);
  op->sm_scale = p.Sm_scale;
  op->is_windowed = p.causal_type == CausalType::WindowedAttention;
  if (op->is_windowed) {  // else callers leave the windows unset
    op->window_left = p.window_left;
    op->window_right = p.window_right;
  }
  // As in upstream, cu_seqlens_q alone asks for variable lengths too.
  const bool is_compact = p.varlen_type == VarlenType::None && p.cu_seqlens_q;
  op->varlen.type = is_compact ? VarlenType::CompactVarlen : p.varlen_type;
  op->varlen.cu_seqlens_q = api::Optional(p.cu_seqlens_q);
  op->varlen.cu_seqlens_k = api::Optional(p.cu_seqlens_k);
  op->varlen.seq_starts_q = api::Optional(p.seq_strides_q);
  op->varlen.seq_starts_k = api::Optional(p.seq_strides_k);
  if (op->varlen.type != VarlenType::None) {  // else callers leave these unset
    op->varlen.max_seqlen_q = p.Max_seqlen_q;
    op->varlen.max_seqlen_k = p.Max_seqlen_k;
  }
  op->dropout = api::ToDropout(p.dropout_p, p.philox_seed_ptr, p.philox_offset1, p.philox_offset2);
  return {};
}

Status Read(const attn_fwd_params& p, const attn_options* options, dispatcher::AttnFwd* op) {
  if (p.A) return {dispatcher::kNotSupported, "A (alibi slopes) is given; this library does not support it: pass a null view"};
  if (options != nullptr && options->force_backend_index != -1 && options->force_backend_index != 0) {
    return {dispatcher::kNotSupported, dispatcher::Text("force_backend_index is ", options->force_backend_index,
                                                        "; it must be -1 (the library chooses) or 0 (Triton)")};
  }
  op->encoded_softmax = api::Optional(p.encoded_softmax);
  op->persistent_counter = api::ToScalar(p.persistent_atomic_counter);
  Status status = ReadCommon(p, op);
  op->dropout.seed_output = api::ToScalar(p.philox_seed_output);
  op->dropout.offset_output = api::ToScalar(p.philox_offset_output);
  return status;
}

Status Read(const attn_bwd_params& p, const attn_options* options, dispatcher::AttnBwd* op) {
  switch (options != nullptr ? options->force_backend_index : -1) {
    case -1: op->backend = dispatcher::BwdBackend::kDefault; break;
    case 0: op->backend = dispatcher::BwdBackend::kSplit; break;
    case 1: op->backend = dispatcher::BwdBackend::kFused; break;
    default:
      return {dispatcher::kNotSupported, dispatcher::Text("force_backend_index is ", options->force_backend_index,
                                                          "; it must be -1 (the library chooses), 0 (split) or 1 (fused)")};
  }
  op->dout = api::Required(p.DO);
  op->dq = api::Required(p.DQ);
  op->dk = api::Required(p.DK);
  op->dv = api::Required(p.DV);
  op->dbias = api::Optional(p.DB);
  return ReadCommon(p, op);
}

// The caller's D: made when the split backend asks for it, given back at the end of the call.
class Workspace {
 public:
  explicit Workspace(LT2* lazy) : lazy_(lazy) {}
  ~Workspace() {
    try {
      if (is_acquired_) lazy_->free();
    } catch (...) {
      // The launches are enqueued; that the caller cannot take its memory back does not undo them.
    }
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void LendTo(dispatcher::AttnBwd* op) {
    op->delta = api::RowNumbers(lazy_->eager);
    if (lazy_->eager || !*lazy_) return;
    op->acquire_delta = [](void* self, dispatcher::Tensor* delta) { return static_cast<Workspace*>(self)->Acquire(delta); };
    op->delta_source = this;
  }

 private:
  Status Acquire(dispatcher::Tensor* delta) {
    try {
      *delta = api::RowNumbers(lazy_->acquire(lazy_));
    } catch (const std::exception& error) {
      return {dispatcher::kOutOfMemory, dispatcher::Text("acquire of the lazy tensor D threw: ", error.what())};
    } catch (...) {
      return {dispatcher::kOutOfMemory, "acquire of the lazy tensor D threw"};
    }
    is_acquired_ = true;
    return {};
  }

  LT2* const lazy_;
  bool is_acquired_ = false;
};

Status Launch(const attn_fwd_params& params, const attn_options* options, Stream stream) {
  dispatcher::AttnFwd op;
  Status status = Read(params, options, &op);
  return status.ok() ? dispatcher::Run(op, stream.native(), dispatcher::Goal::kLaunch) : status;
}

Status Launch(const attn_bwd_params& params, const attn_options* options, Stream stream) {
  dispatcher::AttnBwd op;
  if (Status status = Read(params, options, &op); !status.ok()) return status;
  Workspace workspace(&params.D);
  workspace.LendTo(&op);
  return dispatcher::Run(op, stream.native(), dispatcher::Goal::kLaunch);
}

}  // namespace

hipError_t attn_fwd(const attn_fwd_params& params, int32_t params_version, Stream stream, const attn_options* options) {
  return static_cast<hipError_t>(dispatcher::Report([&]() -> Status {
    switch (params_version) {
      case attn_fwd_params::kVersion: return Launch(params, options, stream);
      // Options of that time have no version, and 1 byte in 0.10: they are not read.
      case 1: return Launch(FromOld(reinterpret_cast<const FwdParamsV1&>(params)), nullptr, stream);
    }
    return {dispatcher::kInvalidSymbol, dispatcher::Text("params_version is ", params_version, "; this library knows 1 (AOTriton 0.10 and 0.11) and ",
                                                         int{attn_fwd_params::kVersion}, " (0.12 and 0.13)")};
  }));
}

hipError_t attn_bwd(const attn_bwd_params& params, int32_t params_version, Stream stream, const attn_options* options) {
  return static_cast<hipError_t>(dispatcher::Report([&]() -> Status {
    switch (params_version) {
      case attn_bwd_params::kVersion: return Launch(params, options, stream);
      // The options of 0.11 end behind force_backend_index, which is all that is read of them; those
      // of 0.10 have 1 byte.
      case 3: return Launch(FromOld(reinterpret_cast<const BwdParamsV3&>(params)), options, stream);
      case 1: return Launch(FromOld(reinterpret_cast<const BwdParamsV1&>(params)), nullptr, stream);
    }
    return {dispatcher::kInvalidSymbol, dispatcher::Text("params_version is ", params_version, "; this library knows 1 (AOTriton 0.10), 3 (0.11) and ",
                                                         int{attn_bwd_params::kVersion}, " (0.12 and 0.13)")};
  }));
}

}  // namespace AOTRITON_NS::v3::flash
