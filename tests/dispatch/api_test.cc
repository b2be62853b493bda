// The C, v2 and v3 APIs on fake GPUs. Every test takes devices of its own: what the library
// learns of a device it keeps.
#include <aotriton/aotriton.h>
#include <aotriton/flash.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/dispatch/allocations.h"
#include "tests/dispatch/fake_hip.h"
#include "tests/dispatch/support.h"

namespace {

using support::Call;
using support::Images;
namespace v2 = aotriton::v2::flash;
namespace v3 = aotriton::v3::flash;

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

int CurrentDevice() {
  int device = -1;
  EXPECT_EQ(hipGetDevice(&device), hipSuccess);
  return device;
}

class ApiTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* arch : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}) images_.Install(arch);
    device_ = fake_hip::AddDevice("gfx942:sramecc+:xnack-");
    stream_ = fake_hip::AddStream(device_);
    ASSERT_EQ(hipSetDevice(device_), hipSuccess);
    fake_hip::Clear();
  }

  Images images_;
  int device_ = 0;
  hipStream_t stream_ = nullptr;
};

aotriton::TensorView<4> View(const aotriton_tensor& t) {
  std::array<uint64_t, 4> sizes, strides;
  for (int i = 0; i < 4; ++i) {
    sizes[i] = static_cast<uint64_t>(t.sizes[i]);
    strides[i] = static_cast<uint64_t>(t.strides[i]);
  }
  return {reinterpret_cast<intptr_t>(t.data), sizes, strides, static_cast<aotriton::DType>(t.dtype)};
}

// What a caller leaves in a view that it does not use: a null base and anything else.
template <int Rank>
aotriton::TensorView<Rank> GarbageNull() {
  std::array<uint64_t, Rank> garbage;
  garbage.fill(0xDEADBEEFDEADBEEF);
  return {0, garbage, garbage, static_cast<aotriton::DType>(99)};
}

v3::attn_fwd_params Params() {
  const aotriton_attn_fwd_args args = Call();
  v3::attn_fwd_params params;
  params.Q = View(args.q);
  params.K = View(args.k);
  params.V = View(args.v);
  params.Out = View(args.out);
  params.L = {0x50000, {16, 1000}, {0xDEAD, 0xDEAD}, aotriton::kFloat32};  // strides are not read
  params.B = GarbageNull<4>();
  params.A = GarbageNull<2>();
  params.cu_seqlens_q = params.cu_seqlens_k = GarbageNull<1>();
  params.encoded_softmax = GarbageNull<4>();
  params.Sm_scale = 0.25f;
  return params;
}

TEST_F(ApiTest, LaunchesOnce) {
  aotriton_attn_fwd_args args = Call();
  ASSERT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
  EXPECT_STREQ(aotriton_last_error(), "");
  ASSERT_EQ(fake_hip::Launches().size(), 1u);
  const fake_hip::Launch launch = fake_hip::Launches()[0];
  EXPECT_EQ(launch.id, "bf16.64.0.aligned.0.0.m128");
  EXPECT_EQ(launch.symbol, "attn_fwd");
  EXPECT_EQ(launch.stream, stream_);
  EXPECT_EQ(launch.device, device_);
  EXPECT_EQ(launch.grid[0], 8u * 8 * 2);
  EXPECT_EQ(launch.grid[1] * launch.grid[2], 1u);
  EXPECT_EQ(launch.block[0], 256u);
  EXPECT_EQ(launch.block[1] * launch.block[2], 1u);
  EXPECT_EQ(launch.shared, 8192u);
  EXPECT_EQ(launch.arguments.at("Q").pointer(), args.q.data);
  EXPECT_EQ(launch.arguments.at("L").pointer(), args.logsumexp.data);
  EXPECT_EQ(launch.arguments.at("sm_scale").real(), 0.125f);
  EXPECT_EQ(launch.arguments.at("stride_qz").integer(), 8 * 1000 * 64);
  EXPECT_EQ(launch.arguments.at("num_head_k").integer(), 2);
  EXPECT_EQ(launch.arguments.at("store_lse").integer(), 1);
  EXPECT_EQ(launch.arguments.at("profile_scratch").pointer(), nullptr);
}

TEST_F(ApiTest, LoadsACodeObjectOncePerDevice) {
  aotriton_attn_fwd_args args = Call();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(aotriton_attn_fwd(&args, stream_), 0);
  EXPECT_EQ(fake_hip::Loads().size(), 1u);
  args = Call(AOTRITON_BFLOAT16, {2, 8, 100, 64}, 2, 700, 64);  // the other choice
  for (int i = 0; i < 2; ++i) ASSERT_EQ(aotriton_attn_fwd(&args, stream_), 0);
  EXPECT_EQ(fake_hip::Loads().size(), 2u);
  const int twin = fake_hip::AddDevice("gfx942");
  const hipStream_t twin_stream = fake_hip::AddStream(twin);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(aotriton_attn_fwd(&args, twin_stream), 0) << aotriton_last_error();
  ASSERT_EQ(fake_hip::Loads().size(), 3u);
  EXPECT_EQ(fake_hip::Loads()[2].device, twin);
  EXPECT_EQ(fake_hip::Loads()[2].hash, fake_hip::Loads()[1].hash);
  EXPECT_EQ(fake_hip::Launches().size(), 7u);
}

TEST_F(ApiTest, FollowsTheStreamNotTheCurrentDevice) {
  const int other = fake_hip::AddDevice("gfx1100");
  const hipStream_t other_stream = fake_hip::AddStream(other);
  aotriton_attn_fwd_args args = Call();
  ASSERT_EQ(aotriton_attn_fwd(&args, other_stream), 0) << aotriton_last_error();
  EXPECT_EQ(CurrentDevice(), device_);
  ASSERT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
  ASSERT_EQ(aotriton_attn_fwd(&args, nullptr), 0) << aotriton_last_error();
  ASSERT_EQ(fake_hip::Launches().size(), 3u);
  EXPECT_EQ(fake_hip::Launches()[0].device, other);
  EXPECT_EQ(fake_hip::Launches()[1].device, device_);
  EXPECT_EQ(fake_hip::Launches()[2].device, device_);
  // A refusal restores it too.
  fake_hip::Fail("hipModuleLaunchKernel", hipErrorOutOfMemory, 1);
  EXPECT_EQ(aotriton_attn_fwd(&args, other_stream), hipErrorOutOfMemory);
  EXPECT_STREQ(aotriton_last_error(), "hipModuleLaunchKernel failed: hipErrorOutOfMemory (2)");
  EXPECT_EQ(CurrentDevice(), device_);
}

TEST_F(ApiTest, AFailedLoadLeavesNothingBehind) {
  aotriton_attn_fwd_args args = Call();
  for (const char* call : {"hipModuleLoadData", "hipModuleGetFunction"}) {
    fake_hip::Fail(call, hipErrorOutOfMemory, 1);
    EXPECT_EQ(aotriton_attn_fwd(&args, stream_), hipErrorOutOfMemory);
    const std::string text = aotriton_last_error();
    EXPECT_TRUE(Contains(text, std::string(call) + " failed: hipErrorOutOfMemory (2), for the code object attn_fwd (")) << text;
    EXPECT_TRUE(Contains(text, images_.PathOf("gfx942"))) << text;
  }
  EXPECT_EQ(fake_hip::Calls("hipModuleUnload"), 1);
  EXPECT_TRUE(fake_hip::Launches().empty());
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), 0);
  EXPECT_EQ(fake_hip::Launches().size(), 1u);
}

TEST_F(ApiTest, AFailedLookUpOfTheDeviceLeavesNothingBehind) {
  for (const char* call : {"hipStreamGetDevice", "hipGetDevicePropertiesR0600", "hipGetDevice"}) {
    fake_hip::Fail(call, hipErrorInvalidDevice, 1);
    aotriton_attn_fwd_args args = Call();
    EXPECT_EQ(aotriton_attn_fwd(&args, stream_), hipErrorInvalidDevice) << call;
    EXPECT_TRUE(Contains(aotriton_last_error(), "failed: hipErrorInvalidDevice (101)")) << aotriton_last_error();
    EXPECT_EQ(aotriton_attn_fwd(&args, stream_), 0) << call << aotriton_last_error();
    device_ = fake_hip::AddDevice("gfx942");
    stream_ = fake_hip::AddStream(device_);
  }
}

