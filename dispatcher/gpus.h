// The GPUs of this process, and what is known about each.
#ifndef AOTRITON_DISPATCHER_GPUS_H_
#define AOTRITON_DISPATCHER_GPUS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dispatcher/driver/driver.h"
#include "dispatcher/kernel_pack.h"
#include "dispatcher/status.h"
#include "platforms/archs.h"

namespace aotriton::dispatcher {

class Gpu {
 public:
  Gpu(const DeviceInfo& info, const platforms::Arch* arch) : info_(info), arch_(arch) {}

  const DeviceInfo& info() const { return info_; }

  // Which product of its arch it is, gfx942_mod<n>: 0 where its properties are those of no other.
  int mod() const;

  // Its row of the arch table; kNoBinaryForGpu, with the archs that have one, if it has none.
  Status Arch(const platforms::Arch** arch) const;

  // Whether kernels of this id are made for its arch.
  bool HasKernel(KernelId kernel) const;

  // A kernel for this GPU, from the pack that is found at the first success.
  Status Find(KernelId kernel, const KernelPack** pack);

  // A code object of the pack could not be loaded: if its file is replaced by then, the next call opens it anew.
  void Reconsider(const Pack* pack);

 private:
  const DeviceInfo info_;
  const platforms::Arch* const arch_;  // may be null
  std::mutex mutex_;
  std::atomic<const KernelPack*> packs_[kKernelCount] = {};
  std::shared_ptr<const KernelPack> owners_[kKernelCount];
  std::vector<std::shared_ptr<const KernelPack>> replaced_;  // other threads may still use them
};

// Where `stream` runs. `gpu` lives as long as the process.
struct StreamPlace {
  Driver* driver = nullptr;
  Place place;
  Gpu* gpu = nullptr;
};
Status Locate(void* stream, StreamPlace* out);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_GPUS_H_
