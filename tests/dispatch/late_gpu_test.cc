// A GPU that comes after the first call; on ROCm 6 and, with the old struct of device properties, 5.
#include <aotriton/aotriton.h>
#include <aotriton/util.h>
#include <gtest/gtest.h>

#include "tests/dispatch/fake_hip.h"
#include "tests/dispatch/support.h"

namespace {

TEST(LateGpuTest, NoGpuIsNotForever) {
  support::Images images;
  images.Install("gfx90a");
  aotriton_attn_fwd_args args = support::Call();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(aotriton_attn_fwd(&args, nullptr), hipErrorNoDevice);
    const std::string text = aotriton_last_error();
    EXPECT_EQ(text.find("no GPU was found. AMD: HIP has no device. NVIDIA: "), 0u) << text;
  }
  fake_hip::Fail("hipGetDeviceCount", hipErrorOutOfMemory, 1);
  EXPECT_EQ(aotriton_attn_fwd(&args, nullptr), hipErrorNoDevice);
  EXPECT_NE(std::string(aotriton_last_error()).find("AMD: hipGetDeviceCount failed: hipErrorOutOfMemory (2). NVIDIA: "), std::string::npos)
      << aotriton_last_error();

  fake_hip::AddDevice("gfx90a:sramecc+:xnack-", 110);
  EXPECT_EQ(aotriton_attn_fwd(&args, nullptr), 0) << aotriton_last_error();
  EXPECT_EQ(fake_hip::Launches().size(), 1u);
  EXPECT_EQ(aotriton::getMultiProcessorCount(nullptr), 110);
  EXPECT_EQ(fake_hip::Calls("hipGetDeviceProperties") + fake_hip::Calls("hipGetDevicePropertiesR0600"), 1);
}

}  // namespace
