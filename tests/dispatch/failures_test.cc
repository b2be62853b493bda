// Every call of the GPU runtime that an op makes, failing in its turn.
#include <aotriton/aotriton.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "tests/dispatch/fake_hip.h"
#include "tests/dispatch/support.h"

namespace {

struct Op {
  const char* name;
  size_t launches;
  std::function<aotriton_status(hipStream_t)> call;
};

aotriton_status Backward(int32_t backend, hipStream_t stream) {
  aotriton_attn_bwd_args args = support::BackwardCall();
  args.backend = backend;
  return aotriton_attn_bwd(&args, stream);
}

const Op kOps[] = {
    {"attn_fwd", 1,
     [](hipStream_t stream) {
       const aotriton_attn_fwd_args args = support::Call();
       return aotriton_attn_fwd(&args, stream);
     }},
    {"persistent", 1,
     [](hipStream_t stream) {
       aotriton_attn_fwd_args args = support::Call();
       args.is_windowed = 1;
       args.persistent_counter = reinterpret_cast<int32_t*>(0xF0000);
       return aotriton_attn_fwd(&args, stream);
     }},
    {"split", 3, [](hipStream_t stream) { return Backward(AOTRITON_BWD_SPLIT, stream); }},
    {"fused", 1, [](hipStream_t stream) { return Backward(AOTRITON_BWD_FUSED, stream); }},
    {"mask", 1,
     [](hipStream_t stream) {
       const aotriton_tensor mask = support::Tensor(AOTRITON_FLOAT32, {2, 8, 100, 70}, 0xF0000);
       return aotriton_debug_simulate_encoded_softmax(&mask, 0.5f, reinterpret_cast<uint64_t*>(0xE0000), reinterpret_cast<uint64_t*>(0xE0008),
                                                      0, stream);
     }},
    {"random numbers", 1,
     [](hipStream_t stream) {
       const aotriton_tensor random = support::Tensor(AOTRITON_FLOAT32, {2, 8, 100, 70}, 0xF0000);
       return aotriton_debug_fill_dropout_rng(&random, 1, 2, stream);
     }},
};

int CurrentDevice() {
  int device = -1;
  EXPECT_EQ(hipGetDevice(&device), hipSuccess);
  return device;
}

// On a device that is not the current one, first used.
TEST(FailuresTest, EveryCallOfTheRuntime) {
  support::Images images;
  images.Install("gfx942");
  const int current = fake_hip::AddDevice("gfx942");
  ASSERT_EQ(hipSetDevice(current), hipSuccess);
  aotriton_attn_fwd_args args = support::Call();
  ASSERT_EQ(aotriton_attn_fwd(&args, nullptr), 0) << aotriton_last_error();  // what a process asks only once
  int failures = 0;
  for (const Op& op : kOps) {
    for (int nth = 0;; ++nth) {
      SCOPED_TRACE(std::string(op.name) + ", call " + std::to_string(nth));
      const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice("gfx942"));
      fake_hip::Clear();
      fake_hip::FailAny(hipErrorOutOfMemory, nth);
      const aotriton_status status = op.call(stream);
      if (!fake_hip::HasFailed()) {  // there is no such call
        EXPECT_EQ(status, 0) << aotriton_last_error();
        EXPECT_GT(nth, 7);
        break;
      }
      ++failures;
      const std::string text = aotriton_last_error();
      EXPECT_EQ(status, hipErrorOutOfMemory);
      EXPECT_NE(text.find(" failed: hipErrorOutOfMemory (2)"), std::string::npos) << text;
      // Only the way back comes after the last launch; it is not kept silent.
      if (fake_hip::Launches().size() == op.launches) {
        EXPECT_EQ(text, "hipSetDevice (back to the caller's device) failed: hipErrorOutOfMemory (2)");
        ASSERT_EQ(hipSetDevice(current), hipSuccess);
      }
      EXPECT_EQ(CurrentDevice(), current);
      // Nothing of the failure stays.
      fake_hip::Clear();
      EXPECT_EQ(op.call(stream), 0) << aotriton_last_error();
      EXPECT_EQ(fake_hip::Launches().size(), op.launches);
      EXPECT_EQ(CurrentDevice(), current);
      fake_hip::Clear();
      EXPECT_EQ(op.call(stream), 0) << aotriton_last_error();
      EXPECT_TRUE(fake_hip::Loads().empty());
    }
  }
  // Of each op: 4 to find and enter the device, 3 for each launch (2 of them load), 1 back; the persistent one
  // also asks how many work groups run at once.
  EXPECT_EQ(failures, 8 + 9 + 14 + 8 + 8 + 8);
}