TEST_F(ApiTest, PrepareThenCallLoadsNothing) {
  aotriton_attn_fwd_args args = Call();
  ASSERT_EQ(aotriton_attn_fwd_prepare(&args, stream_), 0) << aotriton_last_error();
  EXPECT_TRUE(fake_hip::Launches().empty());
  EXPECT_EQ(fake_hip::Loads().size(), 1u);
  fake_hip::Fail("hipModuleLoadData", hipErrorStreamCaptureUnsupported, 1000);
  fake_hip::Fail("hipGetDevicePropertiesR0600", hipErrorStreamCaptureUnsupported, 1000);
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().size(), 1u);
}

TEST_F(ApiTest, APreparedCallAllocatesNothing) {
  aotriton_attn_fwd_args args = Call();
  const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice("gfx950"));
  for (int i = 0; i < 2; ++i) ASSERT_EQ(aotriton_attn_fwd_prepare(&args, stream), 0) << aotriton_last_error();
  const int before = AllocationsOfThisThread();
  // All of a call but the launch, which the fake runtime would log.
  const aotriton_status status = aotriton_attn_fwd_prepare(&args, stream);
  const int after = AllocationsOfThisThread();
  EXPECT_EQ(status, 0);
  EXPECT_EQ(after - before, 0);
}

TEST_F(ApiTest, SupportedLoadsNothing) {
  aotriton_attn_fwd_args args = Call();
  EXPECT_EQ(aotriton_attn_fwd_supported(&args, stream_), 0);
  EXPECT_TRUE(fake_hip::Loads().empty());
  args.q.dtype = 22;
  EXPECT_EQ(aotriton_attn_fwd_supported(&args, stream_), hipErrorNotSupported);
  EXPECT_TRUE(Contains(aotriton_last_error(), "q has dtype 22"));
}

TEST_F(ApiTest, AMissingPackIsNamedAndLookedForAgain) {
  unlink(images_.PathOf("gfx942").c_str());
  aotriton_attn_fwd_args args = Call();
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), hipErrorFileNotFound);
  EXPECT_EQ(std::string(aotriton_last_error()),
            "there is no pack of attn_fwd for this GPU, gfx942: tried " + images_.PathOf("gfx942") +
                ". Install aotriton.images/amd-gfx942 beside the library, or set AOTRITON_IMAGES_DIR to the aotriton.images that has it");
  EXPECT_EQ(v2::check_gpu(stream_), hipErrorFileNotFound);
  images_.Install("gfx942");
  EXPECT_EQ(v2::check_gpu(stream_), hipSuccess);
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
}

TEST_F(ApiTest, ADamagedPackIsNamedAndReadAgain) {
  std::string bytes = support::ReadFile(support::PackOf("gfx942"));
  bytes[300] ^= 1;
  support::WriteFile(images_.PathOf("gfx942"), bytes);
  aotriton_attn_fwd_args args = Call();
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), hipErrorInvalidImage);
  EXPECT_EQ(std::string(aotriton_last_error()), "the pack " + images_.PathOf("gfx942") +
                                                    " is damaged: the CRC-32 of its index differs from its header's. Copy or build it again");
  images_.Install("gfx942", support::BadPack("other_abi"));
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), hipErrorInvalidImage);
  EXPECT_TRUE(Contains(aotriton_last_error(), "do not belong together: its abi is \"999\"")) << aotriton_last_error();
  images_.Install("gfx942");
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
}

TEST_F(ApiTest, ACodeObjectThatTheGpuRefusesIsNamed) {
  aotriton_attn_fwd_args args = Call();
  images_.Install("gfx942", support::BadPack("no_code"));
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), hipErrorInvalidImage);
  EXPECT_TRUE(Contains(aotriton_last_error(), "hipModuleLoadData failed: hipErrorInvalidImage (200), for the code object attn_fwd (23 bytes, "))
      << aotriton_last_error();
  images_.Install("gfx942");
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
}

TEST_F(ApiTest, ASymbolThatTheCodeObjectLacksIsNamed) {
  aotriton_attn_fwd_args args = Call();
  images_.Install("gfx942", support::BadPack("other_symbol"));
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), hipErrorNotFound);
  EXPECT_TRUE(Contains(aotriton_last_error(), "hipModuleGetFunction failed: hipErrorNotFound (500), for the code object attn_bwd"))
      << aotriton_last_error();
}

TEST_F(ApiTest, UnknownArchsAreRefusedWithTheKnownOnes) {
  for (const char* arch : {"gfx900", "", "sm_90", ":xnack-"}) {
    const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice(arch));
    aotriton_attn_fwd_args args = Call();
    const std::string name = arch[0] == ':' ? "" : arch;
    EXPECT_EQ(aotriton_attn_fwd(&args, stream), hipErrorNoBinaryForGpu) << arch;
    EXPECT_TRUE(Contains(aotriton_last_error(), "the GPU has arch \"" + name + "\"; the library knows ")) << aotriton_last_error();
    EXPECT_TRUE(Contains(aotriton_last_error(), "gfx942")) << aotriton_last_error();
    EXPECT_EQ(v2::check_gpu(stream), hipErrorNoBinaryForGpu);
    EXPECT_EQ(aotriton::getGpuFromStream(stream), aotriton::GPU_ARCH_UNKNOWN);
    EXPECT_FALSE(aotriton::isArchExperimentallySupported(stream));
  }
}

TEST_F(ApiTest, NumbersEveryArch) {
  const std::pair<const char*, uint64_t> gpus[] = {{"gfx90a", 0x1002090a0000},  {"gfx942:sramecc+", 0x100209420000}, {"gfx950", 0x100209500000},
                                                   {"gfx1100", 0x100211000000}, {"gfx1201", 0x100212010000}};
  for (const auto& [arch, number] : gpus) {
    const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice(arch));
    EXPECT_EQ(aotriton::getGpuFromStream(stream), number) << arch;
    EXPECT_FALSE(aotriton::isArchExperimentallySupported(stream)) << arch;
    EXPECT_FALSE(aotriton::isArchTechPreview(stream)) << arch;
  }
}

TEST_F(ApiTest, TellsProductsOfAnArchApart) {
  struct Case {
    const char* arch;
    int multiprocessors;
    double memory_gib;
    aotriton::Gpu gpu;
  };
  for (const Case& c : {
           Case{"gfx942:sramecc+:xnack-", 304, 191.98, aotriton::GPU_AMD_ARCH_GFX942_MOD0},  // MI300X
           Case{"gfx942:sramecc+:xnack-", 228, 127.5, aotriton::GPU_AMD_ARCH_GFX942_MOD1},   // MI300A
           Case{"gfx942:sramecc+:xnack-", 304, 255.98, aotriton::GPU_AMD_ARCH_GFX942_MOD2},  // MI325X
           Case{"gfx942:sramecc+:xnack-", 38, 23.9, aotriton::GPU_AMD_ARCH_GFX942_MOD0},     // an eighth of any
           Case{"gfx942:sramecc+:xnack-", 304, 512, aotriton::GPU_AMD_ARCH_GFX942_MOD0},
           Case{"gfx90a:sramecc+:xnack-", 228, 127.5, aotriton::GPU_AMD_ARCH_GFX90A_MOD0},
       }) {
    const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice(c.arch, c.multiprocessors, c.memory_gib));
    EXPECT_EQ(aotriton::getGpuFromStream(stream), c.gpu) << c.arch << " " << c.multiprocessors << " " << c.memory_gib;
  }
}

TEST_F(ApiTest, AnswersQuestionsAboutGpus) {
  const int device = fake_hip::AddDevice("gfx90a:sramecc+:xnack-", 110);
  const hipStream_t stream = fake_hip::AddStream(device);
  EXPECT_EQ(aotriton::getGpuFromStream(stream), aotriton::GPU_AMD_ARCH_GFX90A_MOD0);
  EXPECT_EQ(aotriton::getGpuFromStream(stream_), aotriton::GPU_AMD_ARCH_GFX942_MOD0);
  EXPECT_EQ(aotriton::Gpu2VendorArch(aotriton::GPU_AMD_ARCH_GFX90A_MOD0), aotriton::CAT32(0x1002, 0x90a));
  EXPECT_FALSE(aotriton::isArchExperimentallySupported(stream));
  EXPECT_FALSE(aotriton::isArchTechPreview(stream));
  EXPECT_EQ(aotriton::getMultiProcessorCount(stream), 110);
  fake_hip::Fail("hipStreamGetDevice", hipErrorInvalidDevice, 1);
  EXPECT_EQ(aotriton::getMultiProcessorCount(stream), 40);
  EXPECT_EQ(v2::check_gpu(stream), hipSuccess);

  char arch[16];
  EXPECT_EQ(aotriton_gpu_arch(stream, arch, sizeof(arch)), 0);
  EXPECT_STREQ(arch, "gfx90a");
  EXPECT_EQ(aotriton_gpu_arch(stream, arch, 6), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "size is 6; \"gfx90a\" needs 7");
  EXPECT_EQ(aotriton_gpu_arch(stream, arch, 7), 0);
  EXPECT_EQ(aotriton_gpu_arch(stream, nullptr, 7), hipErrorInvalidValue);

  char level[16];
  EXPECT_EQ(aotriton_gpu_level(stream, level, sizeof(level)), 0);
  EXPECT_STREQ(level, "supported");
  EXPECT_EQ(aotriton_gpu_level(fake_hip::AddStream(fake_hip::AddDevice("gfx1151")), level, sizeof(level)), 0);
  EXPECT_STREQ(level, "experimental");
  EXPECT_EQ(aotriton_gpu_level(stream, level, 9), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "size is 9; \"supported\" needs 10");
  EXPECT_EQ(aotriton_gpu_level(fake_hip::AddStream(fake_hip::AddDevice("gfx906")), level, sizeof(level)), hipErrorNoBinaryForGpu);
  EXPECT_STREQ(aotriton_version(), "0.12.0");
}

