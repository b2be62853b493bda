// As PyTorch 2.9 to 2.12 call AOTriton 0.11: v3 alone, workspaces made on demand by callbacks that take
// the cookie, logsumexp natural and padded. Built without optimisation, so that what the headers define
// inline is imported from the library.
#include <stdexcept>

#include "tests/callers/caller.h"

namespace {

using namespace caller;
using namespace aotriton::v3::flash;

static_assert(AOTRITON_VERSION_MAJOR * 100 + AOTRITON_VERSION_MINOR == 11);
static_assert(attn_fwd_params::kVersion == 1 && attn_bwd_params::kVersion == 3);

// What PyTorch keeps for a lazy tensor.
struct Context {
  uintptr_t address;
  int acquired = 0, disposed = 0;
  bool is_out_of_memory = false;
};

template <int Rank>
aotriton::TensorView<Rank> Acquire(void* cookie) {
  auto* context = static_cast<Context*>(cookie);
  ++context->acquired;
  if (context->is_out_of_memory) throw std::runtime_error("HIP out of memory");
  if constexpr (Rank == 2) {
    return Contiguous<2>(context->address, {kBatch * kHeads, kQueries}, DType::kFloat32);
  } else {
    return Contiguous<4>(context->address, {kBatch, kHeads, kQueries, kDim}, DType::kFloat32);
  }
}

void Dispose(void* cookie) { ++static_cast<Context*>(cookie)->disposed; }

class PyTorch29 : public CallerTest {
 protected:
  static attn_fwd_params Forward() {
    attn_fwd_params params;
    params.Q = Bshd(0x10000, kBatch, kHeads, kQueries, kDim);
    params.K = Bshd(0x20000, kBatch, kHeads, kKeys, kDim);
    params.V = Bshd(0x30000, kBatch, kHeads, kKeys, kDim);
    params.Sm_scale = 0.125f;
    params.L = Contiguous<2>(0x50000, {kBatch * kHeads, kQueries}, DType::kFloat32);
    params.Out = Bshd(0x40000, kBatch, kHeads, kQueries, kDim);
    params.Max_seqlen_q = kQueries;
    params.Max_seqlen_k = kKeys;
    params.dropout_p = 0;
    params.philox_seed_ptr = Scalar(0xE0000);
    params.philox_offset1 = Scalar(0xE0008);
    params.philox_offset2 = 0;
    params.philox_seed_output = T0::get_null_tensor(DType::kInt64);
    params.philox_offset_output = T0::get_null_tensor(DType::kInt64);
    params.encoded_softmax = T4(0, {0, 0, 0, 0}, {1, 1, 1, 1}, DType::kBFloat16);
    params.persistent_atomic_counter = T0::get_null_tensor(DType::kInt32);
    params.causal_type = CausalType::None;
    params.varlen_type = VarlenType::None;
    params.window_left = 0x5a5a5a5a;  // memory-efficient attention leaves them unset without a mask
    params.window_right = -0x5a5a5a5a;
    return params;
  }

  attn_bwd_params Backward() {
    const attn_fwd_params forward = Forward();
    attn_bwd_params params;
    params.Q = forward.Q;
    params.K = forward.K;
    params.V = forward.V;
    params.Sm_scale = forward.Sm_scale;
    params.Out = forward.Out;
    // Four layouts of their own: Out as above, dO and dQ in other orders, Q too.
    params.Q = Contiguous<4>(0x10000, {kBatch, kHeads, kQueries, kDim}, DType::kBFloat16);
    params.DO = T4(0x60000, {kBatch, kHeads, kQueries, kDim}, {kDim, kQueries * kBatch * kDim, kBatch * kDim, 1}, DType::kBFloat16);
    params.DQ = T4(0x70000, {kBatch, kHeads, kQueries, kDim}, {kHeads * kQueries * 3 * kDim, kQueries * 3 * kDim, 3 * kDim, 1}, DType::kBFloat16);
    params.DK = Bshd(0x80000, kBatch, kHeads, kKeys, kDim);
    params.DV = Bshd(0x90000, kBatch, kHeads, kKeys, kDim);
    params.L = forward.L;
    params.D = {&delta_, Acquire<2>, Dispose};
    params.DQ_ACC = {&dq_acc_, Acquire<4>, Dispose};
    params.Max_seqlen_q = kQueries;
    params.Max_seqlen_k = kKeys;
    params.dropout_p = 0;
    params.philox_seed_ptr = forward.philox_seed_ptr;
    params.philox_offset1 = forward.philox_offset1;
    params.philox_offset2 = 0;
    params.causal_type = forward.causal_type;
    params.varlen_type = forward.varlen_type;
    params.window_left = forward.window_left;
    params.window_right = forward.window_right;
    return params;
  }