TEST(FailuresTest, WithoutThePersistentPackThePlainOneTakesTheCall) {
  const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice("gfx1100"));
  support::Images images;
  images.Install("gfx1100");
  const std::string path = images.PathOf("gfx1100", "amd", "attn_fwd_persistent"), pack = support::ReadFile(path);
  ASSERT_EQ(unlink(path.c_str()), 0);
  aotriton_attn_fwd_args args = support::Call();
  args.is_windowed = 1;
  args.persistent_counter = reinterpret_cast<int32_t*>(0xF0000);
  fake_hip::Clear();
  ASSERT_EQ(aotriton_attn_fwd(&args, stream), 0) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(0).symbol, "attn_fwd");
  // What is broken is not hidden.
  support::WriteFile(path, pack.substr(0, 1000));
  EXPECT_EQ(aotriton_attn_fwd(&args, stream), hipErrorInvalidImage);
  EXPECT_NE(std::string(aotriton_last_error()).find(path + " has 1000 bytes"), std::string::npos) << aotriton_last_error();
  support::WriteFile(path, pack);
  ASSERT_EQ(aotriton_attn_fwd(&args, stream), 0) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().at(1).symbol, "attn_fwd_persistent");
}

TEST(FailuresTest, ABackendThatCannotTakeTheCallIsPassedOver) {
  const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice("gfx90a"));
  support::Images images;
  images.Install("gfx90a");
  const aotriton_attn_bwd_args args = support::BackwardCall();
  const std::string path = images.PathOf("gfx90a", "amd", "bwd_dq"), pack = support::ReadFile(path);
  ASSERT_EQ(unlink(path.c_str()), 0);
  fake_hip::Clear();
  ASSERT_EQ(aotriton_attn_bwd(&args, stream), 0) << aotriton_last_error();
  ASSERT_EQ(fake_hip::Launches().size(), 1u);
  EXPECT_EQ(fake_hip::Launches()[0].symbol, "bwd_fused");
  // Not when it is asked for,
  EXPECT_EQ(Backward(AOTRITON_BWD_SPLIT, stream), hipErrorFileNotFound);
  // nor to hide what is broken.
  support::WriteFile(path, pack.substr(0, 1000));
  EXPECT_EQ(aotriton_attn_bwd(&args, stream), hipErrorInvalidImage);
  EXPECT_NE(std::string(aotriton_last_error()).find(path + " has 1000 bytes"), std::string::npos) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().size(), 1u);
  support::WriteFile(path, pack);
  ASSERT_EQ(aotriton_attn_bwd(&args, stream), 0) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().size(), 4u);
}

TEST(FailuresTest, WhenNoBackendTakesTheCallEachSaysWhy) {
  const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice("gfx950"));
  support::Images images;
  images.Install("gfx950");
  for (const char* kernel : {"bwd_dkdv", "bwd_fused"}) unlink(images.PathOf("gfx950", "amd", kernel).c_str());
  const aotriton_attn_bwd_args args = support::BackwardCall();
  EXPECT_EQ(aotriton_attn_bwd(&args, stream), hipErrorFileNotFound);
  const std::string text = aotriton_last_error();
  EXPECT_EQ(text.find("no backend takes the call. triton_split: there is no pack of bwd_dkdv "), 0u) << text;
  EXPECT_NE(text.find(". triton_fused: there is no pack of bwd_fused "), std::string::npos) << text;
}

}  // namespace