TEST_F(ApiTest, ChecksTheCStruct) {
  EXPECT_EQ(aotriton_attn_fwd(nullptr, stream_), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "args is null");
  aotriton_attn_fwd_args args = Call();
  args.struct_size = 8;
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), hipErrorInvalidValue);
  EXPECT_TRUE(Contains(aotriton_last_error(), "args->struct_size is 8; it must be sizeof(aotriton_attn_fwd_args), ")) << aotriton_last_error();

  // A caller built against a later header: fields that this library does not know must be 0.
  struct {
    aotriton_attn_fwd_args args;
    uint64_t later;
  } longer = {Call(), 0};
  longer.args.struct_size = sizeof(longer);
  EXPECT_EQ(aotriton_attn_fwd(&longer.args, stream_), 0) << aotriton_last_error();
  longer.later = 1;
  EXPECT_EQ(aotriton_attn_fwd(&longer.args, stream_), hipErrorNotSupported);
  EXPECT_TRUE(Contains(aotriton_last_error(), "Use a newer library")) << aotriton_last_error();
}

TEST_F(ApiTest, IgnoresWindowsThatAreNotOn) {
  aotriton_attn_fwd_args args = Call();
  args.window_left = args.window_right = 77;
  ASSERT_EQ(aotriton_attn_fwd(&args, stream_), 0);
  args.is_windowed = 1;
  ASSERT_EQ(aotriton_attn_fwd(&args, stream_), 0);
  EXPECT_EQ(fake_hip::Launches()[0].id, "bf16.64.0.aligned.0.0.m128");
  EXPECT_EQ(fake_hip::Launches()[1].id, "bf16.64.1.aligned.0.0.m128");
  EXPECT_EQ(fake_hip::Launches()[1].arguments.at("window_left").integer(), 77);
}

TEST_F(ApiTest, EmptyOutputSucceedsAndLaunchesNothing) {
  aotriton_attn_fwd_args args = Call(AOTRITON_FLOAT16, {0, 8, 10, 64}, 2, 10, 64);
  args.q.data = args.k.data = args.v.data = args.out.data = nullptr;
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
  EXPECT_TRUE(fake_hip::Launches().empty());
}

TEST_F(ApiTest, V3TakesVersion3) {
  v3::attn_fwd_params params = Params();
  params.causal_type = v3::CausalType::WindowedAttention;
  params.window_left = 128;
  params.window_right = v3::WindowValue::BottomRightAligned;
  ASSERT_EQ(v3::attn_fwd(params, v3::attn_fwd_params::kVersion, stream_), hipSuccess) << aotriton_last_error();
  ASSERT_EQ(fake_hip::Launches().size(), 1u);
  const fake_hip::Launch launch = fake_hip::Launches()[0];
  EXPECT_EQ(launch.id, "bf16.64.1.aligned.0.0.m128");
  EXPECT_EQ(launch.arguments.at("window_left").integer(), 128);
  EXPECT_EQ(launch.arguments.at("window_right").integer(), -2147483646);
  EXPECT_EQ(launch.arguments.at("sm_scale").real(), 0.25f);
  EXPECT_EQ(launch.arguments.at("L").pointer(), reinterpret_cast<void*>(0x50000));
  const v3::attn_options options;
  EXPECT_EQ(v3::attn_fwd(params, 3, stream_, &options), hipSuccess);
}

TEST_F(ApiTest, V3TakesVersion1) {
  // The older struct: the same bytes up to 576, then without 64 bytes of seq_strides.
  v3::attn_fwd_params params = Params();
  params.causal_type = v3::CausalType::WindowedAttention;
  params.window_left = -5;
  params.window_right = 9;
  alignas(16) unsigned char old[768 + 64];
  memset(old, 0xA5, sizeof(old));  // what lies behind the caller's object
  memcpy(old, &params, 576);
  memcpy(old + 576, reinterpret_cast<const unsigned char*>(&params) + 640, 768 - 576);
  ASSERT_EQ(v3::attn_fwd(reinterpret_cast<const v3::attn_fwd_params&>(old), 1, stream_), hipSuccess) << aotriton_last_error();
  const fake_hip::Launch launch = fake_hip::Launches().at(0);
  EXPECT_EQ(launch.id, "bf16.64.1.aligned.0.0.m128");
  EXPECT_EQ(launch.arguments.at("window_left").integer(), -5);
  EXPECT_EQ(launch.arguments.at("window_right").integer(), 9);
  EXPECT_EQ(launch.arguments.at("Out").pointer(), reinterpret_cast<void*>(0x40000));
}

TEST_F(ApiTest, PersistentScheduleRunsWhatFitsAtOnce) {
  const auto counter = reinterpret_cast<int32_t*>(0xF0000);
  v3::attn_fwd_params params = Params();
  params.causal_type = v3::CausalType::WindowedAttention;
  params.persistent_atomic_counter = {0xF0000, aotriton::kInt32};
  ASSERT_EQ(v3::attn_fwd(params, 3, stream_), hipSuccess) << aotriton_last_error();
  aotriton_attn_fwd_args args = Call();
  args.is_windowed = 1;
  args.persistent_counter = counter;
  ASSERT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
  ASSERT_EQ(v2::attn_fwd(View(args.q), View(args.k), View(args.v), {}, 0.5f, {}, View(args.out), 0, {}, {}, 0, {}, {}, {}, true,
                         {0xF0000, aotriton::kInt32}, stream_),
            hipSuccess)
      << aotriton_last_error();
  for (int call = 0; call < 3; ++call) {
    const fake_hip::Launch launch = fake_hip::Launches().at(call);
    EXPECT_EQ(launch.symbol, "attn_fwd_persistent");
    EXPECT_EQ(launch.grid[0], 128u);  // all tiles: 304 * 4 work groups would fit
    EXPECT_EQ(launch.arguments.at("persistent_counter").pointer(), counter);
  }
  const int device = fake_hip::AddDevice("gfx942", 20);
  ASSERT_EQ(aotriton_attn_fwd(&args, fake_hip::AddStream(device)), 0) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(3).grid[0], 80u);
  EXPECT_EQ(fake_hip::Launches().at(3).arguments.at("num_programs").integer(), 80);
  // The fp16 kernels of the test packs read it in 64 bits.
  aotriton_attn_fwd_args wide = args;
  for (aotriton_tensor* t : {&wide.q, &wide.k, &wide.v, &wide.out}) t->dtype = AOTRITON_FLOAT16;
  ASSERT_EQ(aotriton_attn_fwd(&wide, fake_hip::AddStream(device)), 0) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(4).grid[0], 80u);
  EXPECT_EQ(fake_hip::Launches().at(4).arguments.at("num_programs").integer(), 80);
  // How many fit is asked once, with the load; a failure of it is not remembered.
  const hipStream_t fresh = fake_hip::AddStream(fake_hip::AddDevice("gfx942", 20));
  fake_hip::Fail("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", hipErrorInvalidValue, 1);
  EXPECT_EQ(aotriton_attn_fwd_prepare(&args, fresh), hipErrorInvalidValue);
  EXPECT_EQ(aotriton_attn_fwd_prepare(&args, fresh), 0) << aotriton_last_error();
  const int asked = fake_hip::Calls("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
  EXPECT_EQ(aotriton_attn_fwd(&args, fresh), 0) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Calls("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"), asked);
  EXPECT_EQ(fake_hip::Launches().size(), 6u);
}

