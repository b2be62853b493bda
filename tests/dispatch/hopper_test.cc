// The backend hopper on a fake CUDA: what it is launched with, which calls it leaves to triton, its counters.
#include <aotriton/aotriton.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/dispatch/fake_cuda.h"
#include "tests/dispatch/support.h"

namespace {

using Args = aotriton_attn_fwd_args;

class HopperTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("AOTRITON_DEBUG_LEVEL", "3", 1);  // read at the first question
    images_ = new support::Images;
    for (const char* kernel : {"attn_fwd", "attn_fwd_hopper", "attn_fwd_persistent"}) {
      support::WriteFile(images_->PathOf("sm_90", "nvidia", kernel),
                         support::ReadFile(std::string(support::kPacks) + "/images/nvidia-sm_90/flash/" + kernel + ".pack"));
    }
    context_ = fake_cuda::AddContext();
  }

  void SetUp() override {
    fake_cuda::Clear();
    testing::internal::CaptureStderr();
  }
  void TearDown() override { (void)testing::internal::GetCapturedStderr(); }

  // What was logged since the last question.
  static std::string Log() {
    std::string log = testing::internal::GetCapturedStderr();
    testing::internal::CaptureStderr();
    return log;
  }

  static void* NewStream() { return fake_cuda::AddStream(context_); }

  // The launch of a call that must succeed.
  static fake_cuda::Launch Launched(const Args& args, void* stream = nullptr) {
    const size_t before = fake_cuda::Launches().size();
    EXPECT_EQ(aotriton_attn_fwd(&args, stream), 0) << aotriton_last_error();
    const std::vector<fake_cuda::Launch> launches = fake_cuda::Launches();
    EXPECT_EQ(launches.size(), before + 1);
    return launches.back();
  }

  static int32_t* CounterOf(const fake_cuda::Launch& launch) { return reinterpret_cast<int32_t*>(launch.arguments.at("tile_counter")); }

  static support::Images* images_;
  static void* context_;
};

support::Images* HopperTest::images_ = nullptr;
void* HopperTest::context_ = nullptr;

TEST_F(HopperTest, LaunchesAsManyProgramsAsRunAtOnce) {
  const fake_cuda::Launch few = Launched(support::Call());  // 8 tiles of 128 rows in each of 2 * 8 heads
  EXPECT_EQ(few.kernel, "attn_fwd_hopper");
  EXPECT_EQ(few.grid, 128u);
  EXPECT_EQ(few.block, 256u);
  EXPECT_EQ(few.max_dynamic_shared, 128 * 1024);
  EXPECT_EQ(few.arguments.at("num_programs"), 128u);
  const fake_cuda::Launch many = Launched(support::Call(AOTRITON_BFLOAT16, {16, 64, 1000, 64}, 8, 700, 64));
  EXPECT_EQ(many.grid, 132u * 4);  // of 256 threads 4 run at once on each of 132 multiprocessors
  EXPECT_EQ(many.arguments.at("num_programs"), 132u * 4);
}

TEST_F(HopperTest, PassesArguments) {
  Args args = support::Call(AOTRITON_FLOAT16, {2, 8, 1000, 72}, 2, 700, 40);
  args.is_windowed = 1;
  args.window_left = AOTRITON_WINDOW_BOTTOM_RIGHT;
  args.window_right = -5;
  const std::map<std::string, uint64_t> a = Launched(args).arguments;
  const std::map<std::string, uint64_t> due = {
      {"Out", 0x40000}, {"L", 0x50000}, {"stride_oz", 8 * 1000 * 40}, {"stride_oh", 1000 * 40}, {"stride_om", 40},
      {"stride_lz", 8 * 1000}, {"stride_lh", 1000}, {"num_sequences", 2}, {"num_head_q", 8}, {"num_head_k", 2},
      {"max_seqlen_q", 1000}, {"max_seqlen_k", 700}, {"varlen_type", 0}, {"head_dim_vo", 40}, {"store_lse", 1},
      {"lse_compact", 0}, {"window_left", static_cast<uint32_t>(AOTRITON_WINDOW_BOTTOM_RIGHT)}, {"window_right", static_cast<uint32_t>(-5)},
      {"unread", 0}, {"cu_seqlens_q", 0}, {"global_scratch", 0}};
  for (const auto& [name, value] : due) {
    ASSERT_EQ(a.count(name), 1u) << name;
    EXPECT_EQ(a.at(name), value) << name;
  }
  float sm_scale = 0;
  memcpy(&sm_scale, &a.at("sm_scale"), sizeof(sm_scale));
  EXPECT_EQ(sm_scale, 0.125f);
}

