#include <aotriton/flash.h>

#include "api/common/views.h"
#include "dispatcher/gpus.h"
#include "dispatcher/report.h"
#include "dispatcher/run.h"

namespace AOTRITON_NS::v2::flash {
namespace {

namespace api = ::aotriton::api;
namespace dispatcher = ::aotriton::dispatcher;

template <typename Op>
hipError_t Launch(const Op& op, Stream stream) {
  return static_cast<hipError_t>(
      dispatcher::Report([&] { return dispatcher::Run(op, stream.native(), dispatcher::Goal::kLaunch); }));
}

dispatcher::Attention ToAttention(const T4& q, const T4& k, const T4& v, const T4& b, float sm_scale, const T2& softmax_lse,
                                  const T4& out, bool is_causal, const dispatcher::Dropout& dropout) {
  dispatcher::Attention op;
  op.q = api::Required(q);
  op.k = api::Required(k);
  op.v = api::Required(v);
  op.bias = api::Optional(b);
  op.out = api::Required(out);
  op.logsumexp = api::RowNumbers(softmax_lse);
  op.lse_base = api::kClaimedLseBase;
  op.sm_scale = sm_scale;
  op.is_windowed = is_causal;
  op.window_left = dispatcher::kWindowTopLeft;
  op.window_right = dispatcher::kWindowTopLeft;
  op.dropout = dropout;
  return op;
}

dispatcher::Varlen Compact(const T1& cu_seqlens_q, const T1& cu_seqlens_k, int32_t max_seqlen_q, int32_t max_seqlen_k) {
  dispatcher::Varlen varlen;
  varlen.type = dispatcher::kVarlenCompact;
  varlen.cu_seqlens_q = api::Optional(cu_seqlens_q);
  varlen.cu_seqlens_k = api::Optional(cu_seqlens_k);
  varlen.max_seqlen_q = max_seqlen_q;
  varlen.max_seqlen_k = max_seqlen_k;
  return varlen;
}

dispatcher::AttnFwd Forward(const dispatcher::Attention& attention, const T0& seed_output, const T0& offset_output,
                            const T4& encoded_softmax, const T0& counter) {
  dispatcher::AttnFwd op{attention, api::Optional(encoded_softmax), api::ToScalar(counter)};
  op.dropout.seed_output = api::ToScalar(seed_output);
  op.dropout.offset_output = api::ToScalar(offset_output);
  return op;
}

dispatcher::AttnBwd Backward(const dispatcher::Attention& attention, const T4& dout, const T4& dq, const T4& dk, const T4& dv,
                             const T4& db, dispatcher::BwdBackend backend) {
  dispatcher::AttnBwd op;
  static_cast<dispatcher::Attention&>(op) = attention;
  op.dout = api::Required(dout);
  op.dq = api::Required(dq);
  op.dk = api::Required(dk);
  op.dv = api::Required(dv);
  op.dbias = api::Optional(db);
  op.backend = backend;
  return op;
}

}  // namespace

hipError_t check_gpu(Stream stream) {
  return static_cast<hipError_t>(dispatcher::Report([&] {
    // Callers use another implementation when this fails, but ignore what attn_fwd returns. So a
    // GPU without its pack is refused here already. (The packs of the backward are not asked for:
    // an installation for inference may do without them.)
    dispatcher::StreamPlace where;
    const dispatcher::KernelPack* pack = nullptr;
    dispatcher::Status status = dispatcher::Locate(stream.native(), &where);
    return status.ok() ? where.gpu->Find(dispatcher::kAttnFwd, &pack) : status;
  }));
}

// The forward in the signatures of all releases, whichever the header declares. In 0.8 there is no
// counter, and the bias of the second function comes after max_seqlen_k.
AOTRITON_API hipError_t attn_fwd(T4 q, T4 k, T4 v, T4 b, float sm_scale, T2 softmax_lse, T4 Out, float dropout_p, T0 philox_seed,
                                 T0 philox_offset1, int64_t philox_offset2, T0 philox_seed_output, T0 philox_offset_output,
                                 T4 encoded_softmax, bool is_causal, T0 atomic_for_causal, Stream stream, FwdExtraArguments*) {
  const dispatcher::Dropout dropout = api::ToDropout(dropout_p, philox_seed, philox_offset1, philox_offset2);
  return Launch(Forward(ToAttention(q, k, v, b, sm_scale, softmax_lse, Out, is_causal, dropout), philox_seed_output,
                        philox_offset_output, encoded_softmax, atomic_for_causal),
                stream);
}

AOTRITON_API hipError_t attn_fwd(T4 q, T4 k, T4 v, T4 b, float sm_scale, T2 softmax_lse, T4 Out, float dropout_p, T0 philox_seed,
                                 T0 philox_offset1, int64_t philox_offset2, T0 philox_seed_output, T0 philox_offset_output,
                                 T4 encoded_softmax, bool is_causal, Stream stream, FwdExtraArguments* extargs) {
  return attn_fwd(q, k, v, b, sm_scale, softmax_lse, Out, dropout_p, philox_seed, philox_offset1, philox_offset2, philox_seed_output,
                  philox_offset_output, encoded_softmax, is_causal, T0(), stream, extargs);
}

AOTRITON_API hipError_t attn_fwd_compact_varlen(T4 q, T4 k, T4 v, T4 b, T1 cu_seqlens_q, T1 cu_seqlens_k, int32_t max_seqlen_q,
                                                int32_t max_seqlen_k, float sm_scale, T2 softmax_lse, T4 Out, float dropout_p,
                                                T0 philox_seed, T0 philox_offset1, int64_t philox_offset2, T0 philox_seed_output,
                                                T0 philox_offset_output, T4 encoded_softmax, bool is_causal, T0 atomic_for_causal,
                                                Stream stream, FwdExtraArguments*) {
  const dispatcher::Dropout dropout = api::ToDropout(dropout_p, philox_seed, philox_offset1, philox_offset2);
  dispatcher::Attention attention = ToAttention(q, k, v, b, sm_scale, softmax_lse, Out, is_causal, dropout);
  attention.varlen = Compact(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k);
  return Launch(Forward(attention, philox_seed_output, philox_offset_output, encoded_softmax, atomic_for_causal), stream);
}

AOTRITON_API hipError_t attn_fwd_compact_varlen(T4 q, T4 k, T4 v, T1 cu_seqlens_q, T1 cu_seqlens_k, int32_t max_seqlen_q,
                                                int32_t max_seqlen_k, T4 b, float sm_scale, T2 softmax_lse, T4 Out, float dropout_p,
                                                T0 philox_seed, T0 philox_offset1, int64_t philox_offset2, T0 philox_seed_output,
                                                T0 philox_offset_output, T4 encoded_softmax, bool is_causal, Stream stream,
                                                FwdExtraArguments* extargs) {
  return attn_fwd_compact_varlen(q, k, v, b, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, sm_scale, softmax_lse, Out,
                                 dropout_p, philox_seed, philox_offset1, philox_offset2, philox_seed_output, philox_offset_output,
                                 encoded_softmax, is_causal, T0(), stream, extargs);
}

hipError_t attn_bwd(T4 q, T4 k, T4 v, T4 b, float sm_scale, T4 out, T4 dout, T4 dq, T4 dk, T4 dv, T4 db, T2 softmax_lse, T2 delta,
                    float dropout_p, T0 philox_seed, T0 philox_offset1, int64_t philox_offset2, bool is_causal, Stream stream,
                    BwdExtraArguments*) {
  const dispatcher::Dropout dropout = api::ToDropout(dropout_p, philox_seed, philox_offset1, philox_offset2);
  dispatcher::AttnBwd op = Backward(ToAttention(q, k, v, b, sm_scale, softmax_lse, out, is_causal, dropout), dout, dq, dk, dv, db,
                                    dispatcher::BwdBackend::kSplit);
  op.delta = api::RowNumbers(delta);
  return Launch(op, stream);
}

hipError_t attn_bwd_fused(T4 q, T4 k, T4 v, T4 b, float sm_scale, T4 out, T4 dout, T4 dq, T4 dk, T4 dv, T4 db, T2 softmax_lse,
                          float dropout_p, T0 philox_seed, T0 philox_offset1, int64_t philox_offset2, bool is_causal, Stream stream,
                          FusedBwdExtraArguments*) {
  const dispatcher::Dropout dropout = api::ToDropout(dropout_p, philox_seed, philox_offset1, philox_offset2);
  return Launch(Backward(ToAttention(q, k, v, b, sm_scale, softmax_lse, out, is_causal, dropout), dout, dq, dk, dv, db,
                         dispatcher::BwdBackend::kFused),
                stream);
}

hipError_t attn_bwd_compact_varlen(T4 q, T4 k, T4 v, T1 cu_seqlens_q, T1 cu_seqlens_k, int32_t max_seqlen_q, int32_t max_seqlen_k,
                                   T4 b, float sm_scale, T4 out, T4 dout, T4 dq, T4 dk, T4 dv, T4 db, T2 softmax_lse, T2 delta,
                                   float dropout_p, T0 philox_seed, T0 philox_offset1, int64_t philox_offset2, bool is_causal,
                                   Stream stream, BwdExtraArguments*) {
  const dispatcher::Dropout dropout = api::ToDropout(dropout_p, philox_seed, philox_offset1, philox_offset2);
  dispatcher::Attention attention = ToAttention(q, k, v, b, sm_scale, softmax_lse, out, is_causal, dropout);
  attention.varlen = Compact(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k);
  dispatcher::AttnBwd op = Backward(attention, dout, dq, dk, dv, db, dispatcher::BwdBackend::kSplit);
  op.delta = api::RowNumbers(delta);
  return Launch(op, stream);
}

hipError_t debug_simulate_encoded_softmax(T4 r, float dropout_p, T0 philox_seed, T0 philox_offset1, uint64_t philox_offset2,
                                          Stream stream) {
  return Launch(dispatcher::EncodedSoftmax{api::Required(r), api::ToDropout(dropout_p, philox_seed, philox_offset1, philox_offset2)},
                stream);
}

hipError_t debug_fill_dropout_rng(T4 r, uint64_t philox_seed, uint64_t philox_offset, Stream stream) {
  return Launch(dispatcher::DropoutRng{api::Required(r), philox_seed, philox_offset}, stream);
}

}  // namespace AOTRITON_NS::v2::flash
