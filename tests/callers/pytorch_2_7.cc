// As PyTorch 2.7 calls AOTriton 0.9: v2 with a counter, the fused backward chosen by itself.
#include "tests/callers/caller.h"

namespace {

using namespace caller;
using namespace aotriton::v2::flash;

static_assert(AOTRITON_VERSION_MAJOR == 0 && AOTRITON_VERSION_MINOR == 9);

class PyTorch27 : public CallerTest {
 protected:
  const T4 q_ = Bshd(0x10000, kBatch, kHeads, kQueries, kDim), k_ = Bshd(0x20000, kBatch, kHeads, kKeys, kDim);
  const T4 out_ = Bshd(0x40000, kBatch, kHeads, kQueries, kDim), no_bias_ = T4::get_null_tensor(DType::kFloat16);
  const T2 lse_ = Contiguous<2>(0x50000, {kBatch * kHeads, kQueries}, DType::kFloat32);
  const T0 seed_ = Scalar(0xE0000), offset_ = Scalar(0xE0008), none_ = T0::get_null_tensor(DType::kInt64);
};

TEST_F(PyTorch27, FlashWithACounter) {
  ASSERT_EQ(check_gpu(aotriton::Stream(stream_)), hipSuccess);
  EXPECT_FALSE(aotriton::isArchExperimentallySupported(stream_));
  // A zeroed int32 of the device if causal, else null.
  for (const bool is_causal : {false, true}) {
    const T0 counter(is_causal ? 0xE1000 : 0, DType::kInt32);
    ASSERT_EQ(attn_fwd(q_, k_, k_, no_bias_, 0.125f, lse_, out_, 0, seed_, offset_, 0, none_, none_, no_bias_, is_causal, counter, stream_),
              hipSuccess) << aotriton_last_error();
  }
  EXPECT_EQ(fake_hip::Launches().at(0).id, "bf16.64.0.aligned.0.0.m64");
  EXPECT_EQ(fake_hip::Launches().at(1).symbol, "attn_fwd_persistent");
  EXPECT_EQ(fake_hip::Launches().at(1).arguments.at("persistent_counter").pointer(), reinterpret_cast<void*>(0xE1000));
  ExpectBase(kBaseTwo);
}

// While a graph is captured the generator's numbers stay on the device; the backward is given what the
// forward wrote down.
TEST_F(PyTorch27, DropoutUnderCapture) {
  const T0 generator_seed = Scalar(0xE2000, DType::kUInt64), generator_offset = Scalar(0xE2008, DType::kUInt64);
  const T0 seed_output = Scalar(0xE3000), offset_output = Scalar(0xE3008);
  ASSERT_EQ(attn_fwd(q_, k_, k_, no_bias_, 0.125f, lse_, out_, 0.1f, generator_seed, generator_offset, 16, seed_output, offset_output, no_bias_,
                     false, T0(0, DType::kInt32), stream_),
            hipSuccess) << aotriton_last_error();
  const fake_hip::Launch forward = fake_hip::Launches().at(0);
  EXPECT_EQ(forward.arguments.at("philox_seed").pointer(), generator_seed.data_ptr());
  EXPECT_EQ(forward.arguments.at("philox_offset1").pointer(), generator_offset.data_ptr());
  EXPECT_EQ(forward.arguments.at("philox_offset2").integer(), 16);
  EXPECT_EQ(forward.arguments.at("philox_seed_output").pointer(), seed_output.data_ptr());
  EXPECT_EQ(forward.arguments.at("philox_offset_output").pointer(), offset_output.data_ptr());

  fake_hip::Clear();
  ASSERT_EQ(attn_bwd_fused(q_, k_, k_, no_bias_, 0.125f, out_, out_, q_, k_, k_, no_bias_, lse_, 0.1f, seed_output, offset_output, 0, false,
                           stream_),
            hipSuccess) << aotriton_last_error();
  ASSERT_EQ(Symbols(), (std::vector<std::string>{"bwd_fused"}));
  EXPECT_EQ(fake_hip::Launches()[0].arguments.at("philox_seed").pointer(), seed_output.data_ptr());
  EXPECT_EQ(fake_hip::Launches()[0].arguments.at("philox_offset2").integer(), 0);
  ExpectBase(kBaseTwo);
}

TEST_F(PyTorch27, VarlenHasItsBiasBeforeTheLengths) {
  const T4 q = Bshd(0x10000, 1, kHeads, kTotalQ, kDim), k = Bshd(0x20000, 1, kHeads, kTotalK, kDim);
  const T1 cu_q = Contiguous<1>(0xD0000, {kSequences + 1}, DType::kInt32), cu_k = Contiguous<1>(0xD1000, {kSequences + 1}, DType::kInt32);
  const T2 lse = Contiguous<2>(0x50000, {kSequences * kHeads, kMaxQ}, DType::kFloat32);
  ASSERT_EQ(attn_fwd_compact_varlen(q, k, k, no_bias_, cu_q, cu_k, kMaxQ, kMaxK, 0.125f, lse, q, 0, seed_, offset_, 0, none_, none_, no_bias_, true,
                                    T0(0xE1000, DType::kInt32), stream_),
            hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(0).arguments.at("cu_seqlens_k").pointer(), cu_k.data_ptr());
  EXPECT_EQ(fake_hip::Launches().at(0).arguments.at("lse_compact").integer(), 0);
}

// The tests of PyTorch: scalars of the device, and only the sign is looked at.
TEST_F(PyTorch27, FillsTheMask) {
  const T4 r = Contiguous<4>(0xF0000, {kBatch, kHeads, kQueries, kKeys}, DType::kFloat32);
  ASSERT_EQ(debug_simulate_encoded_softmax(r, 0.1f, seed_, offset_, 0, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(0).arguments.at("philox_seed").pointer(), seed_.data_ptr());
}

}  // namespace
