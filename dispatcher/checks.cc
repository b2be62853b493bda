#include "dispatcher/checks.h"

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

// An empty tensor may come without memory (PyTorch's do); one that is all zeros was never set.
bool IsMissing(const Tensor& t) {
  if (t.data != nullptr) return false;
  bool has_zero = false, has_other = false;
  for (int i = 0; i < t.rank && i < Tensor::kMaxRank; ++i) (t.sizes[i] == 0 ? has_zero : has_other) = true;
  return !(has_zero && has_other);
}

}  // namespace

std::string ShapeOf(const Tensor& t) {
  return t.rank >= 0 && t.rank <= Tensor::kMaxRank ? "sizes " + Tuple(t.sizes, t.rank) : Text("rank ", t.rank);
}

Status RefuseAddress(const char* name, const void* data, int32_t dtype) {
  return Status(kInvalidValue, Text(name, " is at address ", reinterpret_cast<uintptr_t>(data), "; it must be a multiple of ",
                                    ElementSize(dtype), ", the size of its elements"));
}

Status CheckTensor(const Named& n, Access access, LastStride last_stride) {
  const Tensor& t = n.tensor;
  if (IsMissing(t)) return Status(kInvalidValue, Text(n.name, " is null; a device pointer is required"));
  if (t.rank != 4) {
    return Status(kInvalidValue, Text(n.name, " has rank ", t.rank, "; 4 is required: (batch, head, sequence, ",
                                      last_stride == LastStride::kOne ? "head_dim)" : "sequence)"));
  }
  if (DTypeName(t.dtype) == nullptr) {
    return Status(kNotSupported, Text(n.name, " has dtype ", t.dtype, "; supported are fp32 (1), fp16 (2) and bf16 (3)"));
  }
  bool has_elements = true;
  for (int i = 0; i < 4; ++i) {
    has_elements &= t.sizes[i] != 0;
    if (static_cast<uint64_t>(t.sizes[i]) > kMaxExtent) {
      return Status(kInvalidValue, Text(n.name, " has sizes ", Tuple(t.sizes, 4), "; each must be from 0 to ", kMaxExtent));
    }
  }
  for (int i = 0; i < 4 && has_elements; ++i) {
    if (t.sizes[i] == 1) continue;  // this stride is never used
    if (i == 3 && last_stride == LastStride::kOne) {
      if (t.strides[3] != 1) {
        return Status(kInvalidValue, Text(n.name, " has last stride ", t.strides[3], "; it must be 1"));
      }
    } else if (t.strides[i] < 0) {
      return Status(kInvalidValue, Text(n.name, " has strides ", Tuple(t.strides, 4), "; they must not be negative"));
    } else if (access == Access::kWritten && t.strides[i] == 0) {
      return Status(kInvalidValue, Text(n.name, " has stride 0 in dimension ", i, " of size ", t.sizes[i],
                                        "; an output cannot be expanded, its elements would overwrite each other"));
    }
  }
  return CheckElementAligned(n.name, t.data, t.dtype);
}

Status RefuseDType(const Named& n, int32_t expected, const char* of) {
  return Status(kInvalidValue, Text(n.name, " has dtype ", DTypeName(n.tensor.dtype), "; it must be ", DTypeName(expected),
                                    ", that of ", of));
}

Status RefuseSize(const Named& n, int dimension, int64_t expected, const char* of) {
  return Status(kInvalidValue, Text(n.name, " has sizes ", Tuple(n.tensor.sizes, n.tensor.rank), "; dimension ", dimension,
                                    " must be ", expected, ", that of ", of));
}

}  // namespace aotriton::dispatcher
