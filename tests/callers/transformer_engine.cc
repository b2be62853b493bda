// As ROCm's TransformerEngine calls its private AOTriton 0.11: v3 forward, v2 backward, a suffix.
#include "tests/callers/caller.h"

namespace aotriton = AOTRITON_NS;

namespace {

using namespace caller;

static_assert(AOTRITON_ENABLE_SUFFIX == 1);
static_assert(AOTRITON_VERSION_MAJOR * 100 + AOTRITON_VERSION_MINOR == 11);

TEST(TransformerEngineNames, TheSuffixIsBakedIn) {
  EXPECT_STREQ(typeid(aotriton_TEprivate::Stream).name(), typeid(aotriton::Stream).name());
  EXPECT_STREQ(aotriton_TEprivate_version(), "0.11.2");
}

class TransformerEngine : public CallerTest {};

TEST_F(TransformerEngine, ForwardAndBackward) {
  namespace v2 = aotriton::v2::flash;
  namespace v3 = aotriton::v3::flash;
  // sbhd: (sequence, batch, head, head_dim), and packed queries, keys and values: (sequence, batch, 3, head, head_dim).
  const uint64_t row = kBatch * 3 * kHeads * kDim;
  const auto packed = [&](uint64_t part) {
    return v3::T4(static_cast<intptr_t>(0x10000 + part * kHeads * kDim * 2), {kBatch, kHeads, kQueries, kDim}, {3 * kHeads * kDim, kDim, row, 1},
                  aotriton::kFloat16);
  };
  v3::attn_fwd_params params;
  params.Q = packed(0);
  params.K = packed(1);
  params.V = packed(2);
  params.Sm_scale = 0.125f;
  params.L = v3::T2(0x50000, {kBatch * kHeads, kQueries}, {kQueries, 1}, aotriton::kFloat32);
  params.Out = v3::T4(0x40000, {kBatch, kHeads, kQueries, kDim}, {kHeads * kDim, kDim, kBatch * kHeads * kDim, 1}, aotriton::kFloat16);
  params.Max_seqlen_q = params.Max_seqlen_k = kQueries;
  params.dropout_p = 0.1f;
  params.philox_seed_ptr = v3::T0(0xE0000, aotriton::kInt64);  // a pair on the device: the seed, the offset
  params.philox_offset1 = v3::T0(0xE0008, aotriton::kInt64);
  params.philox_offset2 = 0;
  params.philox_seed_output = v3::T0(0, aotriton::kInt64);
  params.philox_offset_output = v3::T0(0, aotriton::kInt64);
  params.encoded_softmax = v3::T4(0, {0, 0, 0, 0}, {1, 1, 1, 1}, aotriton::kFloat16);
  params.persistent_atomic_counter = v3::T0(0xE1000, aotriton::kInt32);  // given even without a mask
  params.causal_type = v3::CausalType::None;
  params.varlen_type = v3::VarlenType::None;
  params.window_left = params.window_right = 0;
  ASSERT_EQ(v3::attn_fwd(params, v3::attn_fwd_params::kVersion, aotriton::Stream(stream_)), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(0).id, "fp16.64.0.aligned.0.1.m64");
  EXPECT_EQ(fake_hip::Launches().at(0).arguments.at("stride_qm").integer(), static_cast<int64_t>(row));
  EXPECT_EQ(fake_hip::Launches().at(0).arguments.at("stride_om").integer(), static_cast<int64_t>(kBatch * kHeads * kDim));

  const v3::T4 no_bias(0, {0, 0, 0, 0}, {0, 0, 0, 0}, aotriton::kFloat16);
  const v3::T2 delta(0x51000, {kBatch * kHeads, kQueries}, {kQueries, 1}, aotriton::kFloat32);
  ASSERT_EQ(v2::attn_bwd(params.Q, params.K, params.V, no_bias, 0.125f, params.Out, params.Out, packed(0), packed(1), packed(2), no_bias, params.L,
                         delta, 0.1f, params.philox_seed_ptr, params.philox_offset1, 0, false, aotriton::Stream(stream_)),
            hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), (std::vector<std::string>{"attn_fwd", "bwd_preprocess", "bwd_dkdv", "bwd_dq"}));
  EXPECT_EQ(fake_hip::Launches()[3].arguments.at("philox_offset1").pointer(), params.philox_offset1.data_ptr());
  ExpectBase(kNatural);
}

}  // namespace
