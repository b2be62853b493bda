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
Status BackendOfPack(const std::string& path, const platforms::Arch& arch, std::shared_ptr<const AttnFwdTriton>* backend) {
  static auto* const mutex = new std::mutex;
  static auto* const by_path = new std::map<std::string, std::shared_ptr<const AttnFwdTriton>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (const auto found = by_path->find(path); found != by_path->end()) {
    *backend = found->second;
    return Status();
  }
  std::shared_ptr<const Pack> pack;
  if (Status status = Pack::Open(path, &pack); !status.ok()) return status;
  if (Status status = AttnFwdTriton::Bind(std::move(pack), arch.vendor, arch.name, backend); !status.ok()) return status;
  by_path->emplace(path, *backend);
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

Status Gpu::AttnFwd(const AttnFwdTriton** backend) {
  *backend = attn_fwd_.load(std::memory_order_acquire);
  if (*backend != nullptr) return Status();
  const platforms::Arch* arch = nullptr;
  if (Status status = Arch(&arch); !status.ok()) return status;

  const std::lock_guard<std::mutex> lock(mutex_);
  if (attn_fwd_owner_ == nullptr) {
    std::string path;
    Status status = FindPack(arch->vendor, arch->name, AttnFwdTriton::kFamily, AttnFwdTriton::kKernel, &path);
    if (status.ok()) status = BackendOfPack(path, *arch, &attn_fwd_owner_);
    if (!status.ok()) return status;
    attn_fwd_.store(attn_fwd_owner_.get(), std::memory_order_release);
  }
  *backend = attn_fwd_owner_.get();
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
