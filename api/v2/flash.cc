#include <aotriton/flash.h>

#include "api/common/views.h"
#include "dispatcher/gpus.h"
#include "dispatcher/report.h"
#include "dispatcher/run.h"

namespace AOTRITON_NS::v2::flash {

namespace api = ::aotriton::api;
namespace dispatcher = ::aotriton::dispatcher;

hipError_t check_gpu(Stream stream) {
  return static_cast<hipError_t>(dispatcher::Report([&] {
    // Callers use another implementation when this fails, but ignore what attn_fwd returns. So a
    // GPU without its pack is refused here already.
    dispatcher::StreamPlace where;
    const dispatcher::AttnFwdTriton* backend = nullptr;
    dispatcher::Status status = dispatcher::Locate(stream.native(), &where);
    return status.ok() ? where.gpu->AttnFwd(&backend) : status;
  }));
}

hipError_t attn_fwd(T4 q, T4 k, T4 v, T4 b, float sm_scale, T2 softmax_lse, T4 Out, float dropout_p, T0, T0, int64_t, T0, T0,
                    T4 encoded_softmax, bool is_causal, T0, Stream stream, FwdExtraArguments*) {
  return static_cast<hipError_t>(dispatcher::Report([&] {
    dispatcher::Status status = api::RequireNull("b (bias)", b.data_ptr());
    if (status.ok()) status = api::RequireNoDropout(dropout_p);
    if (status.ok()) status = api::RequireNull("encoded_softmax", encoded_softmax.data_ptr());
    if (!status.ok()) return status;
    dispatcher::AttnFwd op;
    op.q = api::Required(q);
    op.k = api::Required(k);
    op.v = api::Required(v);
    op.out = api::Required(Out);
    op.logsumexp = api::Logsumexp(softmax_lse);
    op.sm_scale = sm_scale;
    op.is_windowed = is_causal;
    op.window_left = dispatcher::kWindowTopLeft;
    op.window_right = dispatcher::kWindowTopLeft;
    return dispatcher::Run(op, stream.native(), dispatcher::Goal::kLaunch);
  }));
}

}  // namespace AOTRITON_NS::v2::flash