TEST_F(HopperTest, MakesTensorMaps) {
  Args args = support::Call(AOTRITON_FLOAT16, {2, 8, 1000, 72}, 2, 700, 40);
  args.k.strides[0] = 0;  // one K for all
  args.q.strides[2] = 80;
  const fake_cuda::Launch launch = Launched(args);
  const std::vector<fake_cuda::TensorMap> maps = fake_cuda::TensorMaps();
  ASSERT_EQ(maps.size(), 4u);
  struct Due {
    const char* name;
    uintptr_t data;
    std::vector<uint64_t> sizes, strides;  // the column first; bytes
    uint32_t box_rows;
  };
  for (const Due& due : {Due{"map_Q", 0x10000, {72, 1000, 8, 2}, {160, 72000 * 2, 8 * 72000 * 2}, 64},
                         Due{"map_K", 0x20000, {72, 700, 2, 2}, {144, 700 * 144, 0}, 32},
                         Due{"map_V", 0x30000, {40, 700, 2, 2}, {80, 700 * 80, 2 * 700 * 80}, 32},
                         Due{"map_Out", 0x40000, {40, 1000, 8, 2}, {80, 1000 * 80, 8 * 1000 * 80}, 64}}) {
    const fake_cuda::TensorMap& map = maps.at(launch.arguments.at(due.name));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(map.data), due.data) << due.name;
    EXPECT_EQ(map.sizes, due.sizes) << due.name;
    EXPECT_EQ(map.strides, due.strides) << due.name;
    EXPECT_EQ(map.box, (std::vector<uint32_t>{64, due.box_rows, 1, 1})) << due.name;
    EXPECT_EQ(map.element_strides, std::vector<uint32_t>(4, 1)) << due.name;
    EXPECT_EQ(map.dtype, 6) << due.name;  // CU_TENSOR_MAP_DATA_TYPE_FLOAT16
    EXPECT_EQ(map.swizzle, 3) << due.name;
    EXPECT_EQ(map.interleave, 0) << due.name;
    EXPECT_EQ(map.fill, 0) << due.name;
  }
  fake_cuda::Clear();
  Launched(support::Call());
  EXPECT_EQ(fake_cuda::TensorMaps().at(0).dtype, 9);  // ..._BFLOAT16
}

TEST_F(HopperTest, ASizeOf1NeedsNoStride) {
  Args args = support::Call(AOTRITON_BFLOAT16, {1, 1, 1000, 64}, 1, 700, 64);
  args.q.strides[0] = -7;
  args.q.strides[1] = 3;
  EXPECT_EQ(Launched(args).kernel, "attn_fwd_hopper");
  EXPECT_EQ(fake_cuda::TensorMaps().at(0).strides, (std::vector<uint64_t>{128, 0, 0}));
}

TEST_F(HopperTest, AFailureToEncodeIsTheCalls) {
  const Args args = support::Call();
  fake_cuda::FailEncode(1);
  EXPECT_EQ(aotriton_attn_fwd(&args, nullptr), 1);
  EXPECT_STREQ(aotriton_last_error(),
               "cuTensorMapEncodeTiled failed: CUDA_ERROR_INVALID_VALUE (1), for map_Q of attn_fwd_hopper: address 0x10000, sizes "
               "(2, 8, 1000, 64), strides (512000, 64000, 64), boxes of 64 rows");
  EXPECT_TRUE(fake_cuda::Launches().empty());
  EXPECT_EQ(Launched(args).kernel, "attn_fwd_hopper");  // nothing of it stays
}

