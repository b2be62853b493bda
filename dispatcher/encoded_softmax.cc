#include "dispatcher/encoded_softmax.h"

#include "dispatcher/checks.h"

namespace aotriton::dispatcher {

Status Validate(const EncodedSoftmax& op) {
  Status status = CheckTensor({"encoded_softmax", op.tensor}, Access::kWritten, LastStride::kAny);
  return status.ok() ? ValidateDropout(op.dropout) : status;
}

bool IsEmpty(const EncodedSoftmax& op) { return !HasElements(op.tensor); }

}  // namespace aotriton::dispatcher
