// The op debug_fill_dropout_rng: what a call says, and what it may say.
#ifndef AOTRITON_DISPATCHER_DROPOUT_RNG_H_
#define AOTRITON_DISPATCHER_DROPOUT_RNG_H_

#include <cstdint>

#include "dispatcher/status.h"
#include "dispatcher/tensor.h"

namespace aotriton::dispatcher {

// Writes the random numbers that decide on attn_fwd's dropout.
struct DropoutRng {
  Tensor tensor;  // (sequences, num_head_q, max_seqlen_q, max_seqlen_k), fp32 or int32, any strides
  uint64_t seed = 0;
  uint64_t offset = 0;
};

Status Validate(const DropoutRng& op);
bool IsEmpty(const DropoutRng& op);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_DROPOUT_RNG_H_
