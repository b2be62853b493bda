// The library as shipped: what it needs, and that it finds the images beside itself.
#include <aotriton/aotriton.h>
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "tests/dispatch/fake_hip.h"
#include "tests/dispatch/support.h"

namespace {

const char* const kLibrary = SONAME;  // in the test's working directory

template <typename T>
const T* At(const std::string& bytes, size_t offset) {
  return reinterpret_cast<const T*>(bytes.data() + offset);
}

const Elf64_Shdr* FindSection(const std::string& bytes, uint32_t type) {
  const auto* header = At<Elf64_Ehdr>(bytes, 0);
  for (int i = 0; i < header->e_shnum; ++i) {
    const auto* section = At<Elf64_Shdr>(bytes, header->e_shoff + sizeof(Elf64_Shdr) * i);
    if (section->sh_type == type) return section;
  }
  return nullptr;
}

const char* StringOf(const std::string& bytes, const Elf64_Shdr* section, size_t offset) {
  const auto* header = At<Elf64_Ehdr>(bytes, 0);
  const auto* strings = At<Elf64_Shdr>(bytes, header->e_shoff + sizeof(Elf64_Shdr) * section->sh_link);
  return bytes.data() + strings->sh_offset + offset;
}

// The entries of the dynamic section with a tag, e.g. DT_NEEDED.
std::set<std::string> Dynamic(const std::string& bytes, int64_t tag) {
  const Elf64_Shdr* table = FindSection(bytes, SHT_DYNAMIC);
  std::set<std::string> values;
  for (size_t offset = table->sh_offset; offset < table->sh_offset + table->sh_size; offset += sizeof(Elf64_Dyn)) {
    const auto* entry = At<Elf64_Dyn>(bytes, offset);
    if (entry->d_tag == tag) values.insert(StringOf(bytes, table, entry->d_un.d_val));
  }
  return values;
}

TEST(SharedLibraryTest, NeedsNoGpuRuntime) {
  const std::string bytes = support::ReadFile(kLibrary);
  for (const std::string& needed : Dynamic(bytes, DT_NEEDED)) {
    EXPECT_EQ(needed.find("hip"), std::string::npos) << needed;
    EXPECT_EQ(needed.find("cuda"), std::string::npos) << needed;
  }
  EXPECT_EQ(Dynamic(bytes, DT_SONAME), (std::set<std::string>{SONAME}));
}

struct Api {
  decltype(&aotriton_attn_fwd) attn_fwd;
  decltype(&aotriton_last_error) last_error;
  decltype(&aotriton_version) version;
};

// Loads a copy of the library from `path` as a library of its own.
Api Load(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    ADD_FAILURE() << dlerror();
    return {};
  }
  return {reinterpret_cast<decltype(&aotriton_attn_fwd)>(dlsym(handle, "aotriton_attn_fwd")),
          reinterpret_cast<decltype(&aotriton_last_error)>(dlsym(handle, "aotriton_last_error")),
          reinterpret_cast<decltype(&aotriton_version)>(dlsym(handle, "aotriton_version"))};
}

TEST(SharedLibraryTest, FindsImagesBesideItself) {
  unsetenv("AOTRITON_IMAGES_DIR");
  const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice("gfx942"));
  aotriton_attn_fwd_args args = support::Call();
  const support::Folder folder;
  const std::string path = folder.path() + "/lib/libaotriton_v2.so";
  support::WriteFile(path, support::ReadFile(kLibrary));
  const Api api = Load(path);
  ASSERT_NE(api.attn_fwd, nullptr);
  EXPECT_EQ(std::string("libaotriton_v2.so.") + api.version(), SONAME);

  const std::string pack = folder.path() + "/lib/aotriton.images/amd-gfx942/flash/attn_fwd.pack";
  EXPECT_EQ(api.attn_fwd(&args, stream), hipErrorFileNotFound);
  EXPECT_NE(std::string(api.last_error()).find("tried " + pack + ". Install"), std::string::npos) << api.last_error();
  support::WriteFile(pack, support::ReadFile(support::PackOf("gfx942")));
  EXPECT_EQ(api.attn_fwd(&args, stream), 0) << api.last_error();
}

TEST(SharedLibraryTest, FindsImagesBesideTheFileThatItsPathLinksTo) {
  unsetenv("AOTRITON_IMAGES_DIR");
  const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice("gfx950"));
  aotriton_attn_fwd_args args = support::Call();
  const support::Folder folder;
  const std::string real = folder.path() + "/real/" SONAME, link = folder.path() + "/link/libaotriton_v2.so";
  support::WriteFile(real, support::ReadFile(kLibrary));
  std::filesystem::create_directory(folder.path() + "/link");
  std::filesystem::create_symlink(real, link);
  const Api api = Load(link);
  ASSERT_NE(api.attn_fwd, nullptr);

  EXPECT_EQ(api.attn_fwd(&args, stream), hipErrorFileNotFound);
  const std::string inside = "/aotriton.images/amd-gfx950/flash/attn_fwd.pack";
  EXPECT_NE(std::string(api.last_error()).find("tried " + folder.path() + "/link" + inside + " and " + folder.path() + "/real" + inside),
            std::string::npos)
      << api.last_error();
  support::WriteFile(folder.path() + "/real" + inside, support::ReadFile(support::PackOf("gfx950")));
  EXPECT_EQ(api.attn_fwd(&args, stream), 0) << api.last_error();
}

}  // namespace