TEST_F(ApiTest, V3RefusesByName) {
  struct Case {
    void (*spoil)(v3::attn_fwd_params*);
    hipError_t code;
    const char* text;
  };
  const Case cases[] = {
      {[](v3::attn_fwd_params* p) { p->B = p->Q; }, hipErrorInvalidValue, "bias has sizes (2, 8, 1000, 64); dimension 3 must be 700, that of k's dimension 2"},
      {[](v3::attn_fwd_params* p) { p->A = p->L; }, hipErrorNotSupported, "A (alibi slopes) is given; this library does not support it: pass a null view"},
      {[](v3::attn_fwd_params* p) { p->cu_seqlens_q = {64, {3}, {1}, aotriton::kInt32}; }, hipErrorInvalidValue, "cu_seqlens_k is null; varlen_type 1 (compact) requires it"},
      {[](v3::attn_fwd_params* p) { p->cu_seqlens_k = {64, {3}, {1}, aotriton::kInt32}; }, hipErrorInvalidValue, "cu_seqlens_k is given, and varlen_type is 0 (none), which does not use it: pass null"},
      {[](v3::attn_fwd_params* p) { p->seq_strides_k = {64, {3}, {1}, aotriton::kInt32}; }, hipErrorInvalidValue, "seq_starts_k is given, and varlen_type is 0 (none), which does not use it: pass null"},
      {[](v3::attn_fwd_params* p) { p->encoded_softmax = p->Q; }, hipErrorInvalidValue, "encoded_softmax has sizes (2, 8, 1000, 64); it must be (2, 8, 1000, 700): sequences, num_head_q, max_seqlen_q, max_seqlen_k"},
      {[](v3::attn_fwd_params* p) { p->dropout_p = 0.5f; p->philox_offset1 = {8, aotriton::kInt64}; }, hipErrorInvalidValue, "philox_seed is null; dropout_p is 0.5 and requires a device pointer"},
      {[](v3::attn_fwd_params* p) { p->dropout_p = 0.5f; p->philox_seed_ptr = {8, aotriton::kFloat32}; }, hipErrorInvalidValue, "philox_seed has dtype 1; it must be int64 (13) or uint64 (23)"},
      {[](v3::attn_fwd_params* p) { p->varlen_type = 9; }, hipErrorNotSupported, "varlen_type is 9; it must be 0 (none), 1 (compact), 2 (padded) or 3 (strided)"},
      {[](v3::attn_fwd_params* p) { p->varlen_type = 2; }, hipErrorInvalidValue, "cu_seqlens_q is null; varlen_type 2 (padded) requires it"},
      {[](v3::attn_fwd_params* p) { p->causal_type = 1; }, hipErrorNotSupported, "causal_type is 1; it must be 0 (None) or 3 (WindowedAttention)"},
      {[](v3::attn_fwd_params* p) { p->K = {}; }, hipErrorInvalidValue, "k is null; a device pointer is required"},
      {[](v3::attn_fwd_params* p) { p->V = {0x30000, {2, 2, 700, 64}, {89600, 44800, 64, 2}, aotriton::kBFloat16}; }, hipErrorInvalidValue, "v has last stride 2; it must be 1"},
      {[](v3::attn_fwd_params* p) { p->Q = {0x30000, {2, 8, 1000, 64}, {512000, 64000, 64, 1}, static_cast<aotriton::DType>(4)}; }, hipErrorNotSupported, "q has dtype 4; supported are fp32 (1), fp16 (2) and bf16 (3)"},
      {[](v3::attn_fwd_params* p) { p->L = {0x50000, {16, 999}, {999, 1}, aotriton::kFloat32}; }, hipErrorInvalidValue, "logsumexp has sizes (16, 999); it must be (2, 8, 1000) or (16, 1000): batch, num_head_q, seqlen_q"},
  };
  for (const Case& c : cases) {
    v3::attn_fwd_params params = Params();
    c.spoil(&params);
    EXPECT_EQ(v3::attn_fwd(params, 3, stream_), c.code) << c.text;
    EXPECT_STREQ(aotriton_last_error(), c.text);
  }
  for (int version : {0, 2, 5, -1}) {
    EXPECT_EQ(v3::attn_fwd(Params(), version, stream_), hipErrorInvalidSymbol);
    EXPECT_EQ(aotriton_last_error(), "params_version is " + std::to_string(version) +
                                         "; this library knows 1 (AOTriton 0.10 and 0.11), 3 (0.12 and 0.13) and 4 (0.14)");
  }
  v3::attn_options options;
  options.force_backend_index = 1;
  EXPECT_EQ(v3::attn_fwd(Params(), 3, stream_, &options), hipErrorNotSupported);
  EXPECT_STREQ(aotriton_last_error(), "the backend hopper cannot take the call: it is for sm_90, the GPU is gfx942");
  options.force_backend_index = 2;
  EXPECT_EQ(v3::attn_fwd(Params(), 3, stream_, &options), hipErrorNotSupported);
  EXPECT_STREQ(aotriton_last_error(), "force_backend_index is 2; it must be -1 (the library chooses), 0 (triton) or 1 (hopper)");
  EXPECT_TRUE(fake_hip::Launches().empty());
}

