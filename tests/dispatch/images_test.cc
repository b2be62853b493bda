// Where packs are looked for, and which of them serve a GPU.
#include <aotriton/aotriton.h>
#include <aotriton/util.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "tests/dispatch/fake_hip.h"
#include "tests/dispatch/support.h"

namespace {

using support::Folder;

std::string Last() { return aotriton_last_error(); }

void Put(const std::string& images, const std::string& target, const std::string& pack_of) {
  support::WriteFile(images + "/amd-" + target + "/flash/attn_fwd.pack", support::ReadFile(support::PackOf(pack_of)));
}

class ImagesTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("AOTRITON_IMAGES_DIR", environment_.path().c_str(), 1);
    fake_hip::Clear();
  }
  void TearDown() override {
    EXPECT_EQ(aotriton_set_images_dir(nullptr), 0);
    unsetenv("AOTRITON_IMAGES_DIR");
  }
  static aotriton_status Call(const std::string& arch) {
    const aotriton_attn_fwd_args args = support::Call();
    return aotriton_attn_fwd(&args, fake_hip::AddStream(fake_hip::AddDevice(arch)));
  }

  const Folder environment_, given_;
};

TEST_F(ImagesTest, TheFolderOfTheCallerComesBeforeTheEnvironment) {
  Put(environment_.path(), "gfx942", "gfx942");
  ASSERT_EQ(aotriton_set_images_dir(given_.path().c_str()), 0) << Last();
  EXPECT_EQ(Call("gfx942"), hipErrorFileNotFound);
  EXPECT_NE(Last().find("tried " + given_.path() + "/amd-gfx942/flash/attn_fwd.pack. Install"), std::string::npos) << Last();
  Put(given_.path(), "gfx942", "gfx942");
  EXPECT_EQ(Call("gfx942"), 0) << Last();
  // Back to the environment.
  for (const char* none : {static_cast<const char*>(nullptr), ""}) {
    ASSERT_EQ(aotriton_set_images_dir(given_.path().c_str()), 0);
    EXPECT_EQ(aotriton_set_images_dir(none), 0);
    EXPECT_EQ(Call("gfx950"), hipErrorFileNotFound);
    EXPECT_NE(Last().find("tried " + environment_.path() + "/amd-gfx950"), std::string::npos) << Last();
  }
}

TEST_F(ImagesTest, AFolderThatIsNotThereIsRefusedAndChangesNothing) {
  Put(environment_.path(), "gfx90a", "gfx90a");
  const std::string missing = given_.path() + "/aotriton.images";
  EXPECT_EQ(aotriton_set_images_dir(missing.c_str()), hipErrorFileNotFound);
  EXPECT_EQ(Last(), "images_dir is \"" + missing + "\"; it must be an existing folder, one like aotriton.images");
  EXPECT_EQ(aotriton_set_images_dir(support::PackOf("gfx90a").c_str()), hipErrorFileNotFound);
  EXPECT_EQ(Call("gfx90a"), 0) << Last();
}

TEST_F(ImagesTest, AFamilysPackServesWhatHasNoneOfItsOwn) {
  EXPECT_EQ(Call("gfx1102"), hipErrorFileNotFound);
  const std::string images = environment_.path();
  EXPECT_EQ(Last().find("there is no pack of attn_fwd for this GPU, gfx1102: tried " + images + "/amd-gfx1102/flash/attn_fwd.pack and " + images +
                        "/amd-gfx11-generic/flash/attn_fwd.pack. Install aotriton.images/amd-gfx1102 or amd-gfx11-generic beside the library, or "),
            0u)
      << Last();
  Put(images, "gfx11-generic", "gfx11-generic");
  for (const char* arch : {"gfx1102", "gfx1100", "gfx1151"}) {
    EXPECT_EQ(Call(arch), 0) << arch << Last();
    EXPECT_EQ(fake_hip::Loads().back().id, "bf16.64.0.aligned.0.0.m128");
  }
  // Of another family.
  EXPECT_EQ(Call("gfx1200"), hipErrorFileNotFound);
  EXPECT_EQ(Call("gfx1201"), hipErrorFileNotFound);

  // One of its own comes first.
  Put(images, "gfx1101", "gfx90a");
  EXPECT_EQ(Call("gfx1101"), hipErrorInvalidImage);
  EXPECT_NE(Last().find("its arch is \"gfx90a\", expected is \"gfx1101\""), std::string::npos) << Last();
  // The label of a family's pack is checked too.
  Put(images, "gfx12-generic", "gfx11-generic");
  EXPECT_EQ(Call("gfx1200"), hipErrorInvalidImage);
  EXPECT_NE(Last().find("its arch is \"gfx11-generic\", expected is \"gfx12-generic\""), std::string::npos) << Last();
}

TEST_F(ImagesTest, AnArchOfTheSameCodeIsServedBeforeTheFamily) {
  const std::string images = environment_.path();
  Put(images, "gfx12-generic", "gfx12-generic");
  EXPECT_EQ(Call("gfx1200"), 0) << Last();
  Put(images, "gfx1201", "gfx1201");
  EXPECT_EQ(Call("gfx1201"), 0) << Last();
  // What it holds must be code that the arch could run: these are texts.
  EXPECT_EQ(Call("gfx1200"), hipErrorInvalidImage);
  EXPECT_NE(Last().find("it is no code object for gfx1201, which gfx1200 could run, for the code object attn_fwd"), std::string::npos) << Last();
}

TEST_F(ImagesTest, ArchsOfAFamilyAreNamed) {
  const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice("gfx1102:xnack-"));
  EXPECT_EQ(aotriton::Gpu2VendorArch(aotriton::getGpuFromStream(stream)), aotriton::CAT32(0x1002, 0x1102));
  EXPECT_TRUE(aotriton::isArchExperimentallySupported(stream));
  char arch[16];
  EXPECT_EQ(aotriton_gpu_arch(stream, arch, sizeof(arch)), 0);
  EXPECT_STREQ(arch, "gfx1102");
}

}  // namespace
