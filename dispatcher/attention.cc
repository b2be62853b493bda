#include "dispatcher/attention.h"

#include <cmath>

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

const char* NameOf(int32_t varlen_type) {
  constexpr const char* kNames[] = {"none", "compact", "padded", "strided"};
  return kNames[varlen_type];
}

// The sequences are rows of the only entry of the batch.
bool ShareRows(const Varlen& varlen) { return varlen.type == kVarlenCompact || varlen.type == kVarlenStrided; }

int64_t MaxSeqlen(const Varlen& varlen, int32_t given, const Tensor& t) {
  return varlen.type != kVarlenNone && given > 0 ? given : t.sizes[2];
}

Status CheckArray(const Named& n, int32_t varlen_type) {
  const Tensor& t = n.tensor;
  if (t.data == nullptr) {
    return Status(kInvalidValue, Text(n.name, " is null; varlen_type ", varlen_type, " (", NameOf(varlen_type), ") requires it"));
  }
  if (t.dtype != kInt32) return Status(kInvalidValue, Text(n.name, " has dtype ", t.dtype, "; it must be int32 (12)"));
  if (t.rank != 1) return Status(kInvalidValue, Text(n.name, " has rank ", t.rank, "; it must be 1"));
  if (t.sizes[0] < 1 || t.sizes[0] > kMaxExtent) {
    return Status(kInvalidValue, Text(n.name, " has ", t.sizes[0], " elements; it must have from 1 to ", kMaxExtent));
  }
  if (t.sizes[0] > 1 && t.strides[0] != 1) {
    return Status(kInvalidValue, Text(n.name, " has stride ", t.strides[0], "; it must be 1"));
  }
  return CheckElementAligned(n.name, t.data, kInt32);
}

Status CheckUnused(const Named& n, int32_t varlen_type) {
  if (n.tensor.data == nullptr) return Status();
  return Status(kInvalidValue, Text(n.name, " is given, and varlen_type is ", varlen_type, " (", NameOf(varlen_type),
                                    "), which does not use it: pass null"));
}

Status CheckVarlen(const Attention& op) {
  const Varlen& varlen = op.varlen;
  const bool has_arrays = varlen.cu_seqlens_q.data != nullptr || varlen.cu_seqlens_k.data != nullptr ||
                          varlen.seq_starts_q.data != nullptr || varlen.seq_starts_k.data != nullptr;
  if (varlen.type == kVarlenNone && !has_arrays) return Status();
  if (varlen.type < kVarlenNone || varlen.type > kVarlenStrided) {
    return Status(kNotSupported, Text("varlen_type is ", varlen.type,
                                      "; it must be 0 (none), 1 (compact), 2 (padded) or 3 (strided)"));
  }
  const Named cu_q{"cu_seqlens_q", varlen.cu_seqlens_q}, cu_k{"cu_seqlens_k", varlen.cu_seqlens_k};
  const Named starts_q{"seq_starts_q", varlen.seq_starts_q}, starts_k{"seq_starts_k", varlen.seq_starts_k};
  for (const Named* n : {&cu_q, &cu_k}) {
    Status status = varlen.type == kVarlenNone ? CheckUnused(*n, varlen.type) : CheckArray(*n, varlen.type);
    if (!status.ok()) return status;
  }
  const int64_t count = cu_q.tensor.sizes[0];
  for (const Named* n : {&starts_q, &starts_k}) {
    Status status = varlen.type != kVarlenStrided ? CheckUnused(*n, varlen.type) : CheckArray(*n, varlen.type);
    if (!status.ok()) return status;
    const int64_t found = n->tensor.sizes[0];
    if (varlen.type == kVarlenStrided && found != count && found != count - 1) {
      return Status(kInvalidValue, Text(n->name, " has ", found, " elements; it must have ", count - 1, ", the number of sequences, or ",
                                        count));
    }
  }
  if (varlen.type == kVarlenNone) return Status();
  if (cu_k.tensor.sizes[0] != count) {
    return Status(kInvalidValue, Text("cu_seqlens_k has ", cu_k.tensor.sizes[0], " elements; it must have ", count,
                                      ", as many as cu_seqlens_q"));
  }
  const int64_t batch = ShareRows(varlen) ? 1 : count - 1;
  if (op.q.sizes[0] != batch) {
    return Status(kInvalidValue, Text("q has sizes ", Tuple(op.q.sizes, 4), "; with varlen_type ", varlen.type, " (",
                                      NameOf(varlen.type), ") dimension 0 must be ", batch,
                                      ShareRows(varlen) ? "" : ", the number of sequences"));
  }
  struct Longest {
    const char* name;
    int32_t given;
    const char* of;
    const Tensor& tensor;
  };
  for (const Longest& longest : {Longest{"max_seqlen_q", varlen.max_seqlen_q, "q", op.q},
                                 Longest{"max_seqlen_k", varlen.max_seqlen_k, "k", op.k}}) {
    if (longest.given < 0 || longest.given > kMaxExtent) {
      return Status(kInvalidValue, Text(longest.name, " is ", longest.given, "; it must be from 0 to ", kMaxExtent));
    }
    if (varlen.type == kVarlenPadded && longest.given > longest.tensor.sizes[2]) {
      return Status(kInvalidValue, Text(longest.name, " is ", longest.given, "; it must be at most ", longest.tensor.sizes[2],
                                        ", the rows of ", longest.of));
    }
  }
  return Status();
}

