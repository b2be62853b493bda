#include "dispatcher/attn_fwd.h"

#include <algorithm>
#include <cmath>

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

// Kernels count rows and heads in 32 bits and add a tile to them.
constexpr int64_t kMaxExtent = int64_t{1} << 30;

struct Named {
  const char* name;
  const Tensor& tensor;
};

std::string Sizes(const Tensor& t) { return Tuple(t.sizes, t.rank); }

int ElementSize(int32_t dtype) { return dtype == kFloat32 ? 4 : 2; }

// A GPU traps on (or rounds down) an element that lies across its own size.
Status CheckElementAligned(const Named& n) {
  const auto address = reinterpret_cast<uintptr_t>(n.tensor.data);
  const int size = ElementSize(n.tensor.dtype);
  if (address % size == 0) return Status();
  return Status(kInvalidValue, Text(n.name, " is at address ", address, "; it must be a multiple of ", size,
                                    ", the size of its elements"));
}

// An empty tensor may come without memory (PyTorch's do); one that is all zeros was never set.
bool IsMissing(const Tensor& t) {
  if (t.data != nullptr) return false;
  bool has_zero = false, has_other = false;
  for (int i = 0; i < t.rank && i < Tensor::kMaxRank; ++i) (t.sizes[i] == 0 ? has_zero : has_other) = true;
  return !(has_zero && has_other);
}

Status CheckOne(const Named& n, bool is_written) {
  const Tensor& t = n.tensor;
  if (IsMissing(t)) return Status(kInvalidValue, Text(n.name, " is null; a device pointer is required"));
  if (t.rank != 4) {
    return Status(kInvalidValue, Text(n.name, " has rank ", t.rank, "; 4 is required: (batch, head, sequence, head_dim)"));
  }
  if (DTypeName(t.dtype) == nullptr) {
    return Status(kNotSupported, Text(n.name, " has dtype ", t.dtype, "; supported are fp32 (1), fp16 (2) and bf16 (3)"));
  }
  for (int i = 0; i < 4; ++i) {
    if (t.sizes[i] < 0 || t.sizes[i] > kMaxExtent) {
      return Status(kInvalidValue, Text(n.name, " has sizes ", Sizes(t), "; each must be from 0 to ", kMaxExtent));
    }
  }
  const bool is_empty = std::find(t.sizes, t.sizes + 4, 0) != t.sizes + 4;
  for (int i = 0; i < 4; ++i) {
    if (is_empty || t.sizes[i] == 1) continue;  // this stride is never used
    if (i == 3) {
      if (t.strides[3] != 1) {
        return Status(kInvalidValue, Text(n.name, " has last stride ", t.strides[3], "; it must be 1"));
      }
    } else if (t.strides[i] < 0) {
      return Status(kInvalidValue, Text(n.name, " has strides ", Tuple(t.strides, 4), "; they must not be negative"));
    } else if (is_written && t.strides[i] == 0) {
      return Status(kInvalidValue, Text(n.name, " has stride 0 in dimension ", i, " of size ", t.sizes[i],
                                        "; an output cannot be expanded, its rows would overwrite each other"));
    }
  }
  return CheckElementAligned(n);
}

Status CheckSize(const Named& n, int dimension, int64_t expected, const char* of) {
  if (n.tensor.sizes[dimension] == expected) return Status();
  return Status(kInvalidValue, Text(n.name, " has sizes ", Sizes(n.tensor), "; dimension ", dimension, " must be ",
                                    expected, ", that of ", of));
}

Status CheckLogsumexp(const AttnFwd& op) {
  const Tensor& l = op.logsumexp;
  if (l.data == nullptr) return Status();
  if (l.dtype != kFloat32) {
    return Status(kInvalidValue, Text("logsumexp has dtype ", l.dtype, "; it must be fp32 (1)"));
  }
  if (Status status = CheckElementAligned({"logsumexp", l}); !status.ok()) return status;
  const int64_t* q = op.q.sizes;
  const bool fits = (l.rank == 3 && l.sizes[0] == q[0] && l.sizes[1] == q[1] && l.sizes[2] == q[2]) ||
                    (l.rank == 2 && l.sizes[0] == q[0] * q[1] && l.sizes[1] == q[2]);
  if (!fits) {
    const std::string shape = l.rank >= 0 && l.rank <= Tensor::kMaxRank ? "sizes " + Sizes(l) : Text("rank ", l.rank);
    return Status(kInvalidValue, Text("logsumexp has ", shape, "; it must be ", Tuple(q, 3), " or (", q[0] * q[1], ", ",
                                      q[2], "): batch, num_head_q, seqlen_q"));
  }
  if (q[0] * q[1] == 0 || q[2] == 0) return Status();  // the strides of an empty tensor mean nothing
  int64_t contiguous = 1;
  for (int i = l.rank - 1; i >= 0; --i) {
    if (l.sizes[i] > 1 && l.strides[i] != contiguous) {
      return Status(kInvalidValue, Text("logsumexp has strides ", Tuple(l.strides, l.rank), " for sizes ", Sizes(l),
                                        "; it must be contiguous"));
    }
    if (i > 0) contiguous *= l.sizes[i];  // at most two extents: no overflow
  }
  return Status();
}

}  // namespace

Status Validate(const AttnFwd& op) {
  const Named q{"q", op.q}, k{"k", op.k}, v{"v", op.v}, out{"out", op.out};
  for (const Named* n : {&q, &k, &v, &out}) {
    if (Status status = CheckOne(*n, n == &out); !status.ok()) return status;
    if (n->tensor.dtype != op.q.dtype) {
      return Status(kInvalidValue, Text(n->name, " has dtype ", DTypeName(n->tensor.dtype), "; it must be ",
                                        DTypeName(op.q.dtype), ", that of q"));
    }
  }
  struct Rule {
    const Named& tensor;
    int dimension;
    const Named& like;
  };
  for (const Rule& rule : {Rule{k, 0, q}, Rule{k, 3, q}, Rule{v, 0, k}, Rule{v, 1, k}, Rule{v, 2, k},
                           Rule{out, 0, q}, Rule{out, 1, q}, Rule{out, 2, q}, Rule{out, 3, v}}) {
    Status status = CheckSize(rule.tensor, rule.dimension, rule.like.tensor.sizes[rule.dimension], rule.like.name);
    if (!status.ok()) return status;
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
  return CheckLogsumexp(op);
}

bool IsEmpty(const AttnFwd& op) {
  for (int64_t size : op.out.sizes) {
    if (size == 0) return true;
  }
  return false;
}

}  // namespace aotriton::dispatcher