TEST_F(HopperTest, LeavesTheRestToTriton) {
  struct Case {
    std::function<void(Args*)> change;
    const char* reason;
  };
  for (const Case& c : {
           Case{[](Args* a) { *a = support::Call(AOTRITON_FLOAT32, {2, 8, 1000, 64}, 2, 700, 64); }, "it takes fp16 and bf16, the call is of fp32"},
           Case{[](Args* a) {
                  a->bias = support::Tensor(AOTRITON_BFLOAT16, {2, 8, 1000, 704}, 0xB0000);
                  a->bias.sizes[3] = 700;
                },
                "it takes no bias"},
           Case{[](Args* a) {
                  a->dropout_p = 0.5f;
                  a->philox_seed = a->philox_offset1 = reinterpret_cast<const uint64_t*>(0xE0000);
                },
                "it has no dropout"},
           Case{[](Args* a) { a->sm_scale = 0; }, "it needs an sm_scale above 0, the call has 0"},
           Case{[](Args* a) { a->sm_scale = -0.5f; }, "it needs an sm_scale above 0, the call has -0.5"},
           Case{[](Args* a) { *a = support::Call(AOTRITON_BFLOAT16, {2, 8, 1000, 64}, 2, 0, 64); }, "k has no rows"},
           Case{[](Args* a) { a->v.data = reinterpret_cast<void*>(0x30008); }, "it needs addresses that are multiples of 16, v is at 0x30008"},
           Case{[](Args* a) { a->out.strides[2] = 68; },
                "it needs strides that are multiples of 8 below 2^39, out has 68 in dimension 2"},
           Case{[](Args* a) { a->k.strides[0] = int64_t{1} << 39; },
                "it needs strides that are multiples of 8 below 2^39, k has 549755813888 in dimension 0"},
       }) {
    Args args = support::Call();
    c.change(&args);
    (void)Log();
    EXPECT_EQ(Launched(args).kernel, "attn_fwd") << c.reason;
    const std::string log = Log();
    EXPECT_NE(log.find("aotriton: attn_fwd passes over the backend hopper: " + std::string(c.reason) + "\n"), std::string::npos)
        << c.reason << ": " << log;
    args.backend = AOTRITON_FWD_HOPPER;
    EXPECT_EQ(aotriton_attn_fwd(&args, nullptr), 801) << c.reason;
    EXPECT_EQ(aotriton_last_error(), "the backend hopper cannot take the call: " + std::string(c.reason));
  }
}

TEST_F(HopperTest, CoversHeadDimsUpToItsLargestTile) {
  EXPECT_EQ(Launched(support::Call(AOTRITON_BFLOAT16, {2, 8, 1000, 8}, 2, 700, 128)).kernel, "attn_fwd_hopper");
  Args args = support::Call(AOTRITON_BFLOAT16, {2, 8, 1000, 136}, 2, 700, 64);
  args.backend = AOTRITON_FWD_HOPPER;
  EXPECT_EQ(aotriton_attn_fwd(&args, nullptr), 6);
  EXPECT_STREQ(aotriton_last_error(),
               "the backend hopper cannot take the call: its pack has no kernel for bf16, head_dim 136 of q and k, 64 of v");
}

TEST_F(HopperTest, LeavesWhatTritonDoesFasterToIt) {
  const auto windowed = [](int64_t head_dim, int32_t left, int32_t right) {
    Args args = support::Call(AOTRITON_BFLOAT16, {2, 8, 1000, head_dim}, 2, 700, head_dim);
    args.is_windowed = 1;
    args.window_left = left;
    args.window_right = right;
    return args;
  };
  struct Case {
    Args args;
    const char* reason;  // null: hopper takes it
  };
  for (const Case& c : {
           Case{support::Call(AOTRITON_BFLOAT16, {2, 8, 64, 128}, 2, 700, 128), "triton is faster for up to 64 queries"},
           Case{support::Call(AOTRITON_BFLOAT16, {2, 8, 65, 128}, 2, 700, 128), nullptr},
           Case{support::Call(AOTRITON_BFLOAT16, {2, 8, 64, 120}, 2, 700, 120), nullptr},  // triton has no kernel of exactly this
           Case{windowed(64, 1000, 23), "triton is faster for windows of up to 1024 keys at head_dim 64"},
           Case{windowed(64, 1000, 24), nullptr},
           Case{windowed(128, 1000, 23), nullptr},
           Case{windowed(64, AOTRITON_WINDOW_TOP_LEFT, 0), nullptr},
           Case{windowed(64, 0, AOTRITON_WINDOW_BOTTOM_RIGHT), nullptr},
       }) {
    (void)Log();
    EXPECT_EQ(Launched(c.args).kernel, c.reason != nullptr ? "attn_fwd" : "attn_fwd_hopper");
    if (c.reason == nullptr) continue;
    EXPECT_NE(Log().find("attn_fwd passes over the backend hopper: " + std::string(c.reason) + "\n"), std::string::npos) << c.reason;
    Args forced = c.args;
    forced.backend = AOTRITON_FWD_HOPPER;
    EXPECT_EQ(Launched(forced).kernel, "attn_fwd_hopper");
  }
}

