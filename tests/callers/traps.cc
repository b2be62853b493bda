// What callers of several releases do that looks wrong and is theirs to do. The traps that belong to one
// release are in that caller's program.
#include <cstring>

#include "tests/callers/caller.h"

namespace {

using namespace caller;
using namespace aotriton::v3::flash;

// The out-of-line constructors that programs built against upstream's headers import.
extern "C" void FwdConstructor(void* self) __asm__("_ZN8aotriton2v35flash15attn_fwd_paramsC1Ev");
extern "C" void BwdConstructor(void* self) __asm__("_ZN8aotriton2v35flash15attn_bwd_paramsC1Ev");

class Traps : public CallerTest {
 protected:
  static attn_fwd_params Forward() {
    attn_fwd_params params;
    params.Q = Bshd(0x10000, kBatch, kHeads, kQueries, kDim);
    params.K = Bshd(0x20000, kBatch, kHeads, kKeys, kDim);
    params.V = Bshd(0x30000, kBatch, kHeads, kKeys, kDim);
    params.Out = Bshd(0x40000, kBatch, kHeads, kQueries, kDim);
    params.L = Contiguous<2>(0x50000, {kBatch * kHeads, kQueries}, DType::kFloat32);
    params.Sm_scale = 0.125f;
    return params;
  }