Status CheckBias(const Attention& op) {
  if (op.bias.data == nullptr) return Status();
  const Named bias{"bias", op.bias};
  if (op.varlen.type != kVarlenNone) {
    return Status(kNotSupported, Text("bias is given, and varlen_type is ", op.varlen.type, " (", NameOf(op.varlen.type),
                                      "); a bias is supported with equal lengths only: pass null"));
  }
  if (Status status = CheckTensor(bias, Access::kRead, LastStride::kAny); !status.ok()) return status;
  return CheckScoresLike(bias, op);
}

Status CheckScalar(const char* name, const Scalar& scalar) {
  if (scalar.dtype != kInt64 && scalar.dtype != kUInt64) {
    return Status(kInvalidValue, Text(name, " has dtype ", scalar.dtype, "; it must be int64 (13) or uint64 (23)"));
  }
  return CheckElementAligned(name, scalar.data, scalar.dtype);
}

}  // namespace

Status CheckScoresLike(const Named& n, const Attention& op) {
  if (Status status = CheckDType(n, op.q.dtype, "q"); !status.ok()) return status;
  for (int i = 0; i < 3; ++i) {
    if (Status status = CheckSize(n, i, op.q.sizes[i], "q"); !status.ok()) return status;
  }
  return CheckSize(n, 3, op.k.sizes[2], "k's dimension 2");
}

Extents ExtentsOf(const Attention& op) {
  const Varlen& varlen = op.varlen;
  return {varlen.type == kVarlenNone ? op.q.sizes[0] : varlen.cu_seqlens_q.sizes[0] - 1, op.q.sizes[1], op.k.sizes[1],
          MaxSeqlen(varlen, varlen.max_seqlen_q, op.q), MaxSeqlen(varlen, varlen.max_seqlen_k, op.k)};
}

Status CheckRowNumbers(const Named& n, const Attention& op, RowLayout* layout) {
  const Tensor& t = n.tensor;
  const Extents extents = ExtentsOf(op);
  const int64_t heads = extents.num_head_q, rows = op.q.sizes[2];
  *layout = {heads * extents.max_seqlen_q, extents.max_seqlen_q, false};
  const bool is_empty = op.q.sizes[0] * heads == 0 || rows == 0;
  if (t.data == nullptr) {
    if (is_empty) return Status();
    return Status(kInvalidValue, Text(n.name, " is null; a device pointer is required"));
  }
  if (t.dtype != kFloat32) {
    return Status(kInvalidValue, Text(n.name, " has dtype ", t.dtype, "; it must be fp32 (1)"));
  }
  if (Status status = CheckElementAligned(n.name, t.data, t.dtype); !status.ok()) return status;
  const int64_t shape[] = {extents.sequences, heads, extents.max_seqlen_q};
  const bool is_padded = (t.rank == 3 && t.sizes[0] == shape[0] && t.sizes[1] == shape[1] && t.sizes[2] == shape[2]) ||
                         (t.rank == 2 && t.sizes[0] == shape[0] * shape[1] && t.sizes[1] == shape[2]);
  const bool can_be_compact = ShareRows(op.varlen);
  if (can_be_compact && t.rank == 2 && t.sizes[0] == heads && t.sizes[1] == rows) {
    *layout = {0, rows, true};
  } else if (!is_padded) {
    const std::string padded = Text(Tuple(shape, 3), " or (", shape[0] * shape[1], ", ", shape[2], "): ");
    return Status(kInvalidValue,
                  Text(n.name, " has ", ShapeOf(t), "; it must be ",
                       can_be_compact ? Text("(", heads, ", ", rows, "): num_head_q, rows of q; or ") : "", padded,
                       op.varlen.type == kVarlenNone ? "batch, num_head_q, seqlen_q" : "sequences, num_head_q, max_seqlen_q"));
  }
  if (is_empty) return Status();  // the strides of an empty tensor mean nothing
  int64_t contiguous = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    if (t.sizes[i] > 1 && t.strides[i] != contiguous) {
      return Status(kInvalidValue, Text(n.name, " has strides ", Tuple(t.strides, t.rank), " for ", ShapeOf(t),
                                        "; it must be contiguous"));
    }
    if (i > 0) contiguous *= t.sizes[i];  // at most two extents: no overflow
  }
  return Status();
}

