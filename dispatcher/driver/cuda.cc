// CUDA's driver API. Declared here, because the build has no CUDA headers: the names and numbers
// below are that API's ABI, frozen since CUDA 11.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dispatcher/driver/driver.h"
#include "dispatcher/driver/shared_library.h"
#include "dispatcher/tensor.h"
#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

using Result = int;  // CUresult; its numbers are those of hipError_t where both have the error
using Device = int;  // CUdevice
using Context = void*;
constexpr Result kCudaSuccess = 0;
constexpr int kMultiprocessorCount = 16;        // CU_DEVICE_ATTRIBUTE_...
constexpr int kComputeCapabilityMajor = 75;
constexpr int kComputeCapabilityMinor = 76;
constexpr int kMaxDynamicSharedSizeBytes = 8;   // CU_FUNC_ATTRIBUTE_...
constexpr uint32_t kSharedWithoutAsking = 48 * 1024;
constexpr int kMapFloat16 = 6, kMapBFloat16 = 9;  // CU_TENSOR_MAP_DATA_TYPE_...
constexpr int kInterleaveNone = 0;                // CU_TENSOR_MAP_...
constexpr int kSwizzle128B = 3;
constexpr int kL2Promotion128B = 2;
constexpr int kOutsideReadsAs0 = 0;
constexpr int kStreamNonBlocking = 1;     // CU_STREAM_NON_BLOCKING
constexpr int kCaptureModeRelaxed = 2;    // CU_STREAM_CAPTURE_MODE_RELAXED

