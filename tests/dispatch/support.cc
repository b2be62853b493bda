#include "tests/dispatch/support.h"

namespace support {

aotriton_tensor Tensor(int32_t dtype, Shape sizes, uintptr_t address) {
  aotriton_tensor tensor = {};
  tensor.data = reinterpret_cast<void*>(address);
  tensor.dtype = dtype;
  tensor.rank = 4;
  uint64_t stride = 1;  // of absurd sizes it wraps around
  for (int i = 3; i >= 0; --i) {
    tensor.sizes[i] = sizes[i];
    tensor.strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(sizes[i]);
  }
  return tensor;
}

aotriton_tensor Logsumexp(int64_t batch, int64_t heads, int64_t seqlen_q, uintptr_t address) {
  aotriton_tensor tensor = Tensor(AOTRITON_FLOAT32, {1, batch, heads, seqlen_q}, address);
  tensor.rank = 3;
  for (int i = 0; i < 3; ++i) {
    tensor.sizes[i] = tensor.sizes[i + 1];
    tensor.strides[i] = tensor.strides[i + 1];
  }
  return tensor;
}

aotriton_tensor Array(int64_t size, uintptr_t address) {
  aotriton_tensor tensor = {};
  tensor.data = reinterpret_cast<void*>(address);
  tensor.dtype = AOTRITON_INT32;
  tensor.rank = 1;
  tensor.sizes[0] = size;
  tensor.strides[0] = 1;
  return tensor;
}

aotriton_attn_fwd_args Call() { return Call(AOTRITON_BFLOAT16, {2, 8, 1000, 64}, 2, 700, 64); }

aotriton_attn_fwd_args Call(int32_t dtype, Shape q, int64_t num_head_k, int64_t seqlen_k, int64_t head_dim_vo) {
  aotriton_attn_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.q = Tensor(dtype, q, 0x10000);
  args.k = Tensor(dtype, {q[0], num_head_k, seqlen_k, q[3]}, 0x20000);
  args.v = Tensor(dtype, {q[0], num_head_k, seqlen_k, head_dim_vo}, 0x30000);
  args.out = Tensor(dtype, {q[0], q[1], q[2], head_dim_vo}, 0x40000);
  args.logsumexp = Logsumexp(q[0], q[1], q[2], 0x50000);
  args.sm_scale = 0.125f;
  return args;
}

aotriton_attn_bwd_args BackwardCall() {
  const aotriton_attn_fwd_args forward = Call();
  aotriton_attn_bwd_args args = {};
  args.struct_size = sizeof(args);
  args.q = forward.q;
  args.k = forward.k;
  args.v = forward.v;
  args.out = forward.out;
  args.logsumexp = forward.logsumexp;
  args.sm_scale = forward.sm_scale;
  args.dout = forward.out;
  args.dq = forward.q;
  args.dk = forward.k;
  args.dv = forward.v;
  args.dout.data = reinterpret_cast<void*>(0x60000);
  args.dq.data = reinterpret_cast<void*>(0x70000);
  args.dk.data = reinterpret_cast<void*>(0x80000);
  args.dv.data = reinterpret_cast<void*>(0x90000);
  args.delta = Logsumexp(2, 8, 1000, 0xA0000);
  args.bias = Tensor(AOTRITON_BFLOAT16, {2, 8, 1000, 704}, 0xB0000);  // rows of 704, of which 700 are used
  args.bias.sizes[3] = 700;
  args.dbias = args.bias;
  args.dbias.data = reinterpret_cast<void*>(0xC0000);
  return args;
}

namespace {

template <typename Args>
void MakeCompactOf(Args* args) {
  for (aotriton_tensor* t : {&args->q, &args->k, &args->v, &args->out}) t->sizes[0] = 1;
  args->logsumexp = Tensor(AOTRITON_FLOAT32, {1, 1, 8, 1000}, 0x50000);
  args->logsumexp.rank = 2;
  for (int i = 0; i < 2; ++i) {
    args->logsumexp.sizes[i] = args->logsumexp.sizes[i + 2];
    args->logsumexp.strides[i] = args->logsumexp.strides[i + 2];
  }
  args->bias = {};
  args->varlen_type = AOTRITON_VARLEN_COMPACT;
  args->cu_seqlens_q = Array(4, 0xD0000);
  args->cu_seqlens_k = Array(4, 0xD1000);
  args->max_seqlen_q = 600;
  args->max_seqlen_k = 500;
}

}  // namespace

void MakeCompact(aotriton_attn_fwd_args* args) { MakeCompactOf(args); }

void MakeCompact(aotriton_attn_bwd_args* args) {
  MakeCompactOf(args);
  for (aotriton_tensor* t : {&args->dout, &args->dq, &args->dk, &args->dv}) t->sizes[0] = 1;
  args->dbias = {};
  args->delta = args->logsumexp;
  args->delta.data = reinterpret_cast<void*>(0xA0000);
}

}  // namespace support
