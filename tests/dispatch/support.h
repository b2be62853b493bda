// What the dispatch tests share beside images: calls.
#ifndef AOTRITON_TESTS_DISPATCH_SUPPORT_H_
#define AOTRITON_TESTS_DISPATCH_SUPPORT_H_

#include <aotriton/aotriton.h>

#include <array>
#include <cstdint>

#include "tests/dispatch/images.h"

namespace support {

using Shape = std::array<int64_t, 4>;

// A contiguous tensor at a made-up address of the device.
aotriton_tensor Tensor(int32_t dtype, Shape sizes, uintptr_t address);
aotriton_tensor Logsumexp(int64_t batch, int64_t heads, int64_t seqlen_q, uintptr_t address);
aotriton_tensor Array(int64_t size, uintptr_t address);  // of int32

// An ordinary call: bf16, batch 2, 8 heads of q and 2 of k, 1000 queries, 700 keys, head_dim 64.
aotriton_attn_fwd_args Call();
aotriton_attn_fwd_args Call(int32_t dtype, Shape q, int64_t num_head_k, int64_t seqlen_k, int64_t head_dim_vo);

// Its backward, with a bias, its gradient and a delta.
aotriton_attn_bwd_args BackwardCall();

// The forward and the backward of three sequences, 1000 queries and 700 keys in all.
void MakeCompact(aotriton_attn_fwd_args* args);
void MakeCompact(aotriton_attn_bwd_args* args);

}  // namespace support

#endif  // AOTRITON_TESTS_DISPATCH_SUPPORT_H_