TEST_F(ApiTest, V3IgnoresWhatCallersLeaveUnset) {
  v3::attn_fwd_params params = Params();
  params.causal_type = v3::CausalType::None;
  params.window_left = params.window_right = -1234567;
  params.Max_seqlen_q = params.Max_seqlen_k = -77;
  params.philox_seed_ptr = {1, aotriton::kInt64};  // with no dropout these may be host addresses, or nonsense
  params.philox_offset1 = {1, aotriton::kUInt64};
  params.philox_seed_output = params.philox_offset_output = {3, aotriton::kInt64};
  params.persistent_atomic_counter = {5, aotriton::kInt32};
  EXPECT_EQ(v3::attn_fwd(params, 3, stream_), hipSuccess) << aotriton_last_error();
  params.L = aotriton::TensorView<2>::get_null_tensor(aotriton::kFloat16);
  EXPECT_EQ(v3::attn_fwd(params, 3, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(0).id, "bf16.64.0.aligned.0.0.m128");
  EXPECT_EQ(fake_hip::Launches().at(1).arguments.at("store_lse").integer(), 0);
}

TEST_F(ApiTest, V2Forward) {
  const aotriton_attn_fwd_args args = Call();
  const auto call = [&](bool is_causal, v2::T4 bias, float dropout_p, v2::T4 encoded_softmax) {
    return v2::attn_fwd(View(args.q), View(args.k), View(args.v), bias, 0.5f, {0x50000, {16, 1000}, {1000, 1}, aotriton::kFloat32},
                        View(args.out), dropout_p, {1, aotriton::kInt64}, {2, aotriton::kUInt64}, 7, {}, {}, encoded_softmax, is_causal,
                        {}, stream_);
  };
  ASSERT_EQ(call(false, GarbageNull<4>(), 0, GarbageNull<4>()), hipSuccess) << aotriton_last_error();
  ASSERT_EQ(call(true, {}, 0, {}), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(0).id, "bf16.64.0.aligned.0.0.m128");
  const fake_hip::Launch causal = fake_hip::Launches().at(1);
  EXPECT_EQ(causal.id, "bf16.64.1.aligned.0.0.m128");
  EXPECT_EQ(causal.arguments.at("window_left").integer(), -2147483647);
  EXPECT_EQ(causal.arguments.at("window_right").integer(), -2147483647);
  EXPECT_EQ(call(false, View(args.q), 0, {}), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "bias has sizes (2, 8, 1000, 64); dimension 3 must be 700, that of k's dimension 2");
  EXPECT_EQ(call(false, {}, -0.5f, {}), hipSuccess) << aotriton_last_error();  // not positive: no dropout
  EXPECT_EQ(call(false, {}, NAN, {}), hipErrorInvalidValue);
}

std::vector<std::string> Symbols() {
  std::vector<std::string> out;
  for (const fake_hip::Launch& launch : fake_hip::Launches()) out.push_back(launch.symbol);
  return out;
}

const std::vector<std::string> kSplit = {"bwd_preprocess", "bwd_dkdv", "bwd_dq"};

// Where a test's numbers for Philox lie.
const auto kSeed = reinterpret_cast<uint64_t*>(0xE0000);
const auto kOffset = reinterpret_cast<uint64_t*>(0xE0008);

TEST_F(ApiTest, AShorterStructAsksForNothingNew) {
  aotriton_attn_fwd_args args = Call();
  args.bias = args.q;  // nonsense that an older caller's memory may hold behind its struct
  args.varlen_type = 77;
  args.dropout_p = -3;
  args.reserved = 0x5a5a5a5a;
  for (uint32_t size : {420u, 424u}) {
    args.struct_size = size;
    EXPECT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
  }
  args.struct_size = 419;
  EXPECT_EQ(aotriton_attn_fwd(&args, stream_), hipErrorInvalidValue);
  static_assert(offsetof(aotriton_attn_fwd_args, reserved) == 420 && offsetof(aotriton_attn_fwd_args, bias) == 424);
}

TEST_F(ApiTest, CTakesBiasDropoutAndVariableLengths) {
  aotriton_attn_fwd_args args = Call();
  args.bias = support::BackwardCall().bias;
  args.dropout_p = 0.5f;
  args.philox_seed = kSeed;
  args.philox_offset1 = kOffset;
  args.philox_offset2 = 99;
  args.philox_seed_output = kSeed + 2;
  ASSERT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
  args = Call();
  support::MakeCompact(&args);
  ASSERT_EQ(aotriton_attn_fwd(&args, stream_), 0) << aotriton_last_error();
  const fake_hip::Launch both = fake_hip::Launches().at(0), compact = fake_hip::Launches().at(1);
  EXPECT_EQ(both.id, "bf16.64.0.aligned.1.1.m128");
  EXPECT_EQ(both.arguments.at("stride_bm").integer(), 704);
  EXPECT_EQ(both.arguments.at("philox_seed").pointer(), kSeed);
  EXPECT_EQ(both.arguments.at("philox_offset2").integer(), 99);
  EXPECT_EQ(both.arguments.at("philox_seed_output").pointer(), kSeed + 2);
  EXPECT_EQ(both.arguments.at("philox_offset_output").pointer(), nullptr);
  EXPECT_EQ(compact.grid[0], 5u * 8 * 3);
  EXPECT_EQ(compact.arguments.at("lse_compact").integer(), 1);
  EXPECT_EQ(compact.arguments.at("cu_seqlens_k").pointer(), args.cu_seqlens_k.data);
}

TEST_F(ApiTest, CBackward) {
  aotriton_attn_bwd_args args = support::BackwardCall();
  ASSERT_EQ(aotriton_attn_bwd_supported(&args, stream_), 0) << aotriton_last_error();
  EXPECT_TRUE(fake_hip::Loads().empty());
  ASSERT_EQ(aotriton_attn_bwd_prepare(&args, stream_), 0) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Loads().size(), 3u);
  EXPECT_TRUE(fake_hip::Launches().empty());
  fake_hip::Fail("hipModuleLoadData", hipErrorStreamCaptureUnsupported, 1000);
  ASSERT_EQ(aotriton_attn_bwd(&args, stream_), 0) << aotriton_last_error();
  EXPECT_EQ(Symbols(), kSplit);
  for (const fake_hip::Launch& launch : fake_hip::Launches()) EXPECT_EQ(launch.stream, stream_);
  const fake_hip::Launch dq = fake_hip::Launches()[2];
  EXPECT_EQ(dq.id, "bf16.64.0.aligned.1.0.m128");
  EXPECT_EQ(dq.arguments.at("DB").pointer(), args.dbias.data);
  EXPECT_EQ(dq.arguments.at("has_db").integer(), 1);
  EXPECT_EQ(dq.arguments.at("Delta").pointer(), args.delta.data);

  fake_hip::Clear();
  args.backend = AOTRITON_BWD_FUSED;
  ASSERT_EQ(aotriton_attn_bwd(&args, stream_), 0) << aotriton_last_error();
  args.backend = AOTRITON_BWD_DEFAULT;
  args.delta = {};
  ASSERT_EQ(aotriton_attn_bwd(&args, stream_), 0) << aotriton_last_error();
  EXPECT_EQ(Symbols(), (std::vector<std::string>{"bwd_fused", "bwd_fused"}));
  args.backend = AOTRITON_BWD_SPLIT;
  EXPECT_EQ(aotriton_attn_bwd(&args, stream_), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "delta is null; a device pointer is required");
  args.backend = 7;
  EXPECT_EQ(aotriton_attn_bwd(&args, stream_), hipErrorNotSupported);
  EXPECT_EQ(aotriton_attn_bwd(nullptr, stream_), hipErrorInvalidValue);
  args.struct_size -= 8;
  EXPECT_EQ(aotriton_attn_bwd(&args, stream_), hipErrorInvalidValue);
  EXPECT_TRUE(Contains(aotriton_last_error(), "it must be sizeof(aotriton_attn_bwd_args), ")) << aotriton_last_error();

  fake_hip::Clear();
  args = support::BackwardCall();
  support::MakeCompact(&args);
  ASSERT_EQ(aotriton_attn_bwd(&args, stream_), 0) << aotriton_last_error();
  EXPECT_EQ(Symbols(), kSplit);
}

TEST_F(ApiTest, APreparedBackwardAllocatesNothing) {
  aotriton_attn_bwd_args args = support::BackwardCall();
  for (int i = 0; i < 2; ++i) ASSERT_EQ(aotriton_attn_bwd_prepare(&args, stream_), 0) << aotriton_last_error();
  const int before = AllocationsOfThisThread();
  const aotriton_status status = aotriton_attn_bwd_prepare(&args, stream_);
  const int after = AllocationsOfThisThread();
  EXPECT_EQ(status, 0);
  EXPECT_EQ(after - before, 0);
}

TEST_F(ApiTest, EverythingIsLoadedBeforeTheFirstLaunch) {
  const aotriton_attn_bwd_args args = support::BackwardCall();
  for (const char* call : {"hipModuleLoadData", "hipModuleGetFunction"}) {
    for (int loaded : {0, 1, 2}) {
      device_ = fake_hip::AddDevice("gfx942");
      stream_ = fake_hip::AddStream(device_);
      fake_hip::Clear();
      fake_hip::Fail(call, hipErrorOutOfMemory, 1, loaded);
      EXPECT_EQ(aotriton_attn_bwd(&args, stream_), hipErrorOutOfMemory);
      EXPECT_TRUE(Contains(aotriton_last_error(), std::string(call) + " failed: hipErrorOutOfMemory (2), for the code object " + kSplit[loaded]))
          << aotriton_last_error();
      EXPECT_TRUE(fake_hip::Launches().empty());
      // What was loaded stays, what failed is loaded again.
      EXPECT_EQ(aotriton_attn_bwd(&args, stream_), 0) << aotriton_last_error();
      EXPECT_EQ(Symbols(), kSplit);
    }
  }
  // A launch that fails is the end.
  for (int launched : {0, 1, 2}) {
    fake_hip::Clear();
    fake_hip::Fail("hipModuleLaunchKernel", hipErrorOutOfMemory, 1, launched);
    EXPECT_EQ(aotriton_attn_bwd(&args, stream_), hipErrorOutOfMemory);
    EXPECT_EQ(fake_hip::Launches().size(), static_cast<size_t>(launched));
  }
}

TEST_F(ApiTest, AMissingPackOfTheBackwardIsNamed) {
  for (const std::string kernel : {"bwd_preprocess", "bwd_dkdv", "bwd_dq"}) {
    aotriton_attn_bwd_args args = support::BackwardCall();
    args.backend = AOTRITON_BWD_SPLIT;
    stream_ = fake_hip::AddStream(fake_hip::AddDevice("gfx942"));
    const std::string path = images_.PathOf("gfx942", "amd", kernel);
    unlink(path.c_str());
    EXPECT_EQ(aotriton_attn_bwd(&args, stream_), hipErrorFileNotFound);
    EXPECT_EQ(aotriton_last_error(), "there is no pack of " + kernel + " for this GPU, gfx942: tried " + path +
                                         ". Install aotriton.images/amd-gfx942 beside the library, or set AOTRITON_IMAGES_DIR to the "
                                         "aotriton.images that has it");
    // Its place may not be taken by another kernel's.
    support::WriteFile(path, support::ReadFile(support::PackOf("gfx942")));
    EXPECT_EQ(aotriton_attn_bwd(&args, stream_), hipErrorInvalidImage);
    EXPECT_TRUE(Contains(aotriton_last_error(), "its kernel is \"attn_fwd\", expected is \"" + kernel + "\"")) << aotriton_last_error();
    EXPECT_EQ(v2::check_gpu(stream_), hipSuccess);  // the forward is there
    images_.Install("gfx942");
  }
  EXPECT_TRUE(fake_hip::Launches().empty());
}

