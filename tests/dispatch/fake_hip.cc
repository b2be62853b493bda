#include "tests/dispatch/fake_hip.h"

// The plain name of the old symbol, which the headers map to the new one.
#include <hip/hip_deprecated.h>
#undef hipGetDeviceProperties

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <sstream>

struct ihipStream_t {
  int device;
};
struct ihipModule_t {
  int device;
  std::string arch, id, symbol;
  std::vector<std::pair<std::string, std::string>> arguments;  // name, type
};
struct ihipModuleSymbol_t {
  ihipModule_t* module;
};

namespace fake_hip {
namespace {

struct Device {
  std::string name;
  int multiprocessors;
  size_t memory_bytes;
};

struct Failure {
  hipError_t error;
  int times, skip;
};

struct State {
  std::mutex mutex;
  std::vector<Device> devices;
  std::vector<std::unique_ptr<ihipStream_t>> streams;
  std::vector<std::unique_ptr<ihipModule_t>> modules;
  std::vector<std::unique_ptr<ihipModuleSymbol_t>> functions;
  // Looked up with no std::string, so that a test can count the library's own allocations.
  std::map<std::string, Failure, std::less<>> failures;
  std::map<std::string, int, std::less<>> calls;
  Failure of_any{hipSuccess, 0, 0};
  std::vector<Load> loads;
  std::vector<Launch> launches;
};

State& Get() {
  static auto* const state = new State;
  return *state;
}

thread_local int current_device = 0;

// Logs a call; the error to give instead of doing it.
hipError_t Enter(const char* function) {
  const auto calls = Get().calls.find(function);
  if (calls != Get().calls.end()) {
    ++calls->second;
  } else {
    Get().calls.emplace(function, 1);
  }
  Failure& of_any = Get().of_any;
  if (of_any.times > 0 && of_any.skip-- == 0) {
    of_any.times = 0;
    return of_any.error;
  }
  const auto failure = Get().failures.find(function);
  if (failure == Get().failures.end() || failure->second.times == 0) return hipSuccess;
  if (failure->second.skip > 0) {
    --failure->second.skip;
    return hipSuccess;
  }
  --failure->second.times;
  return failure->second.error;
}

bool IsDevice(int device) { return device >= 0 && device < static_cast<int>(Get().devices.size()); }

template <typename Properties>
hipError_t FillProperties(const char* function, Properties* properties, int device) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (hipError_t error = Enter(function); error != hipSuccess) return error;
  if (!IsDevice(device)) return hipErrorInvalidDevice;
  memset(properties, 0x5a, sizeof(*properties));  // a reader of the wrong struct reads nonsense
  snprintf(properties->gcnArchName, sizeof(properties->gcnArchName), "%s", Get().devices[device].name.c_str());
  properties->multiProcessorCount = Get().devices[device].multiprocessors;
  properties->totalGlobalMem = Get().devices[device].memory_bytes;
  return hipSuccess;
}

uint64_t Hash(const std::string& bytes) {
  uint64_t hash = 14695981039346656037u;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

}  // namespace

int64_t Argument::integer() const {
  return type == "i32" ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
}

float Argument::real() const {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

void* Argument::pointer() const { return reinterpret_cast<void*>(bits); }

int AddDevice(const std::string& gcn_arch_name, int multiprocessors, double memory_gib) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  Get().devices.push_back({gcn_arch_name, multiprocessors, static_cast<size_t>(memory_gib * (1 << 30))});
  return static_cast<int>(Get().devices.size()) - 1;
}

hipStream_t AddStream(int device) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  Get().streams.push_back(std::make_unique<ihipStream_t>(ihipStream_t{device}));
  return Get().streams.back().get();
}

void Fail(const std::string& function, hipError_t error, int times, int skip) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  Get().failures[function] = {error, times, skip};
}

void FailAny(hipError_t error, int skip) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  Get().of_any = {error, 1, skip};
}

bool HasFailed() {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  return Get().of_any.times == 0;
}

std::vector<Load> Loads() {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  return Get().loads;
}

std::vector<Launch> Launches() {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  return Get().launches;
}

int Calls(const std::string& function) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  return Get().calls[function];
}

void Clear() {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  Get().failures.clear();
  Get().of_any = {hipSuccess, 0, 0};
  Get().calls.clear();
  Get().loads.clear();
  Get().launches.clear();
}

}  // namespace fake_hip

using namespace fake_hip;

