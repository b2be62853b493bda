// The op attn_bwd: what a call says, and what it may say.
#ifndef AOTRITON_DISPATCHER_ATTN_BWD_H_
#define AOTRITON_DISPATCHER_ATTN_BWD_H_

#include "dispatcher/attention.h"
#include "dispatcher/status.h"
#include "dispatcher/tensor.h"

namespace aotriton::dispatcher {

// Both are deterministic. The numbers are the C ABI's.
enum class BwdBackend : int32_t {
  kDefault = 0,  // split if there is a delta and its kernels take the call, else fused
  kSplit = 1,    // three launches, with delta between them
  kFused = 2,    // one launch
};

// The gradients of attn_fwd; out and logsumexp are what it wrote.
struct AttnBwd : Attention {
  Tensor dout;   // the shape of out
  Tensor dq;     // the shape of q
  Tensor dk;     // the shape of k
  Tensor dv;     // the shape of v
  Tensor dbias;  // (batch, num_head_q, seqlen_q, seqlen_k); data may be null

  // Workspace of the split backend: dtype and shape of logsumexp. If delta has no data,
  // acquire_delta(delta_source, &delta) makes it, once and only if it is needed; it too may be null.
  Tensor delta;
  Status (*acquire_delta)(void* delta_source, Tensor* delta) = nullptr;
  void* delta_source = nullptr;

  BwdBackend backend = BwdBackend::kDefault;
};

// The first backend to try for a valid call.
BwdBackend BackendOf(const AttnBwd& op);

// All that can be said about a call without a GPU. A delta that is still to be made is not looked at.
Status Validate(const AttnBwd& op);

// Of the split backend, when delta is there.
Status ValidateDelta(const AttnBwd& op);

bool IsEmpty(const AttnBwd& op);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_ATTN_BWD_H_
