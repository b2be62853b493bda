// Where the packs lie.
#ifndef AOTRITON_DISPATCHER_IMAGES_H_
#define AOTRITON_DISPATCHER_IMAGES_H_

#include <string>

#include "dispatcher/status.h"

namespace aotriton::dispatcher {

// The path of the pack <images>/<vendor>-<arch>/<family>/<kernel>.pack, where <images> is the
// folder AOTRITON_IMAGES (an environment variable, and then no other place is searched), else
// aotriton.images beside this library, else beside the file that this library's path links to.
// kFileNotFound names every path that was tried.
Status FindPack(const std::string& vendor, const std::string& arch, const std::string& family, const std::string& kernel,
                std::string* path);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_IMAGES_H_
