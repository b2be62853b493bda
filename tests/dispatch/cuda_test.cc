// The same library on NVIDIA: contexts in place of devices, and large shared memory.
#include <aotriton/aotriton.h>
#include <aotriton/flash.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/dispatch/fake_cuda.h"
#include "tests/dispatch/support.h"

namespace {

void* CurrentContext() {
  void* context = nullptr;
  EXPECT_EQ(cuCtxGetCurrent(&context), 0);
  return context;
}

TEST(CudaTest, FollowsTheContextOfTheStream) {
  const support::Images images;
  support::WriteFile(images.PathOf("sm_90", "nvidia"), support::ReadFile(std::string(support::kPacks) + "/images/nvidia-sm_90/flash/attn_fwd.pack"));
  aotriton_attn_fwd_args args = support::Call();

  // A thread that never used CUDA: device 0, and nothing stays current.
  for (int i = 0; i < 2; ++i) ASSERT_EQ(aotriton_attn_fwd(&args, nullptr), 0) << aotriton_last_error();
  EXPECT_EQ(CurrentContext(), nullptr);
  EXPECT_EQ(fake_cuda::PrimaryRetains(), 1);
  char arch[8];
  EXPECT_EQ(aotriton_gpu_arch(nullptr, arch, sizeof(arch)), 0);
  EXPECT_STREQ(arch, "sm_90");
  EXPECT_EQ(aotriton::getMultiProcessorCount(nullptr), 132);
  EXPECT_EQ(aotriton::getGpuFromStream(nullptr), aotriton::GPU_ARCH_UNKNOWN);  // upstream numbers AMD GPUs only
  EXPECT_EQ(aotriton::v2::flash::check_gpu(nullptr), hipSuccess);

  void* const context = fake_cuda::AddContext();
  void* const other = fake_cuda::AddContext();
  void* const stream = fake_cuda::AddStream(other);
  ASSERT_EQ(cuCtxPushCurrent_v2(context), 0);
  ASSERT_EQ(aotriton_attn_fwd(&args, nullptr), 0) << aotriton_last_error();
  ASSERT_EQ(aotriton_attn_fwd(&args, stream), 0) << aotriton_last_error();
  ASSERT_EQ(aotriton_attn_fwd(&args, reinterpret_cast<void*>(2)), 0) << aotriton_last_error();  // CU_STREAM_PER_THREAD
  EXPECT_EQ(CurrentContext(), context);

  // A module for each context, once.
  EXPECT_EQ(fake_cuda::LoadContexts(), (std::vector<void*>{fake_cuda::PrimaryContext(), context, other}));
  const std::vector<fake_cuda::Launch> launches = fake_cuda::Launches();
  ASSERT_EQ(launches.size(), 5u);
  EXPECT_EQ(launches[0].context, fake_cuda::PrimaryContext());
  EXPECT_EQ(launches[2].context, context);
  EXPECT_EQ(launches[3].context, other);
  EXPECT_EQ(launches[3].stream, stream);
  EXPECT_EQ(launches[4].context, context);
  EXPECT_EQ(launches[0].grid, 128u);
  EXPECT_EQ(launches[0].block, 256u);
  EXPECT_EQ(launches[0].q, args.q.data);
  // More shared memory than a kernel gets unasked.
  EXPECT_EQ(launches[0].shared, 128u * 1024);
  EXPECT_EQ(launches[0].max_dynamic_shared, 128 * 1024);
}

}  // namespace
