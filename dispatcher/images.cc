#include "dispatcher/images.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <vector>

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

std::string Folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::vector<std::string> Candidates() {
  const char* from_environment = getenv("AOTRITON_IMAGES");
  if (from_environment != nullptr && *from_environment != '\0') return {from_environment};
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&FindPack), &self) == 0 || self.dli_fname == nullptr) return {};
  std::vector<std::string> out = {Folder(self.dli_fname) + "/aotriton.images"};
  if (char* real = realpath(self.dli_fname, nullptr); real != nullptr) {
    const std::string beside_real = Folder(real) + "/aotriton.images";
    free(real);
    if (beside_real != out[0]) out.push_back(beside_real);
  }
  return out;
}

}  // namespace

Status FindPack(const std::string& vendor, const std::string& arch, const std::string& family, const std::string& kernel,
                std::string* path) {
  const std::string inside = "/" + vendor + "-" + arch + "/" + family + "/" + kernel + ".pack";
  std::string tried;
  for (const std::string& images : Candidates()) {
    *path = images + inside;
    if (access(path->c_str(), F_OK) == 0) return Status();
    tried += (tried.empty() ? "" : " and ") + *path;
  }
  return Status(kFileNotFound, Text("there is no pack of ", kernel, " for this GPU, ", arch, ": tried ", tried,
                                    ". Install aotriton.images/", vendor, "-", arch,
                                    " beside the library, or set AOTRITON_IMAGES to the aotriton.images that has it"));
}

}  // namespace aotriton::dispatcher
