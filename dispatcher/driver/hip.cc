// HIP, AMD's runtime.
#include <hip/hip_runtime_api.h>

#include <cstring>

#include "dispatcher/driver/driver.h"
#include "dispatcher/driver/shared_library.h"
#include "dispatcher/text.h"

// The struct of hipGetDeviceProperties changed in ROCm 6, and with it the symbol: headers of
// ROCm 6 and later map the plain name to the ..R0600 symbol by a macro. Undo it here, where both
// symbols have to be told apart; hipDeviceProp_tR0000 is the struct of the plain symbol.
#include <hip/hip_deprecated.h>
#undef hipGetDeviceProperties

namespace aotriton::dispatcher {
namespace {

struct Api {
  SharedLibrary library;
  decltype(&::hipGetDeviceCount) GetDeviceCount;
  decltype(&::hipGetDevice) GetDevice;
  decltype(&::hipSetDevice) SetDevice;
  decltype(&::hipStreamGetDevice) StreamGetDevice;
  decltype(&::hipModuleLoadData) ModuleLoadData;
  decltype(&::hipModuleUnload) ModuleUnload;
  decltype(&::hipModuleGetFunction) ModuleGetFunction;
  decltype(&::hipModuleLaunchKernel) ModuleLaunchKernel;
  decltype(&::hipModuleOccupancyMaxActiveBlocksPerMultiprocessor) OccupancyMaxActiveBlocks;
  decltype(&::hipGetErrorName) GetErrorName;
  // One of the two is there.
  hipError_t (*GetDevicePropertiesR0600)(hipDeviceProp_tR0600*, int);
  hipError_t (*GetDevicePropertiesR0000)(hipDeviceProp_tR0000*, int);

