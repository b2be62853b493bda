// The op attn_fwd: what a call says, and what it may say.
#ifndef AOTRITON_DISPATCHER_ATTN_FWD_H_
#define AOTRITON_DISPATCHER_ATTN_FWD_H_

#include "dispatcher/attention.h"
#include "dispatcher/status.h"
#include "dispatcher/tensor.h"

namespace aotriton::dispatcher {

// All give 0 and +inf to rows without keys, and are deterministic. The numbers are the C ABI's.
enum class FwdBackend : int32_t {
  kDefault = 0,  // hopper if it can take the call and is faster, else triton
  kTriton = 1,   // takes every call
  kHopper = 2,   // sm_90, 16 bits, head_dim up to 256, sm_scale > 0, neither bias nor dropout; tensors that TMA can reach
};

// Out = softmax(sm_scale * Q K^T + bias, masked) V. Every API turns its arguments into this.
// The data of logsumexp may be null.
struct AttnFwd : Attention {
  // Is given the dropout mask (encoded_softmax.h), (sequences, num_head_q, max_seqlen_q, max_seqlen_k);
  // data may be null.
  Tensor encoded_softmax;
  // int32, in device memory, 0 before the call and after it; no other call uses it meanwhile. May be null.
  // With it triton uses the persistent schedule where there is one (backends.cc).
  Scalar persistent_counter;

  FwdBackend backend = FwdBackend::kDefault;
};

// All that can be said about a call without a GPU: a refusal names the argument, its value and
// what would be accepted.
Status Validate(const AttnFwd& op);

// Whether a valid call has nothing to write.
bool IsEmpty(const AttnFwd& op);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_ATTN_FWD_H_
