#include "dispatcher/attn_fwd.h"

#include "dispatcher/encoded_softmax.h"
#include "dispatcher/text.h"

namespace aotriton::dispatcher {

Status Validate(const AttnFwd& op) {
  if (Status status = ValidateAttention(op, Access::kWritten); !status.ok()) return status;
  if (op.logsumexp.data != nullptr) {
    RowLayout ignored;
    if (Status status = CheckRowNumbers({"logsumexp", op.logsumexp}, op, &ignored); !status.ok()) return status;
  }
  if (op.persistent_counter.data != nullptr && op.is_windowed) {  // else it is not used, and may be anything
    const Scalar& counter = op.persistent_counter;
    if (counter.dtype != kInt32) {
      return Status(kInvalidValue, Text("persistent_counter has dtype ", counter.dtype, "; it must be int32 (12)"));
    }
    if (Status status = CheckElementAligned("persistent_counter", counter.data, kInt32); !status.ok()) return status;
  }
  if (op.backend < FwdBackend::kDefault || op.backend > FwdBackend::kHopper) {
    return Status(kNotSupported, Text("backend is ", static_cast<int32_t>(op.backend), "; it must be 0 (default), 1 (triton) or 2 (hopper)"));
  }
  if (op.encoded_softmax.data == nullptr) return Status();
  if (Status status = Validate(EncodedSoftmax{op.encoded_softmax, op.dropout}); !status.ok()) return status;
  const Extents extents = ExtentsOf(op);
  const int64_t shape[] = {extents.sequences, extents.num_head_q, extents.max_seqlen_q, extents.max_seqlen_k};
  for (int i = 0; i < 4; ++i) {
    if (op.encoded_softmax.sizes[i] == shape[i]) continue;
    return Status(kInvalidValue, Text("encoded_softmax has ", ShapeOf(op.encoded_softmax), "; it must be ", Tuple(shape, 4),
                                      ": sequences, num_head_q, max_seqlen_q, max_seqlen_k"));
  }
  return Status();
}

bool IsEmpty(const AttnFwd& op) { return !HasElements(op.out) || ExtentsOf(op).sequences == 0; }

}  // namespace aotriton::dispatcher
