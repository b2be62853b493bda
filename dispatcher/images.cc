#include "dispatcher/images.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

// Set before main(), so they must not wait for a constructor.
const EmbeddedPack* embedded_packs = nullptr;
size_t embedded_count = 0;

struct Chosen {
  std::mutex mutex;
  std::string folder;
};

Chosen& FolderOfCaller() {
  static auto* const chosen = new Chosen;  // never destroyed: calls may come from exit handlers
  return *chosen;
}

std::string Folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// The only folder to search; "" if there is none.
std::string OnlyFolder() {
  {
    const std::lock_guard<std::mutex> lock(FolderOfCaller().mutex);
    if (!FolderOfCaller().folder.empty()) return FolderOfCaller().folder;
  }
  const char* from_environment = getenv("AOTRITON_IMAGES_DIR");
  return from_environment != nullptr ? from_environment : "";
}

std::vector<std::string> FoldersBesideThisLibrary() {
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

void SetEmbeddedPacks(const EmbeddedPack* packs, size_t count) {
  embedded_packs = packs;
  embedded_count = count;
}

Status SetImagesDir(const std::string& folder) {
  struct stat info;
  if (!folder.empty() && (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))) {
    return Status(kFileNotFound, Text("images_dir is \"", folder, "\"; it must be an existing folder, one like aotriton.images"));
  }
  const std::lock_guard<std::mutex> lock(FolderOfCaller().mutex);
  FolderOfCaller().folder = folder;
  return Status();
}

Status FindPack(const std::string& vendor, const std::vector<std::string>& targets, const std::string& family,
                const std::string& kernel, PackPlace* place) {
  std::string tried;
  const auto path_of = [&](const std::string& target) { return vendor + "-" + target + "/" + family + "/" + kernel + ".pack"; };
  const auto is_in = [&](const std::string& images) {
    for (const std::string& target : targets) {
      *place = {images + "/" + path_of(target), target, nullptr};
      if (access(place->path.c_str(), F_OK) == 0) return true;
      tried += (tried.empty() ? "" : " and ") + place->path;
    }
    return false;
  };

  const std::string only = OnlyFolder();
  if (!only.empty()) {
    if (is_in(only)) return Status();
  } else {
    for (const std::string& target : targets) {
      for (const EmbeddedPack* pack = embedded_packs; pack != embedded_packs + embedded_count; ++pack) {
        if (path_of(target) != pack->path) continue;
        *place = {Text("embedded:", pack->path), target, pack};
        return Status();
      }
    }
    if (embedded_count > 0) tried = Text("the ", embedded_count, " packs in this library");
    for (const std::string& images : FoldersBesideThisLibrary()) {
      if (is_in(images)) return Status();
    }
  }
  std::string folders;
  for (const std::string& target : targets) folders += (folders.empty() ? "aotriton.images/" : " or ") + vendor + "-" + target;
  return Status(kFileNotFound, Text("there is no pack of ", kernel, " for this GPU, ", targets[0], ": tried ", tried, ". Install ", folders,
                                    " beside the library, or set AOTRITON_IMAGES_DIR to the aotriton.images that has it"));
}

}  // namespace aotriton::dispatcher