TEST_F(ApiTest, DropoutMaskOnTheHost) {
  uint8_t keep[2 * 3 * 5 * 6];
  memset(keep, 7, sizeof(keep));
  ASSERT_EQ(aotriton_dropout_mask(5, 6, 0.5f, 2, 3, 5, 6, keep), 0);
  uint8_t row[6];
  ASSERT_EQ(aotriton_dropout_mask(5, 6 + 29 * 2, 0.5f, 1, 1, 1, 6, row), 0);  // the last of 30 rows, 2 counters each
  EXPECT_EQ(memcmp(row, keep + 29 * 6, 6), 0);
  for (uint8_t k : keep) EXPECT_LE(k, 1);
  EXPECT_EQ(aotriton_dropout_mask(5, 6, 0.5f, 1, 1, 1, 6, nullptr), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "keep is null");
  EXPECT_EQ(aotriton_dropout_mask(5, 6, 1.5f, 1, 1, 1, 6, row), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "dropout_p is 1.5; it must be from 0 to 1");
  EXPECT_EQ(aotriton_dropout_mask(5, 6, 0.5f, 1, -1, 1, 6, row), hipErrorInvalidValue);
  EXPECT_EQ(aotriton_dropout_mask(5, 6, 0.5f, int64_t{1} << 62, 4, 1, 6, row), hipErrorInvalidValue);
  EXPECT_EQ(aotriton_dropout_mask(5, 6, 0.5f, 0, 4, 1, 6, nullptr), 0);
}

TEST_F(ApiTest, EncodedSoftmaxOnItsOwn) {
  const aotriton_tensor mask = support::Tensor(AOTRITON_FLOAT32, {2, 8, 1000, 700}, 0xF0000);
  ASSERT_EQ(aotriton_debug_simulate_encoded_softmax(&mask, 0.5f, kSeed, kOffset, 3, stream_), 0) << aotriton_last_error();
  ASSERT_EQ(v2::debug_simulate_encoded_softmax(View(mask), 0.5f, {0xE0000, aotriton::kInt64}, {0xE0008, aotriton::kUInt64}, 3, stream_),
            hipSuccess) << aotriton_last_error();
  ASSERT_EQ(fake_hip::Launches().size(), 2u);
  for (const fake_hip::Launch& launch : fake_hip::Launches()) {
    EXPECT_EQ(launch.symbol, "debug_simulate_encoded_softmax");
    EXPECT_EQ(launch.arguments.at("R").pointer(), mask.data);
    EXPECT_EQ(launch.arguments.at("philox_seed").pointer(), kSeed);
    EXPECT_EQ(launch.arguments.at("philox_offset1").pointer(), kOffset);
    EXPECT_EQ(launch.arguments.at("philox_offset2").integer(), 3);
  }
  EXPECT_EQ(aotriton_debug_simulate_encoded_softmax(nullptr, 0.5f, kSeed, kOffset, 3, stream_), hipErrorInvalidValue);
  EXPECT_EQ(aotriton_debug_simulate_encoded_softmax(&mask, 0.5f, nullptr, kOffset, 3, stream_), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "philox_seed is null; dropout_p is 0.5 and requires a device pointer");
}

TEST_F(ApiTest, RandomNumbers) {
  const aotriton_tensor words = support::Tensor(AOTRITON_INT32, {2, 8, 1000, 700}, 0xF0000);
  const aotriton_tensor numbers = support::Tensor(AOTRITON_FLOAT32, {2, 8, 100, 700}, 0xF8000);
  ASSERT_EQ(aotriton_debug_fill_dropout_rng(&words, 0x1BF52, uint64_t{1} << 63, stream_), 0) << aotriton_last_error();
  ASSERT_EQ(v2::debug_fill_dropout_rng(View(numbers), ~uint64_t{0}, 7, stream_), hipSuccess) << aotriton_last_error();
  ASSERT_EQ(fake_hip::Launches().size(), 2u);
  const fake_hip::Launch first = fake_hip::Launches()[0], second = fake_hip::Launches()[1];
  EXPECT_EQ(first.symbol, "debug_fill_dropout_rng");
  EXPECT_EQ(first.id, "i32.m128");
  EXPECT_EQ(first.grid[0], 2u * 8 * 8);
  EXPECT_EQ(first.arguments.at("R").pointer(), words.data);
  EXPECT_EQ(first.arguments.at("stride_rz").integer(), 8 * 1000 * 700);
  EXPECT_EQ(first.arguments.at("num_head_q").integer(), 8);
  EXPECT_EQ(first.arguments.at("max_seqlen_q").integer(), 1000);
  EXPECT_EQ(first.arguments.at("max_seqlen_k").integer(), 700);
  EXPECT_EQ(first.arguments.at("philox_seed").integer(), 0x1BF52);
  EXPECT_EQ(first.arguments.at("philox_offset").integer(), INT64_MIN);
  EXPECT_EQ(second.id, "fp32.m64");
  EXPECT_EQ(second.arguments.at("philox_seed").integer(), -1);

  EXPECT_EQ(aotriton_debug_fill_dropout_rng(nullptr, 1, 2, stream_), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "random is null");
  aotriton_tensor spoiled = words;
  spoiled.dtype = AOTRITON_FLOAT16;
  EXPECT_EQ(aotriton_debug_fill_dropout_rng(&spoiled, 1, 2, stream_), hipErrorNotSupported);
  EXPECT_STREQ(aotriton_last_error(), "random has dtype 2; supported are fp32 (1) and int32 (12)");
  spoiled = words;
  spoiled.data = reinterpret_cast<void*>(0xF0002);
  EXPECT_EQ(aotriton_debug_fill_dropout_rng(&spoiled, 1, 2, stream_), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "random is at address 983042; it must be a multiple of 4, the size of its elements");
  EXPECT_EQ(v2::debug_fill_dropout_rng({}, 1, 2, stream_), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "random is null; a device pointer is required");
  spoiled = words;
  spoiled.sizes[1] = 0;
  EXPECT_EQ(aotriton_debug_fill_dropout_rng(&spoiled, 1, 2, stream_), 0);
  EXPECT_EQ(fake_hip::Launches().size(), 2u);
}

