// Where the packs lie.
#ifndef AOTRITON_DISPATCHER_IMAGES_H_
#define AOTRITON_DISPATCHER_IMAGES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "dispatcher/status.h"

namespace aotriton::dispatcher {

// A pack that is part of the library.
struct EmbeddedPack {
  const char* path;  // "amd-gfx942/flash/attn_fwd.pack"
  const unsigned char* begin;
  const unsigned char* end;
};

// Called by what embeds them, when the library is loaded.
void SetEmbeddedPacks(const EmbeddedPack* packs, size_t count);

// A folder that is searched in place of all others from now on; "" for none. kFileNotFound if it is
// no folder, and then nothing changes.
Status SetImagesDir(const std::string& folder);

struct PackPlace {
  std::string path;    // for messages too: "embedded:..." of a pack in the library
  std::string target;  // of `targets`, the one whose pack it is
  const EmbeddedPack* embedded = nullptr;
};

// Finds the pack <images>/<vendor>-<target>/<family>/<kernel>.pack of the first target that has one.
// <images> is the folder of SetImagesDir(), else the folder AOTRITON_IMAGES_DIR (of the environment);
// with neither, the packs in this library, then aotriton.images beside it, then beside the file that
// its path links to. kFileNotFound names all that was tried.
Status FindPack(const std::string& vendor, const std::vector<std::string>& targets, const std::string& family,
                const std::string& kernel, PackPlace* place);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_IMAGES_H_
