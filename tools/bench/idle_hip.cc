// A libamdhip64 that does nothing, at once: what is left of a call's time is the library's own. It has
// four devices of one arch and takes any code object. It has no lock: a race of its caller stays one.
#include "tools/bench/idle_hip.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

std::atomic<int> loads{0}, launches{0};
thread_local int current_device = 0;

}  // namespace

namespace idle_hip {

hipStream_t StreamOf(int device) { return reinterpret_cast<hipStream_t>(static_cast<uintptr_t>(device + 1) << 12); }
int Loads() { return loads.load(std::memory_order_relaxed); }
int Launches() { return launches.load(std::memory_order_relaxed); }

}  // namespace idle_hip

extern "C" {

hipError_t hipGetDeviceCount(int* count) {
  *count = idle_hip::kDevices;
  return hipSuccess;
}

hipError_t hipGetDevice(int* device) {
  *device = current_device;
  return hipSuccess;
}

hipError_t hipSetDevice(int device) {
  current_device = device;
  return hipSuccess;
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t* device) {
  *device = static_cast<int>(reinterpret_cast<uintptr_t>(stream) >> 12) - 1;
  return hipSuccess;
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int) {
  memset(properties, 0, sizeof(*properties));
  snprintf(properties->gcnArchName, sizeof(properties->gcnArchName), "gfx942:sramecc+:xnack-");
  properties->multiProcessorCount = 304;
  return hipSuccess;
}

// A module is its image, a function its module.
hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  loads.fetch_add(1, std::memory_order_relaxed);
  *module = static_cast<hipModule_t>(const_cast<void*>(image));
  return hipSuccess;
}

hipError_t hipModuleUnload(hipModule_t) { return hipSuccess; }

hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char*) {
  *function = reinterpret_cast<hipFunction_t>(module);
  return hipSuccess;
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* count, hipFunction_t, int, size_t) {
  *count = 2;
  return hipSuccess;
}

hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, hipStream_t, void**,
                                 void**) {
  launches.fetch_add(1, std::memory_order_relaxed);
  return hipSuccess;
}

const char* hipGetErrorName(hipError_t) { return "hipErrorUnknown"; }

}  // extern "C"
