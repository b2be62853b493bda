// Two copies in one process, as when PyTorch and TransformerEngine bring one each: the plain one and one
// with a suffix, all their names in the global scope. Each keeps to itself.
#include <aotriton/aotriton.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/dispatch/fake_hip.h"
#include "tests/dispatch/support.h"

namespace {

struct Copy {
  void* handle;
  decltype(&aotriton_attn_fwd) attn_fwd;
  decltype(&aotriton_last_error) last_error;
  decltype(&aotriton_version) version;
  hipError_t (*check_gpu)(hipStream_t);

  Copy(const std::string& file, const std::string& name) : handle(dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    if (handle == nullptr) return;
    // From the global scope, where the first of a name wins.
    attn_fwd = reinterpret_cast<decltype(attn_fwd)>(dlsym(RTLD_DEFAULT, (name + "_attn_fwd").c_str()));
    last_error = reinterpret_cast<decltype(last_error)>(dlsym(RTLD_DEFAULT, (name + "_last_error").c_str()));
    version = reinterpret_cast<decltype(version)>(dlsym(RTLD_DEFAULT, (name + "_version").c_str()));
    const std::string mangled =
        "_ZN" + std::to_string(name.size()) + name + "2v25flash9check_gpuENS_14StreamTemplateIP12ihipStream_tEE";
    check_gpu = reinterpret_cast<decltype(check_gpu)>(dlsym(RTLD_DEFAULT, mangled.c_str()));
  }
};

TEST(TwoCopiesTest, EachKeepsToItself) {
  support::Images images;
  images.Install("gfx942");
  const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice("gfx942"));
  const Copy plain(PLAIN, "aotriton"), suffixed("./libaotriton_TEprivate_v2.so.0.11.2", "aotriton_TEprivate");
  ASSERT_NE(plain.handle, nullptr) << dlerror();
  ASSERT_NE(suffixed.handle, nullptr) << dlerror();
  for (const Copy* copy : {&plain, &suffixed}) {
    ASSERT_NE(copy->attn_fwd, nullptr);
    ASSERT_NE(copy->last_error, nullptr);
    ASSERT_NE(copy->version, nullptr);
    ASSERT_NE(copy->check_gpu, nullptr);
  }
  EXPECT_STREQ(suffixed.version(), "0.11.2");
  EXPECT_STRNE(plain.version(), suffixed.version());

  // The text of a refusal is the copy's own.
  aotriton_attn_fwd_args args = support::Call();
  EXPECT_EQ(plain.attn_fwd(&args, stream), 0) << plain.last_error();
  args.q.dtype = 77;
  EXPECT_EQ(suffixed.attn_fwd(&args, stream), hipErrorNotSupported);
  EXPECT_NE(std::string(suffixed.last_error()).find("q has dtype 77"), std::string::npos);
  EXPECT_STREQ(plain.last_error(), "");

  // So is what is loaded.
  args = support::Call();
  EXPECT_EQ(suffixed.attn_fwd(&args, stream), 0) << suffixed.last_error();
  EXPECT_EQ(fake_hip::Loads().size(), 2u);
  EXPECT_EQ(fake_hip::Launches().size(), 2u);
  EXPECT_EQ(plain.check_gpu(stream), hipSuccess) << plain.last_error();
  EXPECT_EQ(suffixed.check_gpu(stream), hipSuccess) << suffixed.last_error();
}

}  // namespace