  fake_hip::Launch Launch(const attn_fwd_params& params) {
    fake_hip::Clear();
    EXPECT_EQ(attn_fwd(params, attn_fwd_params::kVersion, stream_), hipSuccess) << aotriton_last_error();
    return fake_hip::Launches().at(0);
  }
};

// An object of an older, smaller struct on the caller's stack, constructed by this library: nothing behind
// it is written, and the views that the caller leaves alone are null.
TEST_F(Traps, AnObjectOfAnOlderRelease) {
  struct Layout {
    int32_t version;
    size_t size;
  };
  for (const Layout& layout : {Layout{1, 768}, Layout{3, 832}, Layout{4, 832}}) {
    alignas(16) unsigned char object[2000];
    memset(object, 0xA5, sizeof(object));
    FwdConstructor(object);
    for (size_t i = layout.size; i < sizeof(object); ++i) ASSERT_EQ(object[i], 0xA5) << i;
    // What PyTorch assigns; of the rest the constructor made null views. In version 4 varlen_bits, at 828,
    // stay what they were.
    const attn_fwd_params now = Forward();
    const auto* bytes = reinterpret_cast<const unsigned char*>(&now);
    const size_t without = layout.version == 1 ? 64 : 0;  // seq_strides, in the middle
    const auto assign = [&](size_t offset, size_t size) { memcpy(object + offset - (offset >= 640 ? without : 0), bytes + offset, size); };
    assign(0, 240);     // Q, K, V
    assign(368, 4);     // Sm_scale
    assign(376, 128);   // L, Out
    assign(640, 176);   // from dropout_p to the counter
    assign(816, layout.version < 4 ? 2 : 1);  // causal_type, varlen_type
    fake_hip::Clear();
    ASSERT_EQ(attn_fwd(reinterpret_cast<const attn_fwd_params&>(object), layout.version, stream_), hipSuccess) << aotriton_last_error();
    EXPECT_EQ(fake_hip::Launches().at(0).id, "bf16.64.0.aligned.0.0.m64");
  }
  for (const size_t size : {1040, 1232, 1240}) {
    alignas(16) unsigned char object[2000];
    memset(object, 0xA5, sizeof(object));
    BwdConstructor(object);
    for (size_t i = size; i < sizeof(object); ++i) ASSERT_EQ(object[i], 0xA5) << i;
  }
}

TEST_F(Traps, OddStridesAndBases) {
  // [..., :64] of rows of 65; a base aligned to its elements only.
  attn_fwd_params params = Forward();
  params.Q = T4(0x10000, {kBatch, kHeads, kQueries, kDim}, {kHeads * kQueries * 65, kQueries * 65, 65, 1}, DType::kBFloat16);
  fake_hip::Launch launch = Launch(params);
  EXPECT_EQ(launch.id, "bf16.64.1.any.1.1.m64");
  EXPECT_EQ(launch.arguments.at("stride_qm").integer(), 65);
  params = Forward();
  params.V = Bshd(0x30002, kBatch, kHeads, kKeys, kDim);
  EXPECT_EQ(Launch(params).id, "bf16.64.1.any.1.1.m64");
  // Not even to them: the GPU would read something else.
  params.V = Bshd(0x30001, kBatch, kHeads, kKeys, kDim);
  EXPECT_EQ(attn_fwd(params, attn_fwd_params::kVersion, stream_), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "v is at address 196609; it must be a multiple of 2, the size of its elements");
}

TEST_F(Traps, ExpandedInputs) {
  attn_fwd_params params = Forward();
  params.K = T4(0x20000, {kBatch, kHeads, kKeys, kDim}, {0, 0, kDim, 1}, DType::kBFloat16);
  params.V = T4(0x30000, {kBatch, kHeads, kKeys, kDim}, {0, kKeys * kDim, kDim, 1}, DType::kBFloat16);
  params.Q = T4(0x10000, {kBatch, kHeads, kQueries, kDim}, {kHeads * kDim, kDim, 0, 1}, DType::kBFloat16);
  const fake_hip::Launch launch = Launch(params);
  EXPECT_EQ(launch.arguments.at("stride_kh").integer(), 0);
  EXPECT_EQ(launch.arguments.at("stride_vh").integer(), static_cast<int64_t>(kKeys * kDim));  // not that of K
  EXPECT_EQ(launch.arguments.at("stride_qm").integer(), 0);
  params.Out = T4(0x40000, {kBatch, kHeads, kQueries, kDim}, {kHeads * kQueries * kDim, 0, kDim, 1}, DType::kBFloat16);
  EXPECT_EQ(attn_fwd(params, attn_fwd_params::kVersion, stream_), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "out has stride 0 in dimension 1 of size 4; an output cannot be expanded, its elements would overwrite each other");
}

TEST_F(Traps, MoreHeadsThanAGridDimensionHolds) {
  attn_fwd_params params = Forward();
  params.Q = params.Out = Bshd(0x10000, 20000, kHeads, 10, kDim);
  params.K = params.V = Bshd(0x20000, 20000, kHeads, 10, kDim);
  params.L = Contiguous<2>(0x50000, {20000 * kHeads, 10}, DType::kFloat32);
  const fake_hip::Launch launch = Launch(params);
  EXPECT_EQ(launch.grid[0], 20000u * kHeads);
  EXPECT_EQ(launch.grid[1] * launch.grid[2], 1u);
}

TEST_F(Traps, EveryElementDropped) {
  attn_fwd_params params = Forward();
  params.dropout_p = 1;
  params.philox_seed_ptr = Scalar(0xE0000);
  params.philox_offset1 = Scalar(0xE0008, DType::kUInt64);
  EXPECT_EQ(Launch(params).arguments.at("dropout_p").real(), 1);
}

// The direct op of memory-efficient attention can be given both.
TEST_F(Traps, ABiasUnderACausalMask) {
  attn_fwd_params params = Forward();
  params.B = T4(0xB0000, {kBatch, kHeads, kQueries, kKeys}, {0, 0, kKeys, 1}, DType::kBFloat16);
  params.causal_type = CausalType::WindowedAttention;
  params.window_left = params.window_right = WindowValue::TopLeftAligned;
  EXPECT_EQ(Launch(params).id, "bf16.64.1.aligned.1.0.m64");
}

// A null view says nothing, whatever stands in it.
TEST_F(Traps, NullViewsOfAnything) {
  attn_fwd_params params = Forward();
  std::array<uint64_t, 4> four;
  four.fill(0xDEADBEEFDEADBEEF);
  params.B = params.encoded_softmax = T4(0, four, four, static_cast<DType>(99));
  params.A = T2(0, {7, 7}, {7, 7}, DType::kInt8);
  params.cu_seqlens_q = params.cu_seqlens_k = params.seq_strides_q = params.seq_strides_k = T1(0, {3}, {9}, DType::kFloat16);
  params.philox_seed_output = params.philox_offset_output = params.persistent_atomic_counter = T0(0, DType::kUInt8);
  EXPECT_EQ(Launch(params).id, "bf16.64.0.aligned.0.0.m64");
}

// With no dropout the four pointers may be of the host, or nothing at all; they are not even passed on.
TEST_F(Traps, PhiloxPointersWithoutDropout) {
  attn_fwd_params params = Forward();
  params.Q = T4(0x10000, {kBatch, kHeads, kQueries, kDim}, {kHeads * kQueries * 65, kQueries * 65, 65, 1}, DType::kBFloat16);
  params.philox_seed_ptr = T0(1, DType::kInt64);
  params.philox_offset1 = T0(2, DType::kFloat16);
  params.philox_offset2 = ~uint64_t{0};
  params.philox_seed_output = params.philox_offset_output = T0(3, DType::kInt64);
  const fake_hip::Launch launch = Launch(params);
  for (const char* name : {"philox_seed", "philox_offset1", "philox_seed_output", "philox_offset_output"}) {
    EXPECT_EQ(launch.arguments.at(name).pointer(), nullptr) << name;
  }

  attn_bwd_params backward;
  backward.Q = backward.DQ = params.Q;
  backward.K = backward.DK = params.K;
  backward.V = backward.DV = params.V;
  backward.Out = backward.DO = params.Out;
  backward.L = backward.D.eager = params.L;
  backward.philox_seed_ptr = params.philox_seed_ptr;
  backward.philox_offset1 = params.philox_offset1;
  fake_hip::Clear();
  ASSERT_EQ(attn_bwd(backward, attn_bwd_params::kVersion, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(2).arguments.at("philox_seed").pointer(), nullptr);
  EXPECT_EQ(fake_hip::Launches().at(2).arguments.at("has_dropout").integer(), 0);
}

// Asked two or three times for each call of PyTorch.
TEST_F(Traps, CheckGpuDoesNothingButLook) {
  const hipStream_t other = fake_hip::AddStream(fake_hip::AddDevice("gfx942"));
  int before = -1, after = -1;
  ASSERT_EQ(hipGetDevice(&before), hipSuccess);
  for (int i = 0; i < 5; ++i) ASSERT_EQ(aotriton::v2::flash::check_gpu(other), hipSuccess) << aotriton_last_error();
  ASSERT_EQ(hipGetDevice(&after), hipSuccess);
  EXPECT_EQ(before, after);
  EXPECT_TRUE(fake_hip::Loads().empty());
  EXPECT_TRUE(fake_hip::Launches().empty());
  EXPECT_EQ(fake_hip::Calls("hipSetDevice"), 0);
  EXPECT_EQ(fake_hip::Calls("hipGetDevicePropertiesR0600"), 1);
}

}  // namespace
