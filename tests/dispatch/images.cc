#include "tests/dispatch/images.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace support {

std::string PackOf(const std::string& arch, const std::string& kernel) {
  return std::string(kPacks) + "/images/amd-" + arch + "/flash/" + kernel + ".pack";
}

std::string BadPack(const std::string& defect) { return std::string(kPacks) + "/bad/" + defect + ".pack"; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

Folder::Folder() {
  const char* parent = getenv("TEST_TMPDIR");
  path_ = std::string(parent != nullptr ? parent : "/tmp") + "/dispatch.XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) abort();
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Images::Images() { setenv("AOTRITON_IMAGES_DIR", folder_.path().c_str(), 1); }

Images::~Images() { unsetenv("AOTRITON_IMAGES_DIR"); }

std::string Images::PathOf(const std::string& arch, const std::string& vendor, const std::string& kernel) const {
  return folder_.path() + "/" + vendor + "-" + arch + "/flash/" + kernel + ".pack";
}

void Images::Install(const std::string& arch, const std::string& pack) const { WriteFile(PathOf(arch), ReadFile(pack)); }

void Images::Install(const std::string& arch) const {
  for (const char* kernel : kKernels) WriteFile(PathOf(arch, "amd", kernel), ReadFile(PackOf(arch, kernel)));
}

}  // namespace support
