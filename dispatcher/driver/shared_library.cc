#include "dispatcher/driver/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace aotriton::dispatcher {
namespace {

struct Search {
  const char* stem;
  std::string path;
};

int VisitLoaded(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* file = slash != nullptr ? slash + 1 : info->dlpi_name;
  if (strncmp(file, search->stem, strlen(search->stem)) != 0) return 0;
  search->path = info->dlpi_name;
  return 1;
}

}  // namespace

std::string SharedLibrary::Open(std::initializer_list<const char*> names, const char* stem) {
  for (const char* name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (handle_ != nullptr) return "";
  }
  Search search{stem, ""};
  dl_iterate_phdr(VisitLoaded, &search);
  if (!search.path.empty()) {
    handle_ = dlopen(search.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle_ != nullptr) return "";
  }
  std::string problem;
  for (const char* name : names) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return "";
    const char* error = dlerror();
    problem += (problem.empty() ? "" : "; ") + std::string(error != nullptr ? error : name);
  }
  return problem;
}

void* SharedLibrary::Find(const char* symbol) const { return dlsym(handle_, symbol); }

}  // namespace aotriton::dispatcher
