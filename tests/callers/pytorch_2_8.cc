// As PyTorch 2.8 calls AOTriton 0.10: v2, and v3 with structs of version 1 for sliding windows.
#include "tests/callers/caller.h"

namespace {

using namespace caller;
using namespace aotriton::v3::flash;

static_assert(AOTRITON_VERSION_MAJOR * 100 + AOTRITON_VERSION_MINOR == 10);
static_assert(attn_fwd_params::kVersion == 1 && attn_bwd_params::kVersion == 1);

class PyTorch28 : public CallerTest {
 protected:
  // What the caller sets. B, A, cu_seqlens stay as the constructor left them.
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
    params.causal_type = CausalType::WindowedAttention;
    params.varlen_type = 0;
    return params;
  }
};

// A window on one side only, not causal: the other side is the sentinel, and there is no counter.
TEST_F(PyTorch28, AWindowWithoutACounter) {
  attn_fwd_params params = Forward();
  params.persistent_atomic_counter = T0::get_null_tensor(DType::kInt32);
  params.window_left = 16;
  params.window_right = WindowValue::TopLeftAligned;
  ASSERT_EQ(attn_fwd(params, attn_fwd_params::kVersion, stream_), hipSuccess) << aotriton_last_error();
  const fake_hip::Launch launch = fake_hip::Launches().at(0);
  EXPECT_EQ(launch.id, "bf16.64.1.aligned.0.0.m64");
  EXPECT_EQ(launch.arguments.at("window_left").integer(), 16);
  EXPECT_EQ(launch.arguments.at("window_right").integer(), -2147483647);
  ExpectBase(kBaseTwo);
}

// -1 is a number here, as in upstream: row m sees the keys from m + 1 to m - 1, none. (The releases of
// PyTorch that mean "no bound" by it and pass it on got NaN from upstream; here rows of 0.)
TEST_F(PyTorch28, MinusOneIsANumber) {
  attn_fwd_params params = Forward();
  params.window_left = params.window_right = -1;
  ASSERT_EQ(attn_fwd(params, 1, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(0).arguments.at("window_left").integer(), -1);
  EXPECT_EQ(fake_hip::Launches().at(0).arguments.at("window_right").integer(), -1);
}

TEST_F(PyTorch28, TheBackwardBringsItsDelta) {
  attn_bwd_params params;
  const attn_fwd_params forward = Forward();
  params.Q = forward.Q;
  params.K = forward.K;
  params.V = forward.V;
  params.Sm_scale = forward.Sm_scale;
  params.Out = forward.Out;
  params.DO = Bshd(0x60000, kBatch, kHeads, kQueries, kDim);
  params.DQ = Bshd(0x70000, kBatch, kHeads, kQueries, kDim);
  params.DK = Bshd(0x80000, kBatch, kHeads, kKeys, kDim);
  params.DV = Bshd(0x90000, kBatch, kHeads, kKeys, kDim);
  params.L = forward.L;
  params.D = Contiguous<2>(0x51000, {kBatch * kHeads, kQueries}, DType::kFloat32);
  params.Max_seqlen_q = kQueries;
  params.Max_seqlen_k = kKeys;
  params.dropout_p = 0;
  params.philox_seed_ptr = forward.philox_seed_ptr;
  params.philox_offset1 = forward.philox_offset1;
  params.philox_offset2 = 0;
  params.causal_type = CausalType::WindowedAttention;
  params.varlen_type = 0;
  params.window_left = 16;
  params.window_right = 0;
  ASSERT_EQ(attn_bwd(params, attn_bwd_params::kVersion, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), kSplit);
  EXPECT_EQ(fake_hip::Launches()[1].arguments.at("Delta").pointer(), params.D.data_ptr());
  ExpectBase(kBaseTwo);
  // Options had no fields: their byte is not taken for anything.
  const attn_options options;
  ASSERT_EQ(sizeof(options), 1u);
  EXPECT_EQ(attn_bwd(params, 1, stream_, &options), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(attn_fwd(forward, 1, stream_, &options), hipSuccess) << aotriton_last_error();
}

TEST_F(PyTorch28, WithoutAWindowV2) {
  namespace v2 = aotriton::v2::flash;
  const attn_fwd_params p = Forward();
  ASSERT_EQ(v2::attn_fwd(p.Q, p.K, p.V, p.B, p.Sm_scale, p.L, p.Out, 0, p.philox_seed_ptr, p.philox_offset1, 0, p.philox_seed_output,
                         p.philox_offset_output, p.encoded_softmax, true, T0(0xE1000, DType::kInt32), stream_),
            hipSuccess) << aotriton_last_error();
  ExpectBase(kBaseTwo);
}

}  // namespace
