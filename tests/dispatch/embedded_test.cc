// Packs that are a part of the program: one of attn_fwd for gfx942, and one for a family.
#include <aotriton/aotriton.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "tests/dispatch/fake_hip.h"
#include "tests/dispatch/support.h"

namespace {

aotriton_status Call(const std::string& arch) {
  const aotriton_attn_fwd_args args = support::Call();
  return aotriton_attn_fwd(&args, fake_hip::AddStream(fake_hip::AddDevice(arch)));
}

std::string Last() { return aotriton_last_error(); }

TEST(EmbeddedTest, PacksAreFoundWithoutFiles) {
  unsetenv("AOTRITON_IMAGES_DIR");
  for (const char* arch : {"gfx942:sramecc+:xnack-", "gfx1102"}) {
    EXPECT_EQ(Call(arch), 0) << Last();
    EXPECT_EQ(fake_hip::Launches().back().id, "bf16.64.0.aligned.0.0.m128");
  }
  EXPECT_EQ(Call("gfx950"), hipErrorFileNotFound);
  EXPECT_EQ(Last().find("there is no pack of attn_fwd for this GPU, gfx950: tried the 2 packs in this library and /"), 0u) << Last();
  const aotriton_attn_bwd_args backward = support::BackwardCall();
  EXPECT_EQ(aotriton_attn_bwd(&backward, fake_hip::AddStream(fake_hip::AddDevice("gfx942"))), hipErrorFileNotFound);
}

TEST(EmbeddedTest, ClaimsWhatTheBuildSays) { EXPECT_STREQ(aotriton_version(), CLAIM); }

TEST(EmbeddedTest, AFolderThatIsNamedTakesTheirPlace) {
  const support::Images images;
  EXPECT_EQ(Call("gfx942"), hipErrorFileNotFound);
  EXPECT_EQ(Last().find("there is no pack of attn_fwd for this GPU, gfx942: tried " + images.PathOf("gfx942") + ". Install"), 0u) << Last();
}

}  // namespace