TEST_F(ApiTest, EncodedSoftmaxFollowsTheForward) {
  v3::attn_fwd_params params = Params();
  params.encoded_softmax = View(support::Tensor(AOTRITON_BFLOAT16, {2, 8, 1000, 700}, 0xF0000));
  params.dropout_p = 0.5f;
  params.philox_seed_ptr = {0xE0000, aotriton::kUInt64};
  params.philox_offset1 = {0xE0008, aotriton::kUInt64};
  fake_hip::Fail("hipModuleLoadData", hipErrorOutOfMemory, 1, 1);
  EXPECT_EQ(v3::attn_fwd(params, 3, stream_), hipErrorOutOfMemory);
  EXPECT_TRUE(fake_hip::Launches().empty());
  ASSERT_EQ(v3::attn_fwd(params, 3, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), (std::vector<std::string>{"attn_fwd", "debug_simulate_encoded_softmax"}));
  EXPECT_EQ(fake_hip::Launches()[1].arguments.at("philox_seed").pointer(), kSeed);
  params.dropout_p = 0;  // legal: everything is kept, and the pointers are not passed on
  ASSERT_EQ(v3::attn_fwd(params, 3, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches()[3].arguments.at("philox_seed").pointer(), nullptr);
}

TEST_F(ApiTest, V3ForwardOfVariableLengths) {
  aotriton_attn_fwd_args args = Call();
  support::MakeCompact(&args);
  v3::attn_fwd_params params = Params();
  params.Q = View(args.q);
  params.K = View(args.k);
  params.V = View(args.v);
  params.Out = View(args.out);
  params.L = {0x50000, {8, 1000}, {0, 0}, aotriton::kFloat32};
  params.cu_seqlens_q = {0xD0000, {4}, {1}, aotriton::kInt32};
  params.cu_seqlens_k = {0xD1000, {4}, {1}, aotriton::kInt32};
  params.Max_seqlen_q = 600;
  params.Max_seqlen_k = 0;  // PyTorch's memory-efficient attention does not know it
  for (int8_t type : {v3::VarlenType::None, v3::VarlenType::CompactVarlen}) {  // cu_seqlens_q alone says it
    params.varlen_type = type;
    ASSERT_EQ(v3::attn_fwd(params, 3, stream_), hipSuccess) << aotriton_last_error();
    const fake_hip::Launch launch = fake_hip::Launches().back();
    EXPECT_EQ(launch.grid[0], 5u * 8 * 3);
    EXPECT_EQ(launch.arguments.at("varlen_type").integer(), 1);
    EXPECT_EQ(launch.arguments.at("max_seqlen_k").integer(), 700);
    EXPECT_EQ(launch.arguments.at("lse_compact").integer(), 1);
  }
  params.L = {0x50000, {24, 600}, {0, 0}, aotriton::kFloat32};  // 0.11
  ASSERT_EQ(v3::attn_fwd(params, 3, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().back().arguments.at("stride_lz").integer(), 4800);
  params.varlen_type = v3::VarlenType::StridedVarlen;
  params.seq_strides_q = {0xD2000, {4}, {1}, aotriton::kInt32};
  params.seq_strides_k = {0xD3000, {4}, {1}, aotriton::kInt32};
  ASSERT_EQ(v3::attn_fwd(params, 3, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().back().arguments.at("seq_starts_k").pointer(), reinterpret_cast<void*>(0xD3000));
}

v3::attn_bwd_params BackwardParams() {
  const aotriton_attn_bwd_args args = support::BackwardCall();
  v3::attn_bwd_params params;
  params.Q = View(args.q);
  params.K = View(args.k);
  params.V = View(args.v);
  params.B = View(args.bias);
  params.Out = View(args.out);
  params.DO = View(args.dout);
  params.DQ = View(args.dq);
  params.DK = View(args.dk);
  params.DV = View(args.dv);
  params.DB = View(args.dbias);
  params.L = {0x50000, {16, 1000}, {0xDEAD, 0xDEAD}, aotriton::kFloat32};
  params.D.eager = {0xA0000, {16, 1000}, {0xDEAD, 0xDEAD}, aotriton::kFloat32};
  params.cu_seqlens_q = params.cu_seqlens_k = params.seq_strides_q = params.seq_strides_k = GarbageNull<1>();
  params.Sm_scale = 0.25f;
  return params;
}

TEST_F(ApiTest, V3BackwardTakesVersion6) {
  v3::attn_bwd_params params = BackwardParams();
  params.causal_type = v3::CausalType::WindowedAttention;
  params.window_left = 3;
  params.window_right = v3::WindowValue::TopLeftAligned;
  params.dropout_p = 0.5f;
  params.philox_seed_ptr = {0xE0000, aotriton::kInt64};
  params.philox_offset1 = {0xE0008, aotriton::kInt64};
  params.philox_offset2 = 17;
  ASSERT_EQ(v3::attn_bwd(params, v3::attn_bwd_params::kVersion, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), kSplit);
  const fake_hip::Launch dkdv = fake_hip::Launches()[1], dq = fake_hip::Launches()[2];
  EXPECT_EQ(dkdv.id, "bf16.64.1.aligned.1.1.m128");
  EXPECT_EQ(dkdv.arguments.at("DK").pointer(), params.DK.data_ptr());
  EXPECT_EQ(dkdv.arguments.at("DV").pointer(), params.DV.data_ptr());
  EXPECT_EQ(dkdv.arguments.at("Delta").pointer(), reinterpret_cast<void*>(0xA0000));
  EXPECT_EQ(dkdv.arguments.at("window_left").integer(), 3);
  EXPECT_EQ(dkdv.arguments.at("window_right").integer(), -2147483647);
  EXPECT_EQ(dkdv.arguments.at("philox_offset2").integer(), 17);
  EXPECT_EQ(dq.arguments.at("DQ").pointer(), params.DQ.data_ptr());
  EXPECT_EQ(dq.arguments.at("DB").pointer(), params.DB.data_ptr());

  v3::attn_options options;
  options.force_backend_index = 1;
  options.deterministic = true;  // it is
  fake_hip::Clear();
  ASSERT_EQ(v3::attn_bwd(params, 6, stream_, &options), hipSuccess) << aotriton_last_error();
  options.force_backend_index = 0;
  ASSERT_EQ(v3::attn_bwd(params, 6, stream_, &options), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), (std::vector<std::string>{"bwd_fused", "bwd_preprocess", "bwd_dkdv", "bwd_dq"}));
  options.force_backend_index = 2;
  EXPECT_EQ(v3::attn_bwd(params, 6, stream_, &options), hipErrorNotSupported);
  EXPECT_STREQ(aotriton_last_error(), "force_backend_index is 2; it must be -1 (the library chooses), 0 (split) or 1 (fused)");
  for (int version : {0, 2, 4, 5, 8}) {
    EXPECT_EQ(v3::attn_bwd(params, version, stream_), hipErrorInvalidSymbol);
    EXPECT_EQ(aotriton_last_error(), "params_version is " + std::to_string(version) +
                                         "; this library knows 1 (AOTriton 0.10), 3 (0.11), 6 (0.12 and 0.13) and 7 (0.14)");
  }
  params.causal_type = 2;
  EXPECT_EQ(v3::attn_bwd(params, 6, stream_), hipErrorNotSupported);
  EXPECT_STREQ(aotriton_last_error(), "causal_type is 2; it must be 0 (None) or 3 (WindowedAttention)");
}

// A workspace that counts what is done with it.
struct Lender {
  int acquired = 0, disposed = 0;
  bool throws_error = false, throws_number = false, throws_on_dispose = false, gives_nothing = false;

  aotriton::TensorView<2> Acquire() {
    ++acquired;
    if (throws_error) throw std::runtime_error("HIP out of memory. Tried to allocate 64.00 KiB");
    if (throws_number) throw 42;
    if (gives_nothing) return {};
    return {0xA0000, {16, 1000}, {1000, 1}, aotriton::kFloat32};
  }
  void Dispose() {
    ++disposed;
    if (throws_on_dispose) throw 42;
  }
  // Of the releases since 0.12.
  v3::LT2 Lazy() {
    return {this, [](v3::LT2* self) { return static_cast<Lender*>(self->cookie)->Acquire(); },
            [](v3::LT2* self) { static_cast<Lender*>(self->cookie)->Dispose(); }, {}};
  }
};

TEST_F(ApiTest, V3AcquiresTheWorkspaceOnce) {
  v3::attn_bwd_params params = BackwardParams();
  Lender lender;
  params.D = lender.Lazy();
  ASSERT_EQ(v3::attn_bwd(params, 6, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), kSplit);
  EXPECT_EQ(fake_hip::Launches()[0].arguments.at("Delta").pointer(), reinterpret_cast<void*>(0xA0000));
  EXPECT_EQ(lender.acquired, 1);
  EXPECT_EQ(lender.disposed, 1);
  // Not where it is not needed, or the call is refused anyway.
  lender = {};
  params.D = lender.Lazy();
  v3::attn_options fused;
  fused.force_backend_index = 1;
  EXPECT_EQ(v3::attn_bwd(params, 6, stream_, &fused), hipSuccess) << aotriton_last_error();
  params.DK = {};
  EXPECT_EQ(v3::attn_bwd(params, 6, stream_), hipErrorInvalidValue);
  params.DK = BackwardParams().DK;
  params.D.eager = {0xA8000, {16, 1000}, {1000, 1}, aotriton::kFloat32};
  EXPECT_EQ(v3::attn_bwd(params, 6, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().back().arguments.at("Delta").pointer(), reinterpret_cast<void*>(0xA8000));
  EXPECT_EQ(lender.acquired + lender.disposed, 0);
  // Without callbacks there is no workspace.
  params.D = {};
  fake_hip::Clear();
  EXPECT_EQ(v3::attn_bwd(params, 6, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), (std::vector<std::string>{"bwd_fused"}));
}

TEST_F(ApiTest, WhatTheWorkspaceThrowsStaysInside) {
  v3::attn_bwd_params params = BackwardParams();
  Lender lender;
  lender.throws_error = true;
  params.D = lender.Lazy();
  EXPECT_EQ(v3::attn_bwd(params, 6, stream_), hipErrorOutOfMemory);
  EXPECT_STREQ(aotriton_last_error(), "acquire of the lazy tensor D threw: HIP out of memory. Tried to allocate 64.00 KiB");
  lender.throws_error = false;
  lender.throws_number = true;
  EXPECT_EQ(v3::attn_bwd(params, 6, stream_), hipErrorOutOfMemory);
  EXPECT_STREQ(aotriton_last_error(), "acquire of the lazy tensor D threw");
  EXPECT_EQ(lender.acquired, 2);
  EXPECT_EQ(lender.disposed, 0);
  lender.throws_number = false;
  lender.gives_nothing = true;
  EXPECT_EQ(v3::attn_bwd(params, 6, stream_), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "delta is null; a device pointer is required");
  EXPECT_TRUE(fake_hip::Launches().empty());
  lender.gives_nothing = false;
  lender.throws_on_dispose = true;
  params.D = lender.Lazy();
  EXPECT_EQ(v3::attn_bwd(params, 6, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), kSplit);
}

// The struct of 0.10 or 0.11 that says what `params` says. It is the same up to D, at 856; then come
// D, of `d_size` bytes, and the fields from cu_seqlens_q on without the two seq_strides.
void MakeOld(const v3::attn_bwd_params& params, size_t d_size, unsigned char (&old)[1232]) {
  memset(old, 0xA5, sizeof(old));
  const auto* now = reinterpret_cast<const unsigned char*>(&params);
  memcpy(old, now, 856);
  memcpy(old + 856 + d_size, now + 928, 1000 - 928);
  memcpy(old + 856 + d_size + 1000 - 928, now + 1064, 1124 - 1064);
}

TEST_F(ApiTest, V3BackwardTakesVersion1) {
  v3::attn_bwd_params params = BackwardParams();
  params.causal_type = v3::CausalType::WindowedAttention;
  params.window_left = 5;
  params.window_right = 6;
  alignas(16) unsigned char old[1232];
  MakeOld(params, 48, old);
  const v3::T2 d(0xA8000, {16, 1000}, {1000, 1}, aotriton::kFloat32);
  memcpy(old + 856, &d, sizeof(d));
  ASSERT_EQ(v3::attn_bwd(reinterpret_cast<const v3::attn_bwd_params&>(old), 1, stream_), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), kSplit);
  const fake_hip::Launch dq = fake_hip::Launches()[2];
  EXPECT_EQ(dq.arguments.at("Delta").pointer(), reinterpret_cast<void*>(0xA8000));
  EXPECT_EQ(dq.arguments.at("DQ").pointer(), params.DQ.data_ptr());
  EXPECT_EQ(dq.arguments.at("window_left").integer(), 5);
  EXPECT_EQ(dq.arguments.at("window_right").integer(), 6);
}

TEST_F(ApiTest, V3BackwardTakesVersion3) {
  v3::attn_bwd_params params = BackwardParams();
  params.window_left = params.window_right = 0x5a5a5a5a;  // not on
  alignas(16) unsigned char old[1232];
  MakeOld(params, 24, old);
  // Callbacks that take the cookie.
  struct {
    void* cookie;
    aotriton::TensorView<2> (*acquire)(void*);
    void (*dispose)(void*);
  } lazy;
  Lender lender;
  lazy = {&lender, [](void* cookie) { return static_cast<Lender*>(cookie)->Acquire(); },
          [](void* cookie) { static_cast<Lender*>(cookie)->Dispose(); }};
  memcpy(old + 856, &lazy, sizeof(lazy));
  // Its options end behind the index.
  const struct {
    int force_backend_index;
    unsigned char behind[4];
  } split = {-1, {0xA5, 0xA5, 0xA5, 0xA5}}, fused = {1, {0xA5, 0xA5, 0xA5, 0xA5}};
  const auto& view = reinterpret_cast<const v3::attn_bwd_params&>(old);
  ASSERT_EQ(v3::attn_bwd(view, 3, stream_, reinterpret_cast<const v3::attn_options*>(&split)), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), kSplit);
  EXPECT_EQ(fake_hip::Launches()[2].id, "bf16.64.0.aligned.1.0.m128");
  EXPECT_EQ(fake_hip::Launches()[2].arguments.at("Delta").pointer(), reinterpret_cast<void*>(0xA0000));
  EXPECT_EQ(lender.acquired, 1);
  EXPECT_EQ(lender.disposed, 1);
  ASSERT_EQ(v3::attn_bwd(view, 3, stream_, reinterpret_cast<const v3::attn_options*>(&fused)), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols().back(), "bwd_fused");
  EXPECT_EQ(lender.acquired, 1);
}

TEST_F(ApiTest, V2Backward) {
  const aotriton_attn_bwd_args args = support::BackwardCall();
  const v2::T2 lse(0x50000, {16, 1000}, {0, 0}, aotriton::kFloat32), delta(0xA0000, {16, 1000}, {0, 0}, aotriton::kFloat32);
  const v2::T0 seed(0xE0000, aotriton::kInt64), offset(0xE0008, aotriton::kInt64);
  ASSERT_EQ(v2::attn_bwd(View(args.q), View(args.k), View(args.v), View(args.bias), 0.5f, View(args.out), View(args.dout), View(args.dq),
                         View(args.dk), View(args.dv), View(args.dbias), lse, delta, 0.1f, seed, offset, 7, true, stream_),
            hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), kSplit);
  const fake_hip::Launch dq = fake_hip::Launches()[2];
  EXPECT_EQ(dq.id, "bf16.64.1.aligned.1.1.m128");
  EXPECT_EQ(dq.arguments.at("sm_scale").real(), 0.5f);
  EXPECT_EQ(dq.arguments.at("window_right").integer(), -2147483647);
  EXPECT_EQ(dq.arguments.at("philox_offset2").integer(), 7);
  EXPECT_EQ(dq.arguments.at("Delta").pointer(), delta.data_ptr());

  fake_hip::Clear();
  ASSERT_EQ(v2::attn_bwd_fused(View(args.q), View(args.k), View(args.v), {}, 0.5f, View(args.out), View(args.dout), View(args.dq),
                               View(args.dk), View(args.dv), {}, lse, 0, {}, {}, 0, false, stream_),
            hipSuccess) << aotriton_last_error();
  ASSERT_EQ(Symbols(), (std::vector<std::string>{"bwd_fused"}));
  EXPECT_EQ(fake_hip::Launches()[0].id, "bf16.64.0.aligned.0.0.m128");
  EXPECT_EQ(v2::attn_bwd(View(args.q), View(args.k), View(args.v), {}, 0.5f, View(args.out), View(args.dout), View(args.dq), View(args.dk),
                         View(args.dv), {}, lse, {}, 0, {}, {}, 0, false, stream_),
            hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "delta is null; a device pointer is required");
}