Status ValidateDropout(const Dropout& dropout) {
  if (!(dropout.p >= 0 && dropout.p <= 1)) {
    return Status(kInvalidValue, Text("dropout_p is ", dropout.p, "; it must be from 0 to 1"));
  }
  if (dropout.p == 0) return Status();
  struct Part {
    const char* name;
    const Scalar& scalar;
    bool is_required;
  };
  for (const Part& part : {Part{"philox_seed", dropout.seed, true}, Part{"philox_offset1", dropout.offset1, true},
                           Part{"philox_seed_output", dropout.seed_output, false},
                           Part{"philox_offset_output", dropout.offset_output, false}}) {
    if (part.scalar.data == nullptr) {
      if (!part.is_required) continue;
      return Status(kInvalidValue, Text(part.name, " is null; dropout_p is ", dropout.p, " and requires a device pointer"));
    }
    if (Status status = CheckScalar(part.name, part.scalar); !status.ok()) return status;
  }
  return Status();
}

Status ValidateAttention(const Attention& op, Access out_access) {
  const Named q{"q", op.q}, k{"k", op.k}, v{"v", op.v}, out{"out", op.out};
  for (const Named* n : {&q, &k, &v, &out}) {
    Status status = CheckTensor(*n, n == &out ? out_access : Access::kRead);
    if (status.ok()) status = CheckDType(*n, op.q.dtype, "q");
    if (!status.ok()) return status;
  }
  struct Rule {
    const char* name;
    Tensor Attention::*tensor;
    int dimension;
    const char* of;
    Tensor Attention::*like;
  };
  static constexpr Rule kRules[] = {
      {"k", &Attention::k, 0, "q", &Attention::q},     {"k", &Attention::k, 3, "q", &Attention::q},
      {"v", &Attention::v, 0, "k", &Attention::k},     {"v", &Attention::v, 1, "k", &Attention::k},
      {"v", &Attention::v, 2, "k", &Attention::k},     {"out", &Attention::out, 0, "q", &Attention::q},
      {"out", &Attention::out, 1, "q", &Attention::q}, {"out", &Attention::out, 2, "q", &Attention::q},
      {"out", &Attention::out, 3, "v", &Attention::v},
  };
  for (const Rule& rule : kRules) {
    const int64_t expected = (op.*rule.like).sizes[rule.dimension];
    if ((op.*rule.tensor).sizes[rule.dimension] != expected) {
      return RefuseSize({rule.name, op.*rule.tensor}, rule.dimension, expected, rule.of);
    }
  }
  const int64_t heads_q = op.q.sizes[1], heads_k = op.k.sizes[1];
  if (heads_q != 0 && (heads_k == 0 || heads_q % heads_k != 0)) {
    return Status(kInvalidValue, Text("q has ", heads_q, " heads and k has ", heads_k,
                                      "; the heads of q must be a multiple of the heads of k"));
  }
  if (op.q.sizes[3] == 0) return Status(kInvalidValue, "q has head_dim 0; it must be at least 1");
  if (!std::isfinite(op.sm_scale)) {
    return Status(kInvalidValue, Text("sm_scale is ", op.sm_scale, "; it must be finite"));
  }
  Status status = CheckVarlen(op);
  if (status.ok()) status = CheckBias(op);
  if (status.ok()) status = ValidateDropout(op.dropout);
  return status;
}

}  // namespace aotriton::dispatcher
