// As PyTorch 2.6 calls AOTriton 0.8: no counter, a bias behind max_seqlen_k, logsumexp in base 2.
#include "tests/callers/caller.h"

namespace {

using namespace caller;
using namespace aotriton::v2::flash;
using aotriton::Stream;

static_assert(AOTRITON_VERSION_MAJOR == 0 && AOTRITON_VERSION_MINOR == 8);

class PyTorch26 : public CallerTest {
 protected:
  const T4 q_ = Bshd(0x10000, kBatch, kHeads, kQueries, kDim), k_ = Bshd(0x20000, kBatch, kHeads, kKeys, kDim);
  const T4 v_ = Bshd(0x30000, kBatch, kHeads, kKeys, kDim), out_ = Bshd(0x40000, kBatch, kHeads, kQueries, kDim);
  const T2 lse_ = Contiguous<2>(0x50000, {kBatch * kHeads, kQueries}, DType::kFloat32);
  const T2 delta_ = Contiguous<2>(0x51000, {kBatch * kHeads, kQueries}, DType::kFloat32);
  const T4 dout_ = Bshd(0x60000, kBatch, kHeads, kQueries, kDim), dq_ = Bshd(0x70000, kBatch, kHeads, kQueries, kDim);
  const T4 dk_ = Bshd(0x80000, kBatch, kHeads, kKeys, kDim), dv_ = Bshd(0x90000, kBatch, kHeads, kKeys, kDim);
  // Null, with whatever dtype.
  const T4 no_bias_ = T4::get_null_tensor(DType::kFloat16);
  const T0 no_output_ = T0::get_null_tensor(DType::kInt64);
  // An empty tensor of rank 4.
  const T4 no_mask_ = T4(0, {0, 0, 0, 0}, {1, 1, 1, 1}, DType::kBFloat16);
};

TEST_F(PyTorch26, FlashTrainsWithDropout) {
  ASSERT_EQ(check_gpu(Stream(stream_)), hipSuccess);
  hipError_t error = attn_fwd(q_, k_, v_, no_bias_, 0.125f, lse_, out_, 0.5f, Scalar(0xE0000), Scalar(0xE0008), 0, no_output_, no_output_,
                              no_mask_, true, stream_);
  ASSERT_EQ(error, hipSuccess) << aotriton_last_error();
  error = attn_bwd(q_, k_, v_, no_bias_, 0.125f, out_, dout_, dq_, dk_, dv_, no_bias_, lse_, delta_, 0.5f, Scalar(0xE0000), Scalar(0xE0008),
                   0, true, stream_);
  ASSERT_EQ(error, hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), (std::vector<std::string>{"attn_fwd", "bwd_preprocess", "bwd_dkdv", "bwd_dq"}));
  ExpectBase(kBaseTwo);
  const fake_hip::Launch forward = fake_hip::Launches()[0];
  EXPECT_EQ(forward.id, "bf16.64.1.aligned.0.1.m64");
  EXPECT_EQ(forward.arguments.at("stride_qm").integer(), static_cast<int64_t>(kHeads * kDim));
  EXPECT_EQ(forward.arguments.at("window_right").integer(), -2147483647);  // top left
}

TEST_F(PyTorch26, VarlenHasItsBiasBehindTheLengths) {
  const T4 q = Bshd(0x10000, 1, kHeads, kTotalQ, kDim), k = Bshd(0x20000, 1, kHeads, kTotalK, kDim);
  const T1 cu_q = Contiguous<1>(0xD0000, {kSequences + 1}, DType::kInt32), cu_k = Contiguous<1>(0xD1000, {kSequences + 1}, DType::kInt32);
  const T2 lse = Contiguous<2>(0x50000, {kSequences * kHeads, kMaxQ}, DType::kFloat32);
  const T2 delta = Contiguous<2>(0x51000, {kSequences * kHeads, kMaxQ}, DType::kFloat32);
  hipError_t error = attn_fwd_compact_varlen(q, k, k, cu_q, cu_k, kMaxQ, kMaxK, no_bias_, 0.125f, lse, q, 0, Scalar(0xE0000), Scalar(0xE0008), 0,
                                             no_output_, no_output_, no_mask_, false, stream_);
  ASSERT_EQ(error, hipSuccess) << aotriton_last_error();
  error = attn_bwd_compact_varlen(q, k, k, cu_q, cu_k, kMaxQ, kMaxK, no_bias_, 0.125f, q, q, q, k, k, no_bias_, lse, delta, 0,
                                  Scalar(0xE0000), Scalar(0xE0008), 0, false, stream_);
  ASSERT_EQ(error, hipSuccess) << aotriton_last_error();
  ExpectBase(kBaseTwo);
  for (const fake_hip::Launch& launch : fake_hip::Launches()) {
    EXPECT_EQ(launch.arguments.at("varlen_type").integer(), 1);
    EXPECT_EQ(launch.arguments.at("lse_compact").integer(), 0);
    EXPECT_EQ(launch.arguments.at("stride_lz").integer(), static_cast<int64_t>(kHeads) * kMaxQ);  // (sequences, heads, max_seqlen_q)
  }
}

