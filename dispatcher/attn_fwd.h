// The op attn_fwd: what a call says, and what it may say.
#ifndef AOTRITON_DISPATCHER_ATTN_FWD_H_
#define AOTRITON_DISPATCHER_ATTN_FWD_H_

#include <cstdint>

#include "dispatcher/status.h"
#include "dispatcher/tensor.h"

namespace aotriton::dispatcher {

// Out = softmax(sm_scale * Q K^T, masked) V. Every API turns its arguments into this.
struct AttnFwd {
  Tensor q;          // (batch, num_head_q, seqlen_q, head_dim_qk)
  Tensor k;          // (batch, num_head_k, seqlen_k, head_dim_qk)
  Tensor v;          // (batch, num_head_k, seqlen_k, head_dim_vo)
  Tensor out;        // (batch, num_head_q, seqlen_q, head_dim_vo)
  Tensor logsumexp;  // fp32, (batch, num_head_q, seqlen_q) or (batch * num_head_q, seqlen_q); data may be null
  float sm_scale = 0;
  bool is_windowed = false;
  int32_t window_left = 0;  // read if is_windowed; a number or a sentinel
  int32_t window_right = 0;
};

inline constexpr int32_t kWindowTopLeft = -2147483647;
inline constexpr int32_t kWindowBottomRight = -2147483646;

// All that can be said about a call without a GPU: a refusal names the argument, its value and
// what would be accepted.
Status Validate(const AttnFwd& op);

// Whether a valid call has nothing to write.
bool IsEmpty(const AttnFwd& op);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_ATTN_FWD_H_
