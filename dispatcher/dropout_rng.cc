#include "dispatcher/dropout_rng.h"

#include "dispatcher/checks.h"
#include "dispatcher/text.h"

namespace aotriton::dispatcher {

Status Validate(const DropoutRng& op) {
  if (op.tensor.data != nullptr && op.tensor.dtype != kFloat32 && op.tensor.dtype != kInt32) {
    return Status(kNotSupported, Text("random has dtype ", op.tensor.dtype, "; supported are fp32 (1) and int32 (12)"));
  }
  Tensor t = op.tensor;
  t.dtype = kFloat32;  // as large as int32, which no other tensor may be
  return CheckTensor({"random", t}, Access::kWritten, LastStride::kAny);
}

bool IsEmpty(const DropoutRng& op) { return !HasElements(op.tensor); }

}  // namespace aotriton::dispatcher
