// The GPU runtime of this process, HIP or CUDA. Entry points are looked up at run time, so that
// one library serves every ROCm, works on NVIDIA, and loads where there is no GPU at all.
#ifndef AOTRITON_DISPATCHER_DRIVER_DRIVER_H_
#define AOTRITON_DISPATCHER_DRIVER_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "dispatcher/status.h"

namespace aotriton::dispatcher {

// Where the work of a stream runs. Modules belong to a place: on CUDA to a context, of which a
// device may have several; HIP has none and leaves it null.
struct Place {
  int device = 0;
  void* context = nullptr;

  friend bool operator<(const Place& a, const Place& b) {
    return a.device != b.device ? a.device < b.device : a.context < b.context;
  }
};

struct DeviceInfo {
  std::string name;  // as the driver spells it, with features: "gfx90a:sramecc+:xnack-"
  std::string arch;  // as the arch table spells it: "gfx90a", "sm_90"
  int multiprocessors = 0;
  uint64_t memory_bytes = 0;  // 0 where products are not told apart by it
};

struct LaunchShape {
  uint32_t grid = 0;
  uint32_t threads = 0;
  uint32_t shared = 0;
};

// CUtensorMap: how TMA finds a tensor. Passed to a kernel by value.
struct alignas(64) EncodedTensorMap {
  unsigned char bytes[128];
};

// A tensor (batch, head, row, column) of 16-bit elements for TMA; sizes and strides are in that order.
struct TensorMapShape {
  void* data = nullptr;
  int32_t dtype = 0;  // of tensor.h
  const int64_t* sizes = nullptr;    // 4
  const int64_t* strides = nullptr;  // 3, in elements; the last stride is 1
  uint32_t box_rows = 0;             // of a copy; it has 64 columns, 128 bytes, swizzled
};

class Driver {
 public:
  virtual ~Driver() = default;

  // The vendor as the arch table spells it.
  virtual const char* vendor() const = 0;

  // The place of `stream`; a null stream belongs to the thread's current device.
  virtual Status Locate(void* stream, Place* place) = 0;

  virtual Status Describe(int device, DeviceInfo* info) = 0;

  // Makes `place` the thread's current one. `token` is what Leave() needs to undo it.
  virtual Status Enter(const Place& place, intptr_t* token) = 0;
  virtual Status Leave(intptr_t token) = 0;

  // These work on the current place. `image` must stay valid as long as the module.
  virtual Status LoadModule(const void* image, void** module) = 0;
  virtual void UnloadModule(void* module) = 0;
  virtual Status GetFunction(void* module, const char* symbol, uint32_t shared, void** function) = 0;
  // How many work groups of this shape run at once on one multiprocessor.
  virtual Status ActiveWorkGroups(void* function, uint32_t threads, uint32_t shared, uint32_t* count) = 0;
  virtual Status Launch(void* function, const LaunchShape& shape, void** arguments, void* stream) = 0;

  // What kernels of Hopper need beside; only a driver that has it is asked the rest.
  virtual bool serves_hopper() const { return false; }
  virtual Status EncodeTensorMap(const TensorMapShape&, EncodedTensorMap*) { return Unserved(); }
  // `id` is the stream's for the life of the process: a handle may come again. A stream that is being captured into a
  // graph has none.
  virtual Status Identify(void* /*stream*/, uint64_t* /*id*/, bool* /*is_capturing*/) { return Unserved(); }
  // Device memory of the current place, all 0 when this returns, also while a stream is being captured.
  virtual Status AllocateZeroed(size_t /*size*/, void** /*memory*/) { return Unserved(); }

 private:
  static Status Unserved() { return Status(kNotSupported, "the GPU runtime has nothing that kernels of Hopper need"); }
};

// Keeps `place` current while it lives.
class CurrentPlace {
 public:
  explicit CurrentPlace(Driver* driver) : driver_(driver) {}
  ~CurrentPlace() {
    if (is_entered_) (void)driver_->Leave(token_);  // on the way out of another failure
  }
  CurrentPlace(const CurrentPlace&) = delete;
  CurrentPlace& operator=(const CurrentPlace&) = delete;

  Status Enter(const Place& place) {
    Status status = driver_->Enter(place, &token_);
    is_entered_ = status.ok();
    return status;
  }

  Status Leave() {
    is_entered_ = false;
    return driver_->Leave(token_);
  }

 private:
  Driver* const driver_;
  intptr_t token_ = 0;
  bool is_entered_ = false;
};

// The driver of this process: AMD if HIP has a device, else NVIDIA if CUDA has one, else
// kNoDevice. A driver once found stays; its absence is asked anew each time, because a program
// may load its GPU runtime, or be given its GPU, after the first call.
Status FindDriver(Driver** driver);

// The two candidates; `driver` lives as long as the process.
Status OpenHip(Driver** driver);
Status OpenCuda(Driver** driver);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_DRIVER_DRIVER_H_