TEST_F(HopperTest, ABackendCanBeForced) {
  Args args = support::Call();
  args.backend = AOTRITON_FWD_TRITON;
  EXPECT_EQ(Launched(args).kernel, "attn_fwd");
  int32_t counter = 0;
  args.is_windowed = 1;
  args.window_left = AOTRITON_WINDOW_TOP_LEFT;
  args.persistent_counter = &counter;
  EXPECT_EQ(Launched(args).kernel, "attn_fwd_persistent");
  args.backend = AOTRITON_FWD_DEFAULT;
  const fake_cuda::Launch launch = Launched(args);
  EXPECT_EQ(launch.kernel, "attn_fwd_hopper");
  EXPECT_NE(CounterOf(launch), &counter);
  args.backend = 3;
  EXPECT_EQ(aotriton_attn_fwd(&args, nullptr), 801);
  EXPECT_STREQ(aotriton_last_error(), "backend is 3; it must be 0 (default), 1 (triton) or 2 (hopper)");
}

TEST_F(HopperTest, EachStreamHasACounter) {
  const Args args = support::Call();
  void* const one = NewStream();
  void* const other = NewStream();
  const fake_cuda::Launch first = Launched(args, one);
  EXPECT_EQ(*CounterOf(first), 0);
  EXPECT_EQ(CounterOf(Launched(args, one)), CounterOf(first));
  EXPECT_NE(CounterOf(Launched(args, other)), CounterOf(first));
  EXPECT_NE(CounterOf(Launched(args, nullptr)), CounterOf(first));
}

TEST_F(HopperTest, EachCapturedLaunchHasACounter) {
  const Args args = support::Call();
  void* const stream = NewStream();
  std::set<int32_t*> counters = {CounterOf(Launched(args, stream))};
  fake_cuda::Capture(stream, true);
  for (int i = 0; i < 17000; ++i) {  // more than one allocation holds
    ASSERT_EQ(aotriton_attn_fwd(&args, stream), 0) << aotriton_last_error();
    int32_t* const counter = CounterOf(fake_cuda::Launches().back());
    ASSERT_TRUE(counters.insert(counter).second) << "launch " << i << " has the counter of another";
    ASSERT_EQ(*counter, 0);
    fake_cuda::Clear();
    (void)Log();
  }
  fake_cuda::Capture(stream, false);
  EXPECT_EQ(counters.count(CounterOf(Launched(args, stream))), 1u);
}

TEST_F(HopperTest, PrepareAllocates) {
  Args args = support::Call(AOTRITON_FLOAT16, {2, 8, 1000, 128}, 2, 700, 128);
  void* const stream = fake_cuda::AddStream(fake_cuda::AddContext());  // counters belong to a context
  const int before = fake_cuda::Allocations();
  ASSERT_EQ(aotriton_attn_fwd_supported(&args, stream), 0) << aotriton_last_error();
  EXPECT_EQ(fake_cuda::Allocations(), before);
  ASSERT_EQ(aotriton_attn_fwd_prepare(&args, stream), 0) << aotriton_last_error();
  EXPECT_EQ(fake_cuda::Allocations(), before + 1);
  EXPECT_TRUE(fake_cuda::Launches().empty());
  EXPECT_EQ(*CounterOf(Launched(args, stream)), 0);
  fake_cuda::Capture(stream, true);
  Launched(args, stream);
  fake_cuda::Capture(stream, false);
  EXPECT_EQ(fake_cuda::Allocations(), before + 1);
}

TEST_F(HopperTest, AFailedAllocationIsNotRemembered) {
  const Args args = support::Call();
  void* const stream = fake_cuda::AddStream(fake_cuda::AddContext());
  fake_cuda::FailAlloc(2);
  EXPECT_EQ(aotriton_attn_fwd(&args, stream), 2);
  EXPECT_STREQ(aotriton_last_error(), "cuMemAlloc failed: CUDA_ERROR_UNKNOWN (2), for counters of tiles");
  EXPECT_TRUE(fake_cuda::Launches().empty());
  EXPECT_EQ(Launched(args, stream).kernel, "attn_fwd_hopper");
}

}  // namespace
