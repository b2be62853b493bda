// A machine with no GPU runtime at all. The guard is what PyTorch's adapter defines, to be rid of
// the v2 functions that newer releases do not have; check_gpu must stay.
#define AOTRITON_V2_API_FLASH_ATTN_H

#include <aotriton/aotriton.h>
#include <aotriton/flash.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/dispatch/support.h"

namespace {

class NoGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* library : {"libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7", "libcuda.so.1"}) {
      if (dlopen(library, RTLD_NOW) != nullptr) GTEST_SKIP() << "this machine has " << library;
    }
  }
};

TEST_F(NoGpuTest, EveryFunctionAnswers) {
  aotriton_attn_fwd_args args = support::Call();
  EXPECT_EQ(aotriton_attn_fwd(&args, nullptr), hipErrorNoDevice);
  const std::string text = aotriton_last_error();
  EXPECT_EQ(text.find("no GPU was found. AMD: "), 0u) << text;
  EXPECT_NE(text.find("libamdhip64.so: cannot open shared object file"), std::string::npos) << text;
  EXPECT_NE(text.find("NVIDIA: libcuda.so.1: cannot open shared object file"), std::string::npos) << text;
  EXPECT_EQ(aotriton_attn_fwd_supported(&args, nullptr), hipErrorNoDevice);
  EXPECT_EQ(aotriton_attn_fwd_prepare(&args, nullptr), hipErrorNoDevice);
  EXPECT_EQ(aotriton::v2::flash::check_gpu(nullptr), hipErrorNoDevice);
  EXPECT_EQ(aotriton::getGpuFromStream(nullptr), aotriton::GPU_ARCH_UNKNOWN);
  EXPECT_FALSE(aotriton::isArchExperimentallySupported(nullptr));
  EXPECT_FALSE(aotriton::isArchTechPreview(nullptr));
  EXPECT_EQ(aotriton::getMultiProcessorCount(nullptr), 40);
  char arch[16];
  EXPECT_EQ(aotriton_gpu_arch(nullptr, arch, sizeof(arch)), hipErrorNoDevice);
}

TEST_F(NoGpuTest, ArgumentsAreCheckedFirst) {
  aotriton_attn_fwd_args args = support::Call();
  args.k.rank = 2;
  EXPECT_EQ(aotriton_attn_fwd(&args, nullptr), hipErrorInvalidValue);
  args = support::Call(AOTRITON_FLOAT16, {2, 8, 0, 64}, 8, 10, 64);
  EXPECT_EQ(aotriton_attn_fwd(&args, nullptr), 0);  // nothing to do, and no GPU needed for it
}

}  // namespace