TEST_F(ApiTest, V2CompactVarlen) {
  aotriton_attn_bwd_args args = support::BackwardCall();
  support::MakeCompact(&args);
  const v2::T1 cu_q(0xD0000, {4}, {1}, aotriton::kInt32), cu_k(0xD1000, {4}, {1}, aotriton::kInt32);
  // As of 0.9 to 0.11: padded.
  const v2::T2 lse(0x50000, {24, 600}, {0, 0}, aotriton::kFloat32), delta(0xA0000, {24, 600}, {0, 0}, aotriton::kFloat32);
  ASSERT_EQ(v2::attn_fwd_compact_varlen(View(args.q), View(args.k), View(args.v), {}, cu_q, cu_k, 600, 500, 0.5f, lse, View(args.out), 0, {},
                                        {}, 0, {}, {}, {}, true, {}, stream_),
            hipSuccess) << aotriton_last_error();
  ASSERT_EQ(v2::attn_bwd_compact_varlen(View(args.q), View(args.k), View(args.v), cu_q, cu_k, 600, 500, {}, 0.5f, View(args.out),
                                        View(args.dout), View(args.dq), View(args.dk), View(args.dv), {}, lse, delta, 0, {}, {}, 0, true,
                                        stream_),
            hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), (std::vector<std::string>{"attn_fwd", "bwd_preprocess", "bwd_dkdv", "bwd_dq"}));
  for (const fake_hip::Launch& launch : fake_hip::Launches()) {
    EXPECT_EQ(launch.arguments.at("varlen_type").integer(), 1);
    EXPECT_EQ(launch.arguments.at("cu_seqlens_q").pointer(), cu_q.data_ptr());
    EXPECT_EQ(launch.arguments.at("stride_lz").integer(), 4800);
    EXPECT_EQ(launch.arguments.at("lse_compact").integer(), 0);
  }
}

TEST_F(ApiTest, ManyThreadsAtOnce) {
  const int devices[] = {device_, fake_hip::AddDevice("gfx950"), fake_hip::AddDevice("gfx1201")};
  hipStream_t streams[3];
  for (int i = 0; i < 3; ++i) streams[i] = fake_hip::AddStream(devices[i]);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      ASSERT_EQ(hipSetDevice(devices[(t + 1) % 3]), hipSuccess);
      for (int i = 0; i < 50; ++i) {
        aotriton_attn_fwd_args args = Call(i % 2 ? AOTRITON_FLOAT16 : AOTRITON_BFLOAT16, {2, 8, i % 3 ? 100 : 1000, 64}, 2, 700, 64);
        ASSERT_EQ(aotriton_attn_fwd(&args, streams[(t + i) % 3]), 0) << aotriton_last_error();
        // The text of a refusal belongs to its thread.
        args.q.dtype = 100 + t;
        ASSERT_EQ(aotriton_attn_fwd(&args, streams[0]), hipErrorNotSupported);
        ASSERT_TRUE(Contains(aotriton_last_error(), "q has dtype " + std::to_string(100 + t) + ";"));
        ASSERT_EQ(CurrentDevice(), devices[(t + 1) % 3]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_hip::Launches().size(), 400u);
  std::set<std::pair<int, std::string>> loads;
  for (const fake_hip::Load& load : fake_hip::Loads()) EXPECT_TRUE(loads.emplace(load.device, load.id).second) << load.id;
  EXPECT_EQ(loads.size(), 3u * 4);
}

}  // namespace
