// The library as shipped: what it exports, and that it finds the images beside itself.
#include <aotriton/aotriton.h>
#include <cxxabi.h>
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

constexpr char kSoname[] = "libaotriton_v2.so." AOTRITON_RELEASE;
const char* const kLibrary = kSoname;  // in the test's working directory

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

std::set<std::string> Exports(const std::string& bytes) {
  const Elf64_Shdr* table = FindSection(bytes, SHT_DYNSYM);
  std::set<std::string> names;
  for (size_t offset = table->sh_offset; offset < table->sh_offset + table->sh_size; offset += sizeof(Elf64_Sym)) {
    const auto* symbol = At<Elf64_Sym>(bytes, offset);
    if (symbol->st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL) names.insert(StringOf(bytes, table, symbol->st_name));
  }
  return names;
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

TEST(SharedLibraryTest, ExportsThePublicApiAndNothingElse) {
  const std::string bytes = support::ReadFile(kLibrary);
  ASSERT_FALSE(bytes.empty());
  const std::set<std::string> exports = Exports(bytes);
  for (const char* name : {
           "aotriton_attn_fwd", "aotriton_attn_fwd_supported", "aotriton_attn_fwd_prepare", "aotriton_last_error", "aotriton_version",
           "aotriton_gpu_arch", "aotriton_attn_bwd", "aotriton_attn_bwd_supported", "aotriton_attn_bwd_prepare",
           "aotriton_debug_simulate_encoded_softmax", "aotriton_dropout_mask",
           "_ZN8aotriton16getGpuFromStreamEP12ihipStream_t",
           "_ZN8aotriton29isArchExperimentallySupportedEP12ihipStream_t",
           "_ZN8aotriton17isArchTechPreviewEP12ihipStream_t",
           "_ZN8aotriton22getMultiProcessorCountEP12ihipStream_t",
           "_ZN8aotriton2v25flash9check_gpuENS_14StreamTemplateIP12ihipStream_tEE",
           "_ZN8aotriton2v25flash8attn_fwdENS_10TensorViewILi4EEES3_S3_S3_fNS2_ILi2EEES3_fNS2_ILi0EEES5_lS5_S5_S3_bS5_"
           "NS_14StreamTemplateIP12ihipStream_tEEPNS1_17FwdExtraArgumentsE",
           "_ZN8aotriton2v25flash23attn_fwd_compact_varlenENS_10TensorViewILi4EEES3_S3_S3_NS2_ILi1EEES4_iifNS2_ILi2EEES3_fNS2_ILi0EEES6_lS6_"
           "S6_S3_bS6_NS_14StreamTemplateIP12ihipStream_tEEPNS1_17FwdExtraArgumentsE",
           "_ZN8aotriton2v25flash8attn_bwdENS_10TensorViewILi4EEES3_S3_S3_fS3_S3_S3_S3_S3_S3_NS2_ILi2EEES4_fNS2_ILi0EEES5_lb"
           "NS_14StreamTemplateIP12ihipStream_tEEPNS1_17BwdExtraArgumentsE",
           "_ZN8aotriton2v25flash14attn_bwd_fusedENS_10TensorViewILi4EEES3_S3_S3_fS3_S3_S3_S3_S3_S3_NS2_ILi2EEEfNS2_ILi0EEES5_lb"
           "NS_14StreamTemplateIP12ihipStream_tEEPNS1_22FusedBwdExtraArgumentsE",
           "_ZN8aotriton2v25flash23attn_bwd_compact_varlenENS_10TensorViewILi4EEES3_S3_NS2_ILi1EEES4_iiS3_fS3_S3_S3_S3_S3_S3_NS2_ILi2EEES5_f"
           "NS2_ILi0EEES6_lbNS_14StreamTemplateIP12ihipStream_tEEPNS1_17BwdExtraArgumentsE",
           "_ZN8aotriton2v25flash30debug_simulate_encoded_softmaxENS_10TensorViewILi4EEEfNS2_ILi0EEES4_mNS_14StreamTemplateIP12ihipStream_tEE",
           "_ZN8aotriton2v35flash15attn_bwd_paramsC1Ev", "_ZN8aotriton2v35flash15attn_bwd_paramsC2Ev",
           "_ZN8aotriton2v35flash8attn_bwdERKNS1_15attn_bwd_paramsEiNS_14StreamTemplateIP12ihipStream_tEEPKNS1_12attn_optionsE",
           "_ZN8aotriton2v35flash15attn_fwd_paramsC1Ev", "_ZN8aotriton2v35flash15attn_fwd_paramsC2Ev",
           "_ZN8aotriton2v35flash8attn_fwdERKNS1_15attn_fwd_paramsEiNS_14StreamTemplateIP12ihipStream_tEEPKNS1_12attn_optionsE",
           "_ZN8aotriton10TensorViewILi4EEC1Ev", "_ZN8aotriton10TensorViewILi1EEC1ElSt5arrayImLm1EES3_NS_5DTypeE",
           "_ZN8aotriton10TensorViewILi2EEC1ElSt5arrayImLm2EES3_NS_5DTypeE",
           "_ZN8aotriton10TensorViewILi4EEC1ElSt5arrayImLm4EES3_NS_5DTypeE",
       }) {
    EXPECT_TRUE(exports.count(name)) << name;
  }
  for (const std::string& name : exports) {
    char* readable = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr);
    const std::string text = readable != nullptr ? readable : name;
    free(readable);
    bool is_public = false;
    for (const char* prefix : {"aotriton_", "aotriton::TensorView<", "aotriton::v2::flash::", "aotriton::v3::flash::attn_fwd", "aotriton::v3::flash::attn_bwd",
                               "aotriton::getGpuFromStream",
                               "aotriton::isArch", "aotriton::getMultiProcessorCount"}) {
      is_public = is_public || text.compare(0, strlen(prefix), prefix) == 0;
    }
    EXPECT_TRUE(is_public) << text;
  }
}

TEST(SharedLibraryTest, NeedsNoGpuRuntime) {
  const std::string bytes = support::ReadFile(kLibrary);
  for (const std::string& needed : Dynamic(bytes, DT_NEEDED)) {
    EXPECT_EQ(needed.find("hip"), std::string::npos) << needed;
    EXPECT_EQ(needed.find("cuda"), std::string::npos) << needed;
  }
  EXPECT_EQ(Dynamic(bytes, DT_SONAME), (std::set<std::string>{kSoname}));
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
  EXPECT_STREQ(api.version(), AOTRITON_RELEASE);  // config.h says what the file's name says

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
  const std::string real = folder.path() + "/real/libaotriton_v2.so.0.12.0", link = folder.path() + "/link/libaotriton_v2.so";
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
