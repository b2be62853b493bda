// The op debug_simulate_encoded_softmax: what a call says, and what it may say.
#ifndef AOTRITON_DISPATCHER_ENCODED_SOFTMAX_H_
#define AOTRITON_DISPATCHER_ENCODED_SOFTMAX_H_

#include "dispatcher/attention.h"
#include "dispatcher/status.h"
#include "dispatcher/tensor.h"

namespace aotriton::dispatcher {

// Writes attn_fwd's dropout mask: 0.5 where an element is kept, -0.5 where it is dropped.
struct EncodedSoftmax {
  Tensor tensor;  // (sequences, num_head_q, max_seqlen_q, max_seqlen_k), fp16, bf16 or fp32, any strides
  Dropout dropout;  // its outputs are not written
};

Status Validate(const EncodedSoftmax& op);
bool IsEmpty(const EncodedSoftmax& op);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_ENCODED_SOFTMAX_H_