  Context delta_{0x51000}, dq_acc_{0x52000};
};

TEST_F(PyTorch29, NoMaskMeansNoWindow) {
  ASSERT_EQ(attn_fwd(Forward(), attn_fwd_params::kVersion, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(0).id, "bf16.64.0.aligned.0.0.m64");
  ASSERT_EQ(attn_bwd(Backward(), attn_bwd_params::kVersion, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(2).id, "bf16.64.0.aligned.0.0.m64");
  ExpectBase(kNatural);
}

TEST_F(PyTorch29, CausalIsBottomRight) {
  attn_fwd_params params = Forward();
  params.causal_type = CausalType::WindowedAttention;
  params.persistent_atomic_counter = T0(0xE1000, DType::kInt32);
  params.window_left = params.window_right = WindowValue::BottomRightAligned;
  ASSERT_EQ(attn_fwd(params, 1, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().back().arguments.at("window_left").integer(), -2147483646);
  EXPECT_EQ(fake_hip::Launches().back().arguments.at("window_right").integer(), -2147483646);
  // Each side resolves for itself.
  params.window_left = 16;
  ASSERT_EQ(attn_fwd(params, 1, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().back().arguments.at("window_left").integer(), 16);
  EXPECT_EQ(fake_hip::Launches().back().arguments.at("window_right").integer(), -2147483646);
}

TEST_F(PyTorch29, EachTensorHasItsOwnStrides) {
  ASSERT_EQ(attn_bwd(Backward(), 3, stream_), hipSuccess) << aotriton_last_error();
  ASSERT_EQ(Symbols(), kSplit);
  const fake_hip::Launch rows = fake_hip::Launches()[0], dq = fake_hip::Launches()[2];
  const auto expect = [](const fake_hip::Launch& launch, const std::string& tensor, std::array<uint64_t, 3> strides) {
    const char* dims = tensor == "k" ? "zhn" : "zhm";
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(launch.arguments.at("stride_" + tensor + dims[i]).integer(), static_cast<int64_t>(strides[i])) << launch.symbol << tensor << i;
    }
  };
  expect(rows, "o", {kQueries * kHeads * kDim, kDim, kHeads * kDim});
  for (const fake_hip::Launch& launch : {rows, dq}) expect(launch, "do", {kDim, kQueries * kBatch * kDim, kBatch * kDim});
  expect(dq, "q", {kHeads * kQueries * kDim, kQueries * kDim, kDim});
  expect(dq, "k", {kKeys * kHeads * kDim, kDim, kHeads * kDim});
  expect(dq, "dq", {kHeads * kQueries * 3 * kDim, kQueries * 3 * kDim, 3 * kDim});
}

TEST_F(PyTorch29, TheWorkspaceIsAcquiredOnceAndOnlyIfNeeded) {
  ASSERT_EQ(attn_bwd(Backward(), 3, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(delta_.acquired, 1);
  EXPECT_EQ(delta_.disposed, 1);
  EXPECT_EQ(dq_acc_.acquired, 0);
  EXPECT_EQ(fake_hip::Launches()[1].arguments.at("Delta").pointer(), reinterpret_cast<void*>(0x51000));
  attn_options fused;
  fused.force_backend_index = 1;
  ASSERT_EQ(attn_bwd(Backward(), 3, stream_, &fused), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(delta_.acquired, 1);
}

TEST_F(PyTorch29, WhatAcquireThrowsIsAnError) {
  delta_.is_out_of_memory = true;
  EXPECT_EQ(attn_bwd(Backward(), 3, stream_), hipErrorOutOfMemory);
  EXPECT_STREQ(aotriton_last_error(), "acquire of the lazy tensor D threw: HIP out of memory");
  EXPECT_EQ(delta_.disposed, 0);
  EXPECT_TRUE(fake_hip::Launches().empty());
}

TEST_F(PyTorch29, VarlenPadsLogsumexp) {
  attn_fwd_params params = Forward();
  params.Q = params.Out = Bshd(0x10000, 1, kHeads, kTotalQ, kDim);
  params.K = params.V = Bshd(0x20000, 1, kHeads, kTotalK, kDim);
  params.L = Contiguous<2>(0x50000, {kSequences * kHeads, kMaxQ}, DType::kFloat32);
  params.cu_seqlens_q = Contiguous<1>(0xD0000, {kSequences + 1}, DType::kInt32);
  params.cu_seqlens_k = Contiguous<1>(0xD1000, {kSequences + 1}, DType::kInt32);
  params.Max_seqlen_q = kMaxQ;
  params.Max_seqlen_k = 0;  // memory-efficient attention does not know it
  params.varlen_type = VarlenType::CompactVarlen;
  ASSERT_EQ(attn_fwd(params, 1, stream_), hipSuccess) << aotriton_last_error();
  const fake_hip::Launch launch = fake_hip::Launches().at(0);
  EXPECT_EQ(launch.arguments.at("varlen_type").integer(), 1);
  EXPECT_EQ(launch.arguments.at("max_seqlen_k").integer(), static_cast<int64_t>(kTotalK));
  EXPECT_EQ(launch.arguments.at("lse_compact").integer(), 0);
  EXPECT_EQ(launch.arguments.at("stride_lz").integer(), static_cast<int64_t>(kHeads) * kMaxQ);
  ExpectBase(kNatural);
}

// In branches that no run reaches these are named, and at -O0 linked.
TEST_F(PyTorch29, V2IsStillThere) {
  namespace v2 = aotriton::v2::flash;
  const attn_fwd_params p = Forward();
  ASSERT_EQ(v2::attn_fwd(p.Q, p.K, p.V, p.B, p.Sm_scale, p.L, p.Out, 0, p.philox_seed_ptr, p.philox_offset1, 0, p.philox_seed_output,
                         p.philox_offset_output, p.encoded_softmax, true, p.persistent_atomic_counter, stream_),
            hipSuccess) << aotriton_last_error();
  ExpectBase(kNatural);
}

}  // namespace
