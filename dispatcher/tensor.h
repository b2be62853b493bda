// A tensor of a call, as every API hands it to the dispatcher.
#ifndef AOTRITON_DISPATCHER_TENSOR_H_
#define AOTRITON_DISPATCHER_TENSOR_H_

#include <cstdint>

namespace aotriton::dispatcher {

// The numbers of aotriton::DType and of the C ABI. Any other number may arrive.
enum DType : int32_t { kFloat32 = 1, kFloat16 = 2, kBFloat16 = 3, kInt32 = 12, kInt64 = 13, kUInt64 = 23 };

struct Tensor {
  static constexpr int kMaxRank = 4;

  void* data = nullptr;
  int32_t dtype = 0;
  int32_t rank = 0;
  int64_t sizes[kMaxRank] = {};    // of a rank r tensor the first r count
  int64_t strides[kMaxRank] = {};  // in elements
};

// A number in device memory.
struct Scalar {
  void* data = nullptr;
  int32_t dtype = 0;
};

// A power of 2.
inline int ElementSize(int32_t dtype) {
  switch (dtype) {
    case kInt64:
    case kUInt64: return 8;
    case kInt32:
    case kFloat32: return 4;
    default: return 2;
  }
}

// A dimension of size 1 has no stride: callers leave anything there, and 0 keeps every promise.
inline int64_t Stride(const Tensor& t, int dimension) { return t.sizes[dimension] > 1 ? t.strides[dimension] : 0; }

inline bool HasElements(const Tensor& t) {
  for (int i = 0; i < t.rank; ++i) {
    if (t.sizes[i] == 0) return false;
  }
  return true;
}

// The axis value and pointer type of `dtype`, "fp16"; nullptr if it is none of the three.
inline const char* DTypeName(int32_t dtype) {
  switch (dtype) {
    case kFloat32: return "fp32";
    case kFloat16: return "fp16";
    case kBFloat16: return "bf16";
  }
  return nullptr;
}

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_TENSOR_H_