struct Api {
  SharedLibrary library;
  Result (*Init)(unsigned int);
  Result (*DeviceGetCount)(int*);
  Result (*DeviceGet)(Device*, int);
  Result (*DeviceGetAttribute)(int*, int, Device);
  Result (*DevicePrimaryCtxRetain)(Context*, Device);
  Result (*CtxGetCurrent)(Context*);
  Result (*CtxGetDevice)(Device*);
  Result (*CtxPushCurrent)(Context);
  Result (*CtxPopCurrent)(Context*);
  Result (*StreamGetCtx)(void*, Context*);
  Result (*ModuleLoadData)(void**, const void*);
  Result (*ModuleUnload)(void*);
  Result (*ModuleGetFunction)(void**, void*, const char*);
  Result (*FuncSetAttribute)(void*, int, int);
  Result (*LaunchKernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  Result (*OccupancyMaxActiveBlocks)(int*, void*, int, size_t);
  Result (*GetErrorName)(Result, const char**);
  // Of CUDA 12: null where there is an older driver.
  Result (*TensorMapEncodeTiled)(EncodedTensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
                                 const uint32_t*, int, int, int, int);
  Result (*StreamGetId)(void*, unsigned long long*);
  Result (*StreamIsCapturing)(void*, int*);
  Result (*ThreadExchangeStreamCaptureMode)(int*);
  Result (*MemAlloc)(uint64_t*, size_t);
  Result (*MemFree)(uint64_t);
  Result (*MemsetD8Async)(uint64_t, unsigned char, size_t, void*);
  Result (*StreamCreate)(void**, unsigned);
  Result (*StreamSynchronize)(void*);
  Result (*StreamDestroy)(void*);
  bool serves_hopper;

  // "" or what is missing.
  std::string Open() {
    const std::string problem = library.Open({"libcuda.so.1", "libcuda.so"}, "libcuda.so");
    if (!problem.empty()) return problem;
    const char* missing = nullptr;
    const auto bind = [&](auto* function, const char* symbol) {
      if (!library.Bind(function, {symbol})) missing = symbol;
    };
    bind(&Init, "cuInit");
    bind(&DeviceGetCount, "cuDeviceGetCount");
    bind(&DeviceGet, "cuDeviceGet");
    bind(&DeviceGetAttribute, "cuDeviceGetAttribute");
    bind(&DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    bind(&CtxGetCurrent, "cuCtxGetCurrent");
    bind(&CtxGetDevice, "cuCtxGetDevice");
    bind(&CtxPushCurrent, "cuCtxPushCurrent_v2");
    bind(&CtxPopCurrent, "cuCtxPopCurrent_v2");
    bind(&StreamGetCtx, "cuStreamGetCtx");
    bind(&ModuleLoadData, "cuModuleLoadData");
    bind(&ModuleUnload, "cuModuleUnload");
    bind(&ModuleGetFunction, "cuModuleGetFunction");
    bind(&FuncSetAttribute, "cuFuncSetAttribute");
    bind(&LaunchKernel, "cuLaunchKernel");
    bind(&OccupancyMaxActiveBlocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    bind(&GetErrorName, "cuGetErrorName");
    if (missing != nullptr) return Text("libcuda has no ", missing);
    bind(&TensorMapEncodeTiled, "cuTensorMapEncodeTiled");
    bind(&StreamGetId, "cuStreamGetId");
    bind(&StreamIsCapturing, "cuStreamIsCapturing");
    bind(&ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
    bind(&MemAlloc, "cuMemAlloc_v2");
    bind(&MemFree, "cuMemFree_v2");
    bind(&MemsetD8Async, "cuMemsetD8Async");
    bind(&StreamCreate, "cuStreamCreate");
    bind(&StreamSynchronize, "cuStreamSynchronize");
    bind(&StreamDestroy, "cuStreamDestroy_v2");
    serves_hopper = missing == nullptr;
    return "";
  }

  Status Check(Result result, const char* call) const {
    if (result == kCudaSuccess) return Status();
    const char* name = nullptr;
    if (GetErrorName(result, &name) != kCudaSuccess || name == nullptr) name = "an unnamed error";
    return Status(result, Text(call, " failed: ", name, " (", result, ")"));
  }
};

class Cuda final : public Driver {
 public:
  explicit Cuda(const Api& api) : api_(api) {}

  const char* vendor() const override { return "nvidia"; }

  Status Locate(void* stream, Place* place) override {
    // The default streams (null, and the special handles 1 and 2) belong to the current context.
    Status status = reinterpret_cast<uintptr_t>(stream) <= 2
                        ? api_.Check(api_.CtxGetCurrent(&place->context), "cuCtxGetCurrent")
                        : api_.Check(api_.StreamGetCtx(stream, &place->context), "cuStreamGetCtx");
    if (!status.ok()) return status;
    // A thread that has not used CUDA yet: what the runtime API would do is take device 0.
    if (place->context == nullptr) status = PrimaryContextOfDevice0(&place->context);
    if (!status.ok()) return status;
    intptr_t token = 0;
    if (status = Enter(*place, &token); !status.ok()) return status;
    status = api_.Check(api_.CtxGetDevice(&place->device), "cuCtxGetDevice");
    Status left = Leave(token);
    return status.ok() ? left : status;
  }

  Status Describe(int device, DeviceInfo* info) override {
    int major = 0, minor = 0;
    struct Attribute {
      int* value;
      int number;
    };
    for (const Attribute& attribute : {Attribute{&major, kComputeCapabilityMajor}, Attribute{&minor, kComputeCapabilityMinor},
                                       Attribute{&info->multiprocessors, kMultiprocessorCount}}) {
      Status status = api_.Check(api_.DeviceGetAttribute(attribute.value, attribute.number, device), "cuDeviceGetAttribute");
      if (!status.ok()) return status;
    }
    info->name = info->arch = Text("sm_", major, minor);
    return Status();
  }

  // The token says whether a context was pushed.
  Status Enter(const Place& place, intptr_t* token) override {
    Context current = nullptr;
    if (Status status = api_.Check(api_.CtxGetCurrent(&current), "cuCtxGetCurrent"); !status.ok()) return status;
    *token = 0;
    if (current == place.context) return Status();
    if (Status status = api_.Check(api_.CtxPushCurrent(place.context), "cuCtxPushCurrent"); !status.ok()) return status;
    *token = 1;
    return Status();
  }

  Status Leave(intptr_t token) override {
    Context popped = nullptr;
    return token == 0 ? Status() : api_.Check(api_.CtxPopCurrent(&popped), "cuCtxPopCurrent (back to the caller's context)");
  }

  Status LoadModule(const void* image, void** module) override {
    return api_.Check(api_.ModuleLoadData(module, image), "cuModuleLoadData");
  }

  void UnloadModule(void* module) override { (void)api_.ModuleUnload(module); }

  Status GetFunction(void* module, const char* symbol, uint32_t shared, void** function) override {
    Status status = api_.Check(api_.ModuleGetFunction(function, module, symbol), "cuModuleGetFunction");
    if (!status.ok() || shared <= kSharedWithoutAsking) return status;
    return api_.Check(api_.FuncSetAttribute(*function, kMaxDynamicSharedSizeBytes, static_cast<int>(shared)), "cuFuncSetAttribute");
  }

  Status ActiveWorkGroups(void* function, uint32_t threads, uint32_t shared, uint32_t* count) override {
    int found = 0;
    Status status = api_.Check(api_.OccupancyMaxActiveBlocks(&found, function, static_cast<int>(threads), shared),
                               "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    *count = static_cast<uint32_t>(found);
    return status;
  }

  Status Launch(void* function, const LaunchShape& shape, void** arguments, void* stream) override {
    return api_.Check(api_.LaunchKernel(function, shape.grid, 1, 1, shape.threads, 1, 1, shape.shared, stream, arguments, nullptr),
                      "cuLaunchKernel");
  }

  bool serves_hopper() const override { return api_.serves_hopper; }

  Status EncodeTensorMap(const TensorMapShape& shape, EncodedTensorMap* map) override {
    constexpr uint32_t kBoxColumns = 64, kOneByOne[] = {1, 1, 1, 1};
    uint64_t sizes[4], strides[3];  // the column comes first; strides in bytes
    for (int i = 0; i < 4; ++i) sizes[i] = static_cast<uint64_t>(shape.sizes[3 - i]);
    for (int i = 0; i < 3; ++i) strides[i] = static_cast<uint64_t>(shape.strides[2 - i] * ElementSize(shape.dtype));
    const uint32_t box[] = {kBoxColumns, shape.box_rows, 1, 1};
    return api_.Check(api_.TensorMapEncodeTiled(map, shape.dtype == kBFloat16 ? kMapBFloat16 : kMapFloat16, 4, shape.data, sizes, strides,
                                                box, kOneByOne, kInterleaveNone, kSwizzle128B, kL2Promotion128B, kOutsideReadsAs0),
                      "cuTensorMapEncodeTiled");
  }

  Status Identify(void* stream, uint64_t* id, bool* is_capturing) override {
    int capture = 0;
    Status status = api_.Check(api_.StreamIsCapturing(stream, &capture), "cuStreamIsCapturing");
    *is_capturing = capture != 0;
    if (!status.ok() || *is_capturing) return status;  // then asking for its id would end the capture
    unsigned long long found = 0;
    status = api_.Check(api_.StreamGetId(stream, &found), "cuStreamGetId");
    *id = found;
    return status;
  }

  Status AllocateZeroed(size_t size, void** memory) override {
    // Else an allocation would break a capture that is under way, on this thread or on another.
    int mode = kCaptureModeRelaxed;
    Status status = api_.Check(api_.ThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
    if (!status.ok()) return status;
    uint64_t address = 0;
    status = api_.Check(api_.MemAlloc(&address, size), "cuMemAlloc");
    if (status.ok()) {
      status = Zero(address, size);
      if (!status.ok()) (void)api_.MemFree(address);
    }
    *memory = reinterpret_cast<void*>(address);
    Status restored = api_.Check(api_.ThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
    return status.ok() ? restored : status;
  }

 private:
  // On a stream of its own: the default one may not be used while a stream is being captured.
  Status Zero(uint64_t address, size_t size) {
    void* stream = nullptr;
    Status status = api_.Check(api_.StreamCreate(&stream, kStreamNonBlocking), "cuStreamCreate");
    if (!status.ok()) return status;
    status = api_.Check(api_.MemsetD8Async(address, 0, size, stream), "cuMemsetD8Async");
    if (status.ok()) status = api_.Check(api_.StreamSynchronize(stream), "cuStreamSynchronize");
    (void)api_.StreamDestroy(stream);
    return status;
  }

  // Retained once and never released: modules live in it until the process ends.
  Status PrimaryContextOfDevice0(Context* context) {
    *context = primary_.load(std::memory_order_acquire);
    if (*context != nullptr) return Status();
    Device device = 0;
    if (Status status = api_.Check(api_.DeviceGet(&device, 0), "cuDeviceGet"); !status.ok()) return status;
    Status status = api_.Check(api_.DevicePrimaryCtxRetain(context, device), "cuDevicePrimaryCtxRetain");
    if (status.ok()) primary_.store(*context, std::memory_order_release);
    return status;
  }

  std::atomic<Context> primary_{nullptr};
  const Api api_;
};

}  // namespace

Status OpenCuda(Driver** driver) {
  Api api = {};
  const std::string problem = api.Open();
  if (!problem.empty()) return Status(kNoDevice, problem);
  if (Status status = api.Check(api.Init(0), "cuInit"); !status.ok()) return status;
  int count = 0;
  if (Status status = api.Check(api.DeviceGetCount(&count), "cuDeviceGetCount"); !status.ok()) return status;
  if (count < 1) return Status(kNoDevice, "CUDA has no device");
  *driver = new Cuda(api);  // kept for the life of the process
  return Status();
}

}  // namespace aotriton::dispatcher