extern "C" {

hipError_t hipGetDeviceCount(int* count) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (hipError_t error = Enter("hipGetDeviceCount"); error != hipSuccess) return error;
  *count = static_cast<int>(Get().devices.size());
  return *count > 0 ? hipSuccess : hipErrorNoDevice;
}

hipError_t hipGetDevice(int* device) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (hipError_t error = Enter("hipGetDevice"); error != hipSuccess) return error;
  *device = current_device;
  return hipSuccess;
}

hipError_t hipSetDevice(int device) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (hipError_t error = Enter("hipSetDevice"); error != hipSuccess) return error;
  if (!IsDevice(device)) return hipErrorInvalidDevice;
  current_device = device;
  return hipSuccess;
}

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t* device) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (hipError_t error = Enter("hipStreamGetDevice"); error != hipSuccess) return error;
  *device = stream->device;
  return hipSuccess;
}

#ifndef FAKE_HIP_BEFORE_ROCM6
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int device) {
  return FillProperties("hipGetDevicePropertiesR0600", properties, device);
}
#endif

hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000* properties, int device) {
  return FillProperties("hipGetDeviceProperties", properties, device);
}

hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (hipError_t error = Enter("hipModuleLoadData"); error != hipSuccess) return error;
  const std::string text = static_cast<const char*>(image);
  std::istringstream lines(text);
  std::string magic, arguments;
  auto loaded = std::make_unique<ihipModule_t>();
  std::getline(lines, magic);
  std::getline(lines, loaded->arch);
  std::getline(lines, loaded->id);
  std::getline(lines, loaded->symbol);
  std::getline(lines, arguments);
  if (magic != "FAKE") return hipErrorInvalidImage;
  if (!IsDevice(current_device)) return hipErrorInvalidDevice;
  const std::string& name = Get().devices[current_device].name;
  const std::string family = loaded->arch.substr(0, loaded->arch.find("-generic"));
  const bool is_generic = family != loaded->arch && name.compare(0, family.size(), family) == 0;
  if (name.substr(0, name.find(':')) != loaded->arch && !is_generic) return hipErrorNoBinaryForGpu;
  std::istringstream words(arguments);
  for (std::string word; words >> word;) {
    const size_t colon = word.find(':');
    loaded->arguments.emplace_back(word.substr(0, colon), word.substr(colon + 1));
  }
  loaded->device = current_device;
  Get().loads.push_back({current_device, loaded->id, Hash(text)});
  Get().modules.push_back(std::move(loaded));
  *module = Get().modules.back().get();
  return hipSuccess;
}

hipError_t hipModuleUnload(hipModule_t) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  return Enter("hipModuleUnload");
}

hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (hipError_t error = Enter("hipModuleGetFunction"); error != hipSuccess) return error;
  if (module->symbol != name) return hipErrorNotFound;
  Get().functions.push_back(std::make_unique<ihipModuleSymbol_t>(ihipModuleSymbol_t{module}));
  *function = Get().functions.back().get();
  return hipSuccess;
}

// As many as fill 1024 threads.
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* count, hipFunction_t, int threads, size_t) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (hipError_t error = Enter("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"); error != hipSuccess) return error;
  *count = 1024 / threads;
  return hipSuccess;
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared, hipStream_t stream, void** parameters,
                                 void**) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (hipError_t error = Enter("hipModuleLaunchKernel"); error != hipSuccess) return error;
  const ihipModule_t& module = *function->module;
  // What HIP refuses: another device's function, or another device's stream.
  if (module.device != current_device || (stream != nullptr && stream->device != current_device)) return hipErrorInvalidHandle;
  Launch launch{current_device, stream, module.id, module.symbol, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, {}, {}};
  for (size_t i = 0; i < module.arguments.size(); ++i) {
    const auto& [name, type] = module.arguments[i];
    Argument argument{type, 0};
    memcpy(&argument.bits, parameters[i], type == "i32" || type == "fp32" ? 4 : 8);
    launch.names.push_back(name);
    launch.arguments[name] = argument;
  }
  Get().launches.push_back(std::move(launch));
  return hipSuccess;
}

const char* hipGetErrorName(hipError_t error) {
  switch (error) {
    case hipErrorInvalidImage: return "hipErrorInvalidImage";
    case hipErrorOutOfMemory: return "hipErrorOutOfMemory";
    case hipErrorNoBinaryForGpu: return "hipErrorNoBinaryForGpu";
    case hipErrorInvalidDevice: return "hipErrorInvalidDevice";
    case hipErrorNotFound: return "hipErrorNotFound";
    default: return "hipErrorUnknown";
  }
}

}  // extern "C"
