#include <aotriton/flash.h>

#include <exception>

#include "api/common/views.h"
#include "api/v3/params.h"
#include "dispatcher/report.h"
#include "dispatcher/run.h"
#include "dispatcher/text.h"

namespace AOTRITON_NS::v3::flash {
namespace {

namespace api = ::aotriton::api;
namespace dispatcher = ::aotriton::dispatcher;
using dispatcher::Status;

bool IsGiven(const Lengths& lengths) { return lengths.q || lengths.k; }

// A varlen_type. As in upstream, lengths alone ask for compact sequences too.
int32_t TypeOf(int8_t varlen_type, const Lengths& lengths) {
  return varlen_type == dispatcher::kVarlenNone && lengths.q ? int32_t{dispatcher::kVarlenCompact} : varlen_type;
}

void SetArrays(const Lengths& lengths, const T1& starts_q, const T1& starts_k, dispatcher::Varlen* varlen) {
  varlen->cu_seqlens_q = api::Optional(lengths.q);
  varlen->cu_seqlens_k = api::Optional(lengths.k);
  varlen->seq_starts_q = api::Optional(starts_q);
  varlen->seq_starts_k = api::Optional(starts_k);
  if (varlen->type == dispatcher::kVarlenNone) return;  // then callers leave these unset
  varlen->max_seqlen_q = lengths.max_q;
  varlen->max_seqlen_k = lengths.max_k;
}

// Version 4 and 7: two bytes that say it for queries and for keys, then the layout of logsumexp.
Status ReadBits(uint32_t bits, const Lengths& lengths, const Starts& starts, dispatcher::Varlen* varlen) {
  constexpr uint32_t kDense = 0x00, kPadded = 0x02, kCompact = 0x0B, kStrided = 0x13;
  // The constructor that older callers import does not reach the bits, so without lengths they are not read.
  if (!IsGiven(lengths)) bits = 0;
  const uint32_t q = bits & 0xFF, k = bits >> 8 & 0xFF;
  const auto shares_rows = [](uint32_t mode) { return mode == kCompact || mode == kStrided; };
  if (bits >> 16 != 0) {
    return {dispatcher::kNotSupported, dispatcher::Text("varlen_bits has lse_layout ", bits >> 16 & 3, "; it must be 0 (HT), with reserved bits of 0")};
  }
  if (q == kDense && k == kDense) {
    varlen->type = dispatcher::kVarlenNone;
  } else if (q == kPadded && k == kPadded) {
    varlen->type = dispatcher::kVarlenPadded;
  } else if (q == kCompact && k == kCompact) {
    varlen->type = dispatcher::kVarlenCompact;
  } else if (shares_rows(q) && shares_rows(k)) {
    varlen->type = dispatcher::kVarlenStrided;
    SetArrays(lengths, q == kStrided ? starts.q : lengths.q, k == kStrided ? starts.k : lengths.k, varlen);
    return {};
  } else {
    return {dispatcher::kNotSupported, dispatcher::Text("varlen_bits has qmode ", q, " and kmode ", k, "; supported are 0 and 0 (dense), 2 and 2 (padded), and "
                                                        "each of 11 (compact) and 19 (strided) with each. Give lengths as cumulative sums")};
  }
  SetArrays(lengths, starts.q, starts.k, varlen);
  return {};
}

// What the forward and the backward have under the same names.
template <typename Head, typename Tail>
Status ReadCommon(const Head& head, const Tail& tail, dispatcher::Attention* op) {
  if (tail.causal_type != CausalType::None && tail.causal_type != CausalType::WindowedAttention) {
    return {dispatcher::kNotSupported, dispatcher::Text("causal_type is ", int{tail.causal_type},
                                                        "; it must be 0 (None) or 3 (WindowedAttention)")};
  }
  op->q = api::Required(head.Q);
  op->k = api::Required(head.K);
  op->v = api::Required(head.V);
  op->bias = api::Optional(head.B);
  op->out = api::Required(head.Out);
  op->logsumexp = api::RowNumbers(head.L);
  op->sm_scale = head.Sm_scale;
  op->is_windowed = tail.causal_type == CausalType::WindowedAttention;
  if (op->is_windowed) {  // else callers leave the windows unset
    op->window_left = tail.window_left;
    op->window_right = tail.window_right;
  }
  op->dropout = api::ToDropout(tail.dropout_p, tail.philox_seed_ptr, tail.philox_offset1, tail.philox_offset2);
  return {};
}

Status Read(const FwdHead& head, const FwdTail& tail, dispatcher::AttnFwd* op) {
  if (head.A) return {dispatcher::kNotSupported, "A (alibi slopes) is given; this library does not support it: pass a null view"};
  op->encoded_softmax = api::Optional(tail.encoded_softmax);
  op->persistent_counter = api::ToScalar(tail.persistent_atomic_counter);
  Status status = ReadCommon(head, tail, op);
  op->dropout.seed_output = api::ToScalar(tail.philox_seed_output);
  op->dropout.offset_output = api::ToScalar(tail.philox_offset_output);
  return status;
}

Status Read(const BwdHead& head, const BwdTail& tail, dispatcher::AttnBwd* op) {
  op->dout = api::Required(head.DO);
  op->dq = api::Required(head.DQ);
  op->dk = api::Required(head.DK);
  op->dv = api::Required(head.DV);
  op->dbias = api::Optional(head.DB);
  return ReadCommon(head, tail, op);
}

// Of options of 0.11 and later; that all begin with force_backend_index is all that is known of them.
int32_t ForcedBackend(const attn_options* options) {
  return options != nullptr ? *reinterpret_cast<const int32_t*>(options) : -1;
}

Status SetFwdBackend(int32_t index, dispatcher::AttnFwd* op) {
  switch (index) {
    case -1: op->backend = dispatcher::FwdBackend::kDefault; return {};
    case 0: op->backend = dispatcher::FwdBackend::kTriton; return {};
    case 1: op->backend = dispatcher::FwdBackend::kHopper; return {};
  }
  return {dispatcher::kNotSupported,
          dispatcher::Text("force_backend_index is ", index, "; it must be -1 (the library chooses), 0 (triton) or 1 (hopper)")};
}

Status SetBwdBackend(int32_t index, dispatcher::AttnBwd* op) {
  switch (index) {
    case -1: op->backend = dispatcher::BwdBackend::kDefault; return {};
    case 0: op->backend = dispatcher::BwdBackend::kSplit; return {};
    case 1: op->backend = dispatcher::BwdBackend::kFused; return {};
  }
  return {dispatcher::kNotSupported,
          dispatcher::Text("force_backend_index is ", index, "; it must be -1 (the library chooses), 0 (split) or 1 (fused)")};
}

// The caller's D: made when the split backend asks for it, given back at the end of the call.
class Workspace {
 public:
  explicit Workspace(const T2& eager) : eager_(eager) {}
  explicit Workspace(const CookieTensor& lazy) : argument_(lazy.cookie), acquire_(lazy.acquire), dispose_(lazy.dispose) {
    if (lazy.cookie == nullptr) acquire_ = nullptr;
  }
  explicit Workspace(SelfTensor<2>* lazy)
      : eager_(lazy->eager), argument_(lazy), cookie_(&lazy->cookie), acquire_(lazy->acquire), dispose_(lazy->dispose) {
    if (lazy->cookie == nullptr) acquire_ = nullptr;
  }
  ~Workspace() {
    if (!is_acquired_ || dispose_ == nullptr) return;
    try {
      dispose_(argument_);
      if (cookie_ != nullptr) *cookie_ = nullptr;  // as LazyTensor::free() does
    } catch (...) {
      // The launches are enqueued; that the caller cannot take its memory back does not undo them.
    }
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void LendTo(dispatcher::AttnBwd* op) {
    op->delta = api::RowNumbers(eager_);
    if (eager_ || acquire_ == nullptr) return;
    op->acquire_delta = [](void* self, dispatcher::Tensor* delta) { return static_cast<Workspace*>(self)->Acquire(delta); };
    op->delta_source = this;
  }

 private:
  Status Acquire(dispatcher::Tensor* delta) {
    try {
      *delta = api::RowNumbers(acquire_(argument_));
    } catch (const std::exception& error) {
      return {dispatcher::kOutOfMemory, dispatcher::Text("acquire of the lazy tensor D threw: ", error.what())};
    } catch (...) {
      return {dispatcher::kOutOfMemory, "acquire of the lazy tensor D threw"};
    }
    is_acquired_ = true;
    return {};
  }

  const T2 eager_;
  void* const argument_ = nullptr;  // of the callbacks
  void** const cookie_ = nullptr;   // of a tensor that is its own argument
  T2 (*acquire_)(void*) = nullptr;
  void (*const dispose_)(void*) = nullptr;
  bool is_acquired_ = false;
};

Status Launch(const FwdV1& p, Stream stream) {
  dispatcher::AttnFwd op;
  if (Status status = Read(p.head, p.tail, &op); !status.ok()) return status;
  op.lse_base = api::kClaimedLseBase;
  op.varlen.type = TypeOf(p.tail.varlen_type, p.lengths);
  SetArrays(p.lengths, {}, {}, &op.varlen);
  return dispatcher::Run(op, stream.native(), dispatcher::Goal::kLaunch);
}

Status Launch(const FwdV3& p, bool has_bits, const attn_options* options, Stream stream) {
  dispatcher::AttnFwd op;
  Status status = SetFwdBackend(ForcedBackend(options), &op);
  if (status.ok()) status = Read(p.head, p.tail, &op);
  if (status.ok() && has_bits) {
    status = ReadBits(p.tail.varlen_bits, p.lengths, p.starts, &op.varlen);
  } else {
    op.varlen.type = TypeOf(p.tail.varlen_type, p.lengths);
    SetArrays(p.lengths, p.starts.q, p.starts.k, &op.varlen);
  }
  return status.ok() ? dispatcher::Run(op, stream.native(), dispatcher::Goal::kLaunch) : status;
}

Status Launch(dispatcher::AttnBwd* op, Workspace&& workspace, int32_t backend, Stream stream) {
  if (Status status = SetBwdBackend(backend, op); !status.ok()) return status;
  workspace.LendTo(op);
  return dispatcher::Run(*op, stream.native(), dispatcher::Goal::kLaunch);
}

// Versions 1 and 3.
template <typename Params>
Status LaunchOld(const Params& p, dispatcher::LseBase lse_base, int32_t backend, Stream stream) {
  dispatcher::AttnBwd op;
  if (Status status = Read(p.head, p.tail, &op); !status.ok()) return status;
  op.lse_base = lse_base;
  op.varlen.type = TypeOf(p.tail.varlen_type, p.lengths);
  SetArrays(p.lengths, {}, {}, &op.varlen);
  return Launch(&op, Workspace(p.D), backend, stream);
}

// Versions 6 and, with bits, 7.
Status LaunchNew(const BwdV6& p, const uint32_t* bits, const attn_options* options, Stream stream) {
  dispatcher::AttnBwd op;
  Status status = Read(p.head, p.tail, &op);
  if (status.ok() && bits != nullptr) {
    status = ReadBits(*bits, p.lengths, p.starts, &op.varlen);
  } else {
    op.varlen.type = TypeOf(p.tail.varlen_type, p.lengths);
    SetArrays(p.lengths, p.starts.q, p.starts.k, &op.varlen);
  }
  return status.ok() ? Launch(&op, Workspace(&p.D), ForcedBackend(options), stream) : status;
}

template <typename Layout, typename Params>
const Layout& As(const Params& params) {
  return reinterpret_cast<const Layout&>(params);
}

}  // namespace

hipError_t attn_fwd(const attn_fwd_params& params, int32_t params_version, Stream stream, const attn_options* options) {
  return static_cast<hipError_t>(dispatcher::Report([&]() -> Status {
    switch (params_version) {
      // Options of that time have no version, and 1 byte in 0.10: they are not read.
      case 1: return Launch(As<FwdV1>(params), stream);
      case 3: return Launch(As<FwdV3>(params), false, options, stream);
      case 4: return Launch(As<FwdV3>(params), true, options, stream);
    }
    return {dispatcher::kInvalidSymbol, dispatcher::Text("params_version is ", params_version, "; this library knows 1 (AOTriton 0.10 and 0.11), "
                                                         "3 (0.12 and 0.13) and 4 (0.14)")};
  }));
}

hipError_t attn_bwd(const attn_bwd_params& params, int32_t params_version, Stream stream, const attn_options* options) {
  return static_cast<hipError_t>(dispatcher::Report([&]() -> Status {
    switch (params_version) {
      case 1: return LaunchOld(As<BwdV1>(params), api::kClaimedLseBase, -1, stream);  // options: as of attn_fwd
      case 3: return LaunchOld(As<BwdV3>(params), dispatcher::LseBase::kNatural, ForcedBackend(options), stream);
      case 6: return LaunchNew(As<BwdV6>(params), nullptr, options, stream);
      case 7: return LaunchNew(As<BwdV6>(params), &As<BwdV7>(params).varlen_bits, options, stream);
    }
    return {dispatcher::kInvalidSymbol, dispatcher::Text("params_version is ", params_version, "; this library knows 1 (AOTriton 0.10), 3 (0.11), "
                                                         "6 (0.12 and 0.13) and 7 (0.14)")};
  }));
}

}  // namespace AOTRITON_NS::v3::flash
