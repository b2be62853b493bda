#include "dispatcher/attn_bwd.h"

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

Status CheckLike(const Named& n, const Named& like, Access access) {
  Status status = CheckTensor(n, access);
  if (status.ok()) status = CheckDType(n, like.tensor.dtype, like.name);
  for (int i = 0; i < 4 && status.ok(); ++i) status = CheckSize(n, i, like.tensor.sizes[i], like.name);
  return status;
}

Status CheckDbias(const AttnBwd& op) {
  if (op.dbias.data == nullptr) return Status();
  if (op.bias.data == nullptr) {
    return Status(kInvalidValue, "dbias is given, and bias is null; pass the bias of the forward, or a null dbias");
  }
  const Named dbias{"dbias", op.dbias};
  Status status = CheckTensor(dbias, Access::kWritten, LastStride::kAny);
  return status.ok() ? CheckScoresLike(dbias, op) : status;
}

}  // namespace

BwdBackend BackendOf(const AttnBwd& op) {
  if (op.backend != BwdBackend::kDefault) return op.backend;
  return op.delta.data != nullptr || op.acquire_delta != nullptr ? BwdBackend::kSplit : BwdBackend::kFused;
}

Status ValidateDelta(const AttnBwd& op) {
  RowLayout of_logsumexp, of_delta;
  Status status = CheckRowNumbers({"logsumexp", op.logsumexp}, op, &of_logsumexp);
  if (status.ok()) status = CheckRowNumbers({"delta", op.delta}, op, &of_delta);
  if (!status.ok() || of_logsumexp.is_compact == of_delta.is_compact) return status;
  return Status(kInvalidValue, Text("delta has ", ShapeOf(op.delta), ", logsumexp has ", ShapeOf(op.logsumexp),
                                    "; both must be compact, or neither"));
}

Status Validate(const AttnBwd& op) {
  if (Status status = ValidateAttention(op, Access::kRead); !status.ok()) return status;
  const Named q{"q", op.q}, k{"k", op.k}, v{"v", op.v}, out{"out", op.out};
  const Named dout{"dout", op.dout}, dq{"dq", op.dq}, dk{"dk", op.dk}, dv{"dv", op.dv};
  Status status = CheckLike(dout, out, Access::kRead);
  if (status.ok()) status = CheckLike(dq, q, Access::kWritten);
  if (status.ok()) status = CheckLike(dk, k, Access::kWritten);
  if (status.ok()) status = CheckLike(dv, v, Access::kWritten);
  if (status.ok()) status = CheckDbias(op);
  RowLayout ignored;
  if (status.ok()) status = CheckRowNumbers({"logsumexp", op.logsumexp}, op, &ignored);
  if (!status.ok()) return status;

  if (op.backend != BwdBackend::kDefault && op.backend != BwdBackend::kSplit && op.backend != BwdBackend::kFused) {
    return Status(kNotSupported, Text("backend is ", static_cast<int32_t>(op.backend), "; it must be 0 (default), 1 (split) or 2 (fused)"));
  }
  const bool is_delta_known = op.delta.data != nullptr || op.acquire_delta == nullptr;
  return BackendOf(op) == BwdBackend::kSplit && is_delta_known ? ValidateDelta(op) : Status();
}

bool IsEmpty(const AttnBwd& op) {
  return ExtentsOf(op).sequences == 0 || !(HasElements(op.dq) || HasElements(op.dk) || HasElements(op.dv));
}

}  // namespace aotriton::dispatcher