// Memory-efficient attention: a bias whose broadcast dimensions have stride 0, rows padded to 8; odd head
// dims; with no dropout the seed and the offset are uninitialised tensors of the host.
TEST_F(PyTorch26, MemoryEfficientWithBias) {
  const T4 bias(0xB0000, {kBatch, kHeads, kQueries, kKeys}, {0, 0, kKeys, 1}, DType::kBFloat16);
  const T4 dbias = Contiguous<4>(0xC0000, {kBatch, kHeads, kQueries, kKeys}, DType::kBFloat16);
  int64_t uninitialised[2] = {-1, -1};
  const T0 seed = Scalar(reinterpret_cast<uintptr_t>(&uninitialised[0])), offset = Scalar(reinterpret_cast<uintptr_t>(&uninitialised[1]));
  hipError_t error = attn_fwd(q_, k_, v_, bias, 0.125f, lse_, out_, 0, seed, offset, 0, no_output_, no_output_, no_mask_, false, stream_);
  ASSERT_EQ(error, hipSuccess) << aotriton_last_error();
  error = attn_bwd(q_, k_, v_, bias, 0.125f, out_, dout_, dq_, dk_, dv_, dbias, lse_, delta_, 0, seed, offset, 0, false, stream_);
  ASSERT_EQ(error, hipSuccess) << aotriton_last_error();
  for (const fake_hip::Launch& launch : fake_hip::Launches()) {
    EXPECT_EQ(launch.arguments.count("philox_seed"), 0u) << launch.symbol;  // a kernel without dropout
    EXPECT_EQ(launch.id.find("bf16.64."), 0u);
  }
  EXPECT_EQ(fake_hip::Launches()[0].arguments.at("stride_bz").integer(), 0);
  EXPECT_EQ(fake_hip::Launches()[0].arguments.at("stride_bm").integer(), static_cast<int64_t>(kKeys));

  const T4 odd = Bshd(0x10002, kBatch, kHeads, kQueries, 5);
  error = attn_fwd(odd, odd, odd, no_bias_, 0.5f, lse_, odd, 0, seed, offset, 0, no_output_, no_output_, no_mask_, false, stream_);
  ASSERT_EQ(error, hipSuccess) << aotriton_last_error();
  const fake_hip::Launch launch = fake_hip::Launches().back();
  EXPECT_EQ(launch.id, "bf16.16.1.any.1.1.m64");  // one kernel for all of it, switched off by arguments
  EXPECT_EQ(launch.arguments.at("has_dropout").integer(), 0);
  EXPECT_EQ(launch.arguments.at("philox_seed").pointer(), nullptr);
  EXPECT_EQ(launch.arguments.at("philox_offset1").pointer(), nullptr);
}

// The one logsumexp that cannot hold what the forward writes: memory-efficient attention takes the batch,
// 1, for the number of sequences.
TEST_F(PyTorch26, ALogsumexpThatIsTooSmallIsRefused) {
  const T4 q = Bshd(0x10000, 1, kHeads, kTotalQ, kDim), k = Bshd(0x20000, 1, kHeads, kTotalK, kDim);
  const T1 cu_q = Contiguous<1>(0xD0000, {kSequences + 1}, DType::kInt32), cu_k = Contiguous<1>(0xD1000, {kSequences + 1}, DType::kInt32);
  const T2 lse = Contiguous<2>(0x50000, {1 * kHeads, kMaxQ}, DType::kFloat32);
  const auto call = [&](const T1& of_q, const T1& of_k, const T2& logsumexp, int32_t max_q) {
    return attn_fwd_compact_varlen(q, k, k, of_q, of_k, max_q, 0, no_bias_, 0.125f, logsumexp, q, 0, {}, {}, 0, no_output_, no_output_,
                                   no_mask_, false, stream_);
  };
  EXPECT_EQ(call(cu_q, cu_k, lse, kMaxQ), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "logsumexp has sizes (4, 60); it must be (4, 130): num_head_q, rows of q; or (3, 4, 60) or (12, 60): "
                                      "sequences, num_head_q, max_seqlen_q");
  EXPECT_TRUE(fake_hip::Launches().empty());
  // Of one sequence it is right, and none is welcome.
  const T1 one = Contiguous<1>(0xD0000, {2}, DType::kInt32);
  EXPECT_EQ(call(one, one, lse, kMaxQ), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(call(cu_q, cu_k, T2::get_null_tensor(DType::kFloat32), kMaxQ), hipSuccess) << aotriton_last_error();
}

// The tests of PyTorch: numbers of the host, an fp32 tensor.
TEST_F(PyTorch26, FillsRandomNumbers) {
  const T4 r = Contiguous<4>(0xF0000, {kBatch, kHeads, kQueries, kKeys}, DType::kFloat32);
  ASSERT_EQ(debug_fill_dropout_rng(r, uint64_t{114514}, uint64_t{1919810}, stream_), hipSuccess) << aotriton_last_error();
  const fake_hip::Launch launch = fake_hip::Launches().at(0);
  EXPECT_EQ(launch.id, "fp32.m64");
  EXPECT_EQ(launch.arguments.at("philox_seed").integer(), 114514);
  EXPECT_EQ(launch.arguments.at("philox_offset").integer(), 1919810);
}

}  // namespace
