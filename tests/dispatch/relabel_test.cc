// Code objects of one arch become those of another, to the byte. Run in the runfiles' root, with images of archs of the
// same code that were each compiled for themselves.
#include "dispatcher/relabel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "dispatcher/kernel_pack.h"
#include "dispatcher/pack.h"
#include "platforms/archs.h"

namespace aotriton::dispatcher {
namespace {

std::string PackOf(const std::string& arch, const std::string& kernel) {
  return "aotriton.images/amd-" + arch + "/flash/" + kernel + ".pack";
}

class Codes {
 public:
  Codes(const std::string& arch, const std::string& kernel) {
    Status status = Pack::Open(PackOf(arch, kernel), &pack_);
    EXPECT_TRUE(status.ok()) << status.text();
  }

  uint32_t count() const { return pack_->functional_count(); }

  std::string Describe(uint32_t functional) const { return pack_->DescribeFunctional(functional); }

  // The first code object of a functional.
  Bytes Get(uint32_t functional) const {
    Bytes code;
    const Pack::Functional found = pack_->functional(functional);
    Status status = pack_->LoadCode(found, found.first_variant, &code);
    EXPECT_TRUE(status.ok()) << status.text();
    return code;
  }

 private:
  std::shared_ptr<const Pack> pack_;
};

std::string Text(const Bytes& code) { return std::string(reinterpret_cast<const char*>(code.data.get()), code.size); }

TEST(RelabelTest, MakesWhatTheCompilerMakes) {
  int compared = 0;
  for (const platforms::Arch& arch : platforms::kArchs) {
    if (strcmp(arch.code_of, arch.name) == 0) continue;
    for (const Kernel& known : kKernels) {
      const char* const kernel = known.name;
      if (access(PackOf(arch.name, kernel).c_str(), F_OK) != 0) continue;  // the images are of a few kernels
      SCOPED_TRACE(std::string(arch.name) + " " + kernel);
      const Codes own(arch.name, kernel), others(arch.code_of, kernel);
      ASSERT_EQ(own.count(), others.count());
      for (uint32_t i = 0; i < own.count(); ++i, ++compared) {
        Bytes code = others.Get(i);
        const std::string compiled = Text(own.Get(i));
        EXPECT_NE(Text(code), compiled);
        Status status = Relabel(arch.code_of, arch, &code);
        ASSERT_TRUE(status.ok()) << status.text();
        EXPECT_TRUE(Text(code) == compiled) << own.Describe(i);
      }
    }
  }
  EXPECT_GE(compared, 12);
  printf("%d code objects were compared\n", compared);
}

TEST(RelabelTest, RefusesWhatIsNotLabelledAsSaid) {
  for (const platforms::Arch& arch : platforms::kArchs) {
    if (strcmp(arch.name, "gfx1200") != 0) continue;
    Bytes of_another = Codes("gfx1150", "attn_fwd").Get(0);
    const std::string before = Text(of_another);
    EXPECT_EQ(Relabel("gfx1201", arch, &of_another).code(), kInvalidImage);
    EXPECT_EQ(Text(of_another), before);
    Bytes no_code;
    no_code.size = 70;
    no_code.data.reset(new unsigned char[70]());
    Status status = Relabel("gfx1201", arch, &no_code);
    EXPECT_EQ(status.text(), "it is no code object for gfx1201, which gfx1200 could run");
    no_code.size = 3;
    EXPECT_EQ(Relabel("gfx1201", arch, &no_code).code(), kInvalidImage);
  }
}

}  // namespace
}  // namespace aotriton::dispatcher
