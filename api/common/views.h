// From the API's views to the dispatcher's tensors, shared by v2 and v3.
#ifndef AOTRITON_API_COMMON_VIEWS_H_
#define AOTRITON_API_COMMON_VIEWS_H_

#include <aotriton/util.h>

#include "dispatcher/attention.h"
#include "dispatcher/tensor.h"

namespace aotriton::api {

// The base of logsumexp that callers expect who cannot say which they mean: those of the v2 functions
// and of structs of version 1.
inline constexpr auto kClaimedLseBase =
    AOTRITON_INTERNAL_RELEASE <= 10 ? dispatcher::LseBase::kTwo : dispatcher::LseBase::kNatural;

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

// A view that may be null: then callers leave anything in its other fields.
template <int Rank>
dispatcher::Tensor Optional(const AOTRITON_NS::TensorView<Rank>& view) {
  return view ? Required(view) : dispatcher::Tensor();
}

// A view of logsumexp or delta. Its strides have never been read by any release, so callers leave
// anything there: the memory is contiguous by contract.
inline dispatcher::Tensor RowNumbers(const AOTRITON_NS::TensorView<2>& view) {
  dispatcher::Tensor tensor = Optional(view);
  tensor.strides[0] = tensor.sizes[1];
  tensor.strides[1] = 1;
  return tensor;
}

inline dispatcher::Scalar ToScalar(const AOTRITON_NS::TensorView<0>& view) { return {view.data_ptr(), view.dtype()}; }

// A probability that is not positive means "no dropout".
inline dispatcher::Dropout ToDropout(float p, const AOTRITON_NS::TensorView<0>& seed, const AOTRITON_NS::TensorView<0>& offset1,
                                     uint64_t offset2) {
  dispatcher::Dropout dropout;
  dropout.p = p <= 0 ? 0 : p;
  dropout.seed = ToScalar(seed);
  dropout.offset1 = ToScalar(offset1);
  dropout.offset2 = offset2;
  return dropout;
}

}  // namespace aotriton::api

#endif  // AOTRITON_API_COMMON_VIEWS_H_
