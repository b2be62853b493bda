// Checks of one tensor of a call. A refusal names the tensor, its value and what would be accepted.
#ifndef AOTRITON_DISPATCHER_CHECKS_H_
#define AOTRITON_DISPATCHER_CHECKS_H_

#include <cstdint>
#include <string>

#include "dispatcher/status.h"
#include "dispatcher/tensor.h"

namespace aotriton::dispatcher {

// Kernels count rows and heads in 32 bits and add a tile to them.
inline constexpr int64_t kMaxExtent = int64_t{1} << 30;

struct Named {
  const char* name;
  const Tensor& tensor;
};

enum class Access { kRead, kWritten };
// Whether the last dimension may have a stride other than 1.
enum class LastStride { kOne, kAny };

// A tensor (batch, head, row, column) of fp16, bf16 or fp32.
Status CheckTensor(const Named& n, Access access, LastStride last_stride = LastStride::kOne);

// The three below are asked some thirty times a call: only their refusals are calls of a function.
Status RefuseDType(const Named& n, int32_t expected, const char* of);
inline Status CheckDType(const Named& n, int32_t expected, const char* of) {
  return n.tensor.dtype == expected ? Status() : RefuseDType(n, expected, of);
}

Status RefuseSize(const Named& n, int dimension, int64_t expected, const char* of);
inline Status CheckSize(const Named& n, int dimension, int64_t expected, const char* of) {
  return n.tensor.sizes[dimension] == expected ? Status() : RefuseSize(n, dimension, expected, of);
}

// A GPU traps on (or rounds down) an element that lies across its own size.
Status RefuseAddress(const char* name, const void* data, int32_t dtype);
inline Status CheckElementAligned(const char* name, const void* data, int32_t dtype) {
  const uintptr_t mask = static_cast<uintptr_t>(ElementSize(dtype) - 1);
  return (reinterpret_cast<uintptr_t>(data) & mask) == 0 ? Status() : RefuseAddress(name, data, dtype);
}

// "sizes (2, 16)", or the rank where it is none
std::string ShapeOf(const Tensor& t);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_CHECKS_H_
