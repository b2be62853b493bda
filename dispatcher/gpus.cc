#include "dispatcher/gpus.h"

#include <cstring>
#include <map>
#include <shared_mutex>

#include "dispatcher/images.h"
#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

const platforms::Arch* FindArch(const char* vendor, const std::string& name) {
  for (const platforms::Arch& arch : platforms::kArchs) {
    if (name == arch.name && strcmp(vendor, arch.vendor) == 0) return &arch;
  }
  return nullptr;
}

// GPUs with one arch share what was read from its pack.
Status BindPack(const std::string& path, KernelId kernel, const platforms::Arch& arch, std::shared_ptr<const KernelPack>* bound) {
  static auto* const mutex = new std::mutex;
  static auto* const by_path = new std::map<std::string, std::shared_ptr<const KernelPack>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (const auto found = by_path->find(path); found != by_path->end()) {
    *bound = found->second;
    return Status();
  }
  std::shared_ptr<const Pack> pack;
  if (Status status = Pack::Open(path, &pack); !status.ok()) return status;
  if (Status status = KernelPack::Bind(std::move(pack), kernel, arch.vendor, arch.name, bound); !status.ok()) return status;
  by_path->emplace(path, *bound);
  return Status();
}

}  // namespace

Status Gpu::Arch(const platforms::Arch** arch) const {
  *arch = arch_;
  if (arch_ != nullptr) return Status();
  std::string known;
  for (const platforms::Arch& a : platforms::kArchs) known += (known.empty() ? "" : ", ") + std::string(a.name);
  return Status(kNoBinaryForGpu, Text("the GPU has arch \"", info_.arch, "\"; the library knows ", known));
}

Status Gpu::Find(KernelId kernel, const KernelPack** pack) {
  *pack = packs_[kernel].load(std::memory_order_acquire);
  if (*pack != nullptr) return Status();
  const platforms::Arch* arch = nullptr;
  if (Status status = Arch(&arch); !status.ok()) return status;

  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<const KernelPack>& owner = owners_[kernel];
  if (owner == nullptr) {
    std::string path;
    Status status = FindPack(arch->vendor, arch->name, Kernel::kFamily, kKernels[kernel].name, &path);
    if (status.ok()) status = BindPack(path, kernel, *arch, &owner);
    if (!status.ok()) return status;
    packs_[kernel].store(owner.get(), std::memory_order_release);
  }
  *pack = owner.get();
  return Status();
}

Status Locate(void* stream, StreamPlace* out) {
  if (Status status = FindDriver(&out->driver); !status.ok()) return status;
  if (Status status = out->driver->Locate(stream, &out->place); !status.ok()) return status;

  // Never destroyed: calls may come from exit handlers and from threads that outlive main().
  static auto* const mutex = new std::shared_mutex;
  static auto* const gpus = new std::map<int, std::unique_ptr<Gpu>>;
  const int device = out->place.device;
  {
    const std::shared_lock<std::shared_mutex> lock(*mutex);
    if (const auto found = gpus->find(device); found != gpus->end()) {
      out->gpu = found->second.get();
      return Status();
    }
  }
  DeviceInfo info;
  if (Status status = out->driver->Describe(device, &info); !status.ok()) return status;
  const std::unique_lock<std::shared_mutex> lock(*mutex);
  std::unique_ptr<Gpu>& gpu = (*gpus)[device];
  if (gpu == nullptr) gpu = std::make_unique<Gpu>(info, FindArch(out->driver->vendor(), info.arch));
  out->gpu = gpu.get();
  return Status();
}

}  // namespace aotriton::dispatcher
