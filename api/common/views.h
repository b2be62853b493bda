// From the API's views to the dispatcher's tensors, shared by v2 and v3.
#ifndef AOTRITON_API_COMMON_VIEWS_H_
#define AOTRITON_API_COMMON_VIEWS_H_

#include <aotriton/util.h>

#include "dispatcher/status.h"
#include "dispatcher/tensor.h"

namespace aotriton::api {

// A view that the op requires: all its fields are taken over.
template <int Rank>
dispatcher::Tensor Required(const AOTRITON_NS::TensorView<Rank>& view) {
  dispatcher::Tensor tensor;
  tensor.data = view.data_ptr();
  tensor.dtype = view.dtype();
  tensor.rank = Rank;
  for (int i = 0; i < Rank; ++i) {
    tensor.sizes[i] = static_cast<int64_t>(view.size(i));
    tensor.strides[i] = static_cast<int64_t>(view.stride(i));
  }
  return tensor;
}

// A logsumexp view. Its strides have never been read by any release, so callers leave anything
// there: the memory is contiguous by contract.
inline dispatcher::Tensor Logsumexp(const AOTRITON_NS::TensorView<2>& view) {
  if (!view) return {};
  dispatcher::Tensor tensor = Required(view);
  tensor.strides[0] = tensor.sizes[1];
  tensor.strides[1] = 1;
  return tensor;
}

// What this library does not do yet is refused by name, never ignored.
inline dispatcher::Status RequireNull(const char* name, const void* data) {
  if (data == nullptr) return {};
  return {dispatcher::kNotSupported, std::string(name) + " is given; this library does not support it yet: pass a null view"};
}

inline dispatcher::Status RequireNoDropout(float dropout_p) {
  if (dropout_p <= 0) return {};
  return {dispatcher::kNotSupported,
          "dropout_p is " + std::to_string(dropout_p) + "; this library does not support dropout yet: it must be 0"};
}

}  // namespace aotriton::api

#endif  // AOTRITON_API_COMMON_VIEWS_H_
