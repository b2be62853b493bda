// A build that has the kernels of the backend hopper alone.
#include <aotriton/aotriton.h>
#include <gtest/gtest.h>

#include "tests/dispatch/fake_cuda.h"
#include "tests/dispatch/support.h"

namespace {

TEST(HopperTest, TakesWhatTritonWouldDoFasterWhereThereIsNoTriton) {
  const support::Images images;
  support::WriteFile(images.PathOf("sm_90", "nvidia", "attn_fwd_hopper"),
                     support::ReadFile(std::string(support::kPacks) + "/images/nvidia-sm_90/flash/attn_fwd_hopper.pack"));
  aotriton_attn_fwd_args args = support::Call(AOTRITON_BFLOAT16, {2, 8, 64, 128}, 2, 700, 128);
  ASSERT_EQ(aotriton_attn_fwd(&args, nullptr), 0) << aotriton_last_error();
  EXPECT_EQ(fake_cuda::Launches().at(0).kernel, "attn_fwd_hopper");

  args.sm_scale = -1;
  EXPECT_NE(aotriton_attn_fwd(&args, nullptr), 0);
  const std::string text = aotriton_last_error();
  EXPECT_EQ(text.find("no backend takes the call. triton: there is no pack of attn_fwd for this GPU, sm_90"), 0u) << text;
  EXPECT_NE(text.find(". hopper: it needs an sm_scale above 0, the call has -1"), std::string::npos) << text;
}

}  // namespace
