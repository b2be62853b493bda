#include "dispatcher/gpus.h"

#include <cstring>
#include <map>
#include <shared_mutex>
#include <vector>

#include "dispatcher/images.h"
#include "dispatcher/log.h"
#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

const platforms::Arch* FindArch(const char* vendor, const std::string& name) {
  for (const platforms::Arch& arch : platforms::kArchs) {
    if (name == arch.name && strcmp(vendor, arch.vendor) == 0) return &arch;
  }
  return nullptr;
}

// What packs may be for, to serve this arch: itself, else an arch of the same code, else its whole family.
std::vector<std::string> TargetsOf(const platforms::Arch& arch) {
  std::vector<std::string> out = {arch.name};
  if (strcmp(arch.code_of, arch.name) != 0) out.push_back(arch.code_of);
  if (strcmp(arch.family, arch.name) != 0) out.push_back(std::string(arch.family) + "-generic");
  return out;
}

// GPUs that are served by one pack share what was read from it.
Status BindPack(const PackPlace& place, KernelId kernel, const platforms::Arch& arch, std::shared_ptr<const KernelPack>* bound) {
  static auto* const mutex = new std::mutex;
  static auto* const by_path = new std::map<std::string, std::shared_ptr<const KernelPack>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  if (const auto found = by_path->find(place.path); found != by_path->end() && !found->second->pack().IsReplaced()) {
    *bound = found->second;
    return Status();
  }
  std::shared_ptr<const Pack> pack;
  const EmbeddedPack* embedded = place.embedded;
  Status status = embedded == nullptr
                      ? Pack::Open(place.path, &pack)
                      : Pack::Open(place.path, embedded->begin, static_cast<size_t>(embedded->end - embedded->begin), &pack);
  if (status.ok()) status = KernelPack::Bind(pack, kernel, arch.vendor, place.target, bound);
  if (!status.ok()) return status;
  (*by_path)[place.path] = *bound;
  Log(LogLevel::kOnce, "opened the pack ", place.path, " (", pack->functional_count(), " functionals, ", pack->variant_count(),
      " code objects, of version ", pack->Meta("version"), ") for ", arch.name);
  return Status();
}

// Whether the device has about so much memory: what a runtime reports is less than what is printed on the box.
bool HasMemory(const DeviceInfo& info, int gib) {
  const uint64_t whole = uint64_t{static_cast<uint32_t>(gib)} << 30, eighth = whole / 8;
  return info.memory_bytes >= whole - eighth && info.memory_bytes <= whole + eighth;
}

}  // namespace

int Gpu::mod() const {
  for (const platforms::Gpu& gpu : platforms::kGpus) {
    if (arch_ == nullptr || strcmp(gpu.arch, arch_->name) != 0) continue;
    if (gpu.multiprocessors != 0 && gpu.multiprocessors != info_.multiprocessors) continue;
    if (gpu.memory_gib == 0 || HasMemory(info_, gpu.memory_gib)) return gpu.mod;
  }
  return 0;
}

bool Gpu::HasKernel(KernelId kernel) const {
  return kKernels[kernel].only_arch == nullptr || info_.arch == kKernels[kernel].only_arch;
}

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
  if (owner != nullptr && owner->pack().IsReplaced()) replaced_.push_back(std::move(owner));
  if (owner == nullptr) {
    PackPlace place;
    Status status = FindPack(arch->vendor, TargetsOf(*arch), Kernel::kFamily, kKernels[kernel].name, &place);
    if (status.ok()) status = BindPack(place, kernel, *arch, &owner);
    if (!status.ok()) return status;
  }
  *pack = owner.get();
  packs_[kernel].store(*pack, std::memory_order_release);
  return Status();
}

void Gpu::Reconsider(const Pack* pack) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int kernel = 0; kernel < kKernelCount; ++kernel) {
    if (owners_[kernel] != nullptr && &owners_[kernel]->pack() == pack) packs_[kernel].store(nullptr, std::memory_order_release);
  }
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
  if (gpu == nullptr) {
    gpu = std::make_unique<Gpu>(info, FindArch(out->driver->vendor(), info.arch));
    Log(LogLevel::kOnce, "device ", device, " of ", out->driver->vendor(), " is ", info.name, " with ", info.multiprocessors,
        " multiprocessors");
  }
  out->gpu = gpu.get();
  return Status();
}

}  // namespace aotriton::dispatcher
