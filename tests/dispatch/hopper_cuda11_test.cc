// The backend hopper with a driver that is older than it.
#include <aotriton/aotriton.h>
#include <gtest/gtest.h>

#include "tests/dispatch/fake_cuda.h"
#include "tests/dispatch/support.h"

namespace {

TEST(HopperTest, NeedsCuda12) {
  const support::Images images;
  for (const char* kernel : {"attn_fwd", "attn_fwd_hopper"}) {
    support::WriteFile(images.PathOf("sm_90", "nvidia", kernel),
                       support::ReadFile(std::string(support::kPacks) + "/images/nvidia-sm_90/flash/" + kernel + ".pack"));
  }
  aotriton_attn_fwd_args args = support::Call();
  ASSERT_EQ(aotriton_attn_fwd(&args, nullptr), 0) << aotriton_last_error();
  EXPECT_EQ(fake_cuda::Launches().at(0).kernel, "attn_fwd");
  args.backend = AOTRITON_FWD_HOPPER;
  EXPECT_NE(aotriton_attn_fwd(&args, nullptr), 0);
  EXPECT_STREQ(aotriton_last_error(), "the backend hopper cannot take the call: it needs a driver of CUDA 12 or newer");
}

}  // namespace