  // "" or what is missing.
  std::string Open() {
    const std::string problem =
        library.Open({"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}, "libamdhip64");
    if (!problem.empty()) return problem;
    // The old symbol is asked for only where there is no new one: every ROCm exports it still.
    const bool has_properties = library.Bind(&GetDevicePropertiesR0600, {"hipGetDevicePropertiesR0600"}) ||
                                library.Bind(&GetDevicePropertiesR0000, {"hipGetDeviceProperties", "hipGetDevicePropertiesR0000"});
    if (!has_properties) return "libamdhip64 has no hipGetDeviceProperties";
    const char* missing = nullptr;
    const auto bind = [&](auto* function, const char* symbol) {
      if (!library.Bind(function, {symbol})) missing = symbol;
    };
    bind(&GetDeviceCount, "hipGetDeviceCount");
    bind(&GetDevice, "hipGetDevice");
    bind(&SetDevice, "hipSetDevice");
    bind(&StreamGetDevice, "hipStreamGetDevice");
    bind(&ModuleLoadData, "hipModuleLoadData");
    bind(&ModuleUnload, "hipModuleUnload");
    bind(&ModuleGetFunction, "hipModuleGetFunction");
    bind(&ModuleLaunchKernel, "hipModuleLaunchKernel");
    bind(&OccupancyMaxActiveBlocks, "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
    bind(&GetErrorName, "hipGetErrorName");
    return missing != nullptr ? Text("libamdhip64 has no ", missing) : "";
  }
};

class Hip final : public Driver {
 public:
  explicit Hip(const Api& api) : api_(api) {}

  const char* vendor() const override { return "amd"; }

  Status Locate(void* stream, Place* place) override {
    place->context = nullptr;
    // The three streams that every device has belong to the current one.
    const auto handle = static_cast<hipStream_t>(stream);
    if (handle == nullptr || handle == hipStreamPerThread || handle == hipStreamLegacy) {
      return Check(api_.GetDevice(&place->device), "hipGetDevice");
    }
    return Check(api_.StreamGetDevice(handle, &place->device), "hipStreamGetDevice");
  }

  Status Describe(int device, DeviceInfo* info) override {
    // Room behind the struct, should a runtime fill more than these headers know.
    union Properties {
      hipDeviceProp_tR0600 r0600;
      hipDeviceProp_tR0000 r0000;
      char room[8192];
    } properties;
    memset(&properties, 0, sizeof(properties));
    std::string name;
    if (api_.GetDevicePropertiesR0600 != nullptr) {
      Status status = Check(api_.GetDevicePropertiesR0600(&properties.r0600, device), "hipGetDeviceProperties");
      if (!status.ok()) return status;
      name.assign(properties.r0600.gcnArchName, strnlen(properties.r0600.gcnArchName, sizeof(properties.r0600.gcnArchName)));
      info->multiprocessors = properties.r0600.multiProcessorCount;
      info->memory_bytes = properties.r0600.totalGlobalMem;
    } else {
      Status status = Check(api_.GetDevicePropertiesR0000(&properties.r0000, device), "hipGetDeviceProperties");
      if (!status.ok()) return status;
      name.assign(properties.r0000.gcnArchName, strnlen(properties.r0000.gcnArchName, sizeof(properties.r0000.gcnArchName)));
      info->multiprocessors = properties.r0000.multiProcessorCount;
      info->memory_bytes = properties.r0000.totalGlobalMem;
    }
    info->arch = name.substr(0, name.find(':'));
    info->name = std::move(name);
    return Status();
  }

  // The token is the device to return to, or -1 if it was current already.
  Status Enter(const Place& place, intptr_t* token) override {
    int current = 0;
    if (Status status = Check(api_.GetDevice(&current), "hipGetDevice"); !status.ok()) return status;
    *token = -1;
    if (current == place.device) return Status();
    if (Status status = Check(api_.SetDevice(place.device), "hipSetDevice"); !status.ok()) return status;
    *token = current;
    return Status();
  }

  Status Leave(intptr_t token) override {
    return token < 0 ? Status() : Check(api_.SetDevice(static_cast<int>(token)), "hipSetDevice (back to the caller's device)");
  }

  Status LoadModule(const void* image, void** module) override {
    return Check(api_.ModuleLoadData(reinterpret_cast<hipModule_t*>(module), image), "hipModuleLoadData");
  }

  void UnloadModule(void* module) override { (void)api_.ModuleUnload(static_cast<hipModule_t>(module)); }

  Status GetFunction(void* module, const char* symbol, uint32_t, void** function) override {
    return Check(api_.ModuleGetFunction(reinterpret_cast<hipFunction_t*>(function), static_cast<hipModule_t>(module), symbol),
                 "hipModuleGetFunction");
  }

  Status ActiveWorkGroups(void* function, uint32_t threads, uint32_t shared, uint32_t* count) override {
    int found = 0;
    Status status = Check(api_.OccupancyMaxActiveBlocks(&found, static_cast<hipFunction_t>(function), static_cast<int>(threads), shared),
                          "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
    *count = static_cast<uint32_t>(found);
    return status;
  }

  Status Launch(void* function, const LaunchShape& shape, void** arguments, void* stream) override {
    return Check(api_.ModuleLaunchKernel(static_cast<hipFunction_t>(function), shape.grid, 1, 1, shape.threads, 1, 1,
                                         shape.shared, static_cast<hipStream_t>(stream), arguments, nullptr),
                 "hipModuleLaunchKernel");
  }

 private:
  Status Check(hipError_t error, const char* call) const {
    if (error == hipSuccess) return Status();
    const char* name = api_.GetErrorName(error);
    return Status(error, Text(call, " failed: ", name != nullptr ? name : "an unnamed error", " (", int{error}, ")"));
  }

  const Api api_;
};

}  // namespace

Status OpenHip(Driver** driver) {
  Api api = {};
  const std::string problem = api.Open();
  if (!problem.empty()) return Status(kNoDevice, problem);
  int count = 0;
  const hipError_t error = api.GetDeviceCount(&count);
  if (error != hipSuccess && error != hipErrorNoDevice) {
    return Status(kNoDevice, Text("hipGetDeviceCount failed: ", api.GetErrorName(error), " (", int{error}, ")"));
  }
  if (error != hipSuccess || count < 1) return Status(kNoDevice, "HIP has no device");
  *driver = new Hip(api);  // kept for the life of the process
  return Status();
}

}  // namespace aotriton::dispatcher
