// libamdhip64.so whose devices are simulated. AOTRITON_SIM_DEVICES=gfx942,gfx1201 names their archs.
// A launch has run when the call returns, so every stream is always idle. Device memory is host memory.
#include <hip/hip_runtime_api.h>

// The plain name of the old symbol, which the headers map to the new one.
#include <hip/hip_deprecated.h>
#undef hipGetDeviceProperties

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include "simulator/fault.h"
#include "simulator/hazards.h"
#include "simulator/launch.h"

struct ihipStream_t {
  int device;
};
struct ihipModule_t {
  int device;
  std::unique_ptr<simulator::Program> program;
};
struct ihipModuleSymbol_t {
  ihipModule_t* module;
  const simulator::Kernel* kernel;
};

namespace {

// Few, so that a persistent kernel of a small problem has several tiles for each work group.
constexpr int kMultiprocessors = 2;
constexpr int kThreadsOfMultiprocessor = 1024;

struct State {
  std::mutex mutex;
  std::vector<std::string> devices;
  simulator::Memory memory;
  simulator::LaunchOptions options;
  std::vector<std::unique_ptr<ihipStream_t>> streams;
  std::vector<std::unique_ptr<ihipModule_t>> modules;
  std::vector<std::unique_ptr<ihipModuleSymbol_t>> functions;
  std::map<std::string, simulator::Program*> last_programs;  // by the kernel's name
  std::string last_fault;
  std::string launches;

  State() {
    const char* names = getenv("AOTRITON_SIM_DEVICES");
    std::istringstream list(names == nullptr ? "" : names);
    try {
      for (std::string name; std::getline(list, name, ',');) devices.push_back(simulator::FindArch(name).name);
    } catch (const simulator::Fault& fault) {
      fprintf(stderr, "simulated GPU: AOTRITON_SIM_DEVICES: %s\n", fault.what());
      devices.clear();
    }
    const char* seed = getenv("AOTRITON_SIM_SEED");
    if (seed != nullptr) options.seed = strtoull(seed, nullptr, 10);
  }
};

State& Get() {
  static auto* const state = new State;
  return *state;
}

thread_local int current_device = 0;

bool IsDevice(int device) { return device >= 0 && device < static_cast<int>(Get().devices.size()); }

uint32_t LdsSize(const std::string& arch) { return arch == "gfx950" ? 160 * 1024 : 64 * 1024; }

template <typename Properties>
hipError_t FillProperties(Properties* properties, int device) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (!IsDevice(device)) return hipErrorInvalidDevice;
  memset(properties, 0, sizeof(*properties));
  const std::string& arch = Get().devices[device];
  snprintf(properties->gcnArchName, sizeof(properties->gcnArchName), "%s", arch.c_str());
  snprintf(properties->name, sizeof(properties->name), "simulated %s", arch.c_str());
  properties->multiProcessorCount = kMultiprocessors;
  properties->sharedMemPerBlock = LdsSize(arch);
  properties->warpSize = simulator::FindArch(arch).isa == simulator::Isa::kGfx9 ? 64 : 32;
  return hipSuccess;
}

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

hipError_t Report(const simulator::Fault& fault, hipError_t error) {
  Get().last_fault = fault.what();
  fprintf(stderr, "simulated GPU: %s\n", fault.what());
  return error;
}

// What no run may show: the lanes and the time that it takes happen to be right.
void CheckCode(const simulator::Program& program) {
  try {
    simulator::CheckHazards(program);
  } catch (const simulator::Fault& fault) {
    const auto& kernels = program.object().kernels();
    throw simulator::Fault(kernels.empty() ? "" : kernels[0].name, ": ", fault.what());
  }
}

// The bytes of all arguments, as the metadata say they lie.
std::vector<uint8_t> PackArguments(const simulator::Kernel& kernel, void** parameters) {
  std::vector<uint8_t> bytes(kernel.kernarg_size);
  size_t number = 0;
  for (const simulator::KernelArgument& argument : kernel.arguments) {
    if (size_t{argument.offset} + argument.size > bytes.size()) throw simulator::Fault(kernel.name, ": an argument lies behind the others");
    if (!argument.hidden) memcpy(&bytes[argument.offset], parameters[number++], argument.size);
  }
  return bytes;
}

}  // namespace

extern "C" {

// For tests: what the last kernel that failed did wrong.
const char* aotriton_simulator_last_fault() { return Get().last_fault.c_str(); }

// For tests: a line for each launch since it was asked last: kernel, instructions that all its waves ran, seconds of the CPU.
const char* aotriton_simulator_launches() {
  static auto* const given = new std::string;
  State& state = Get();
  const std::lock_guard<std::mutex> lock(state.mutex);
  *given = std::move(state.launches);
  state.launches.clear();
  return given->c_str();
}

// For mutation runs, of the kernel of this name that was launched last: how many of its instructions were reached, ...
int aotriton_simulator_reached(const char* kernel) {
  State& state = Get();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto found = state.last_programs.find(kernel);
  return found == state.last_programs.end() ? 0 : found->second->reached();
}

// ... to change one of them (a number of Mutation) in its next launches; gives the instruction as it was, nullptr where there
// is nothing to change.
const char* aotriton_simulator_mutate(const char* kernel, int number, int mutation) {
  static auto* const text = new std::string;
  State& state = Get();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto found = state.last_programs.find(kernel);
  if (found == state.last_programs.end()) return nullptr;
  state.options.endless = 1'000'000;
  const simulator::Instruction* changed = found->second->Mutate(number, static_cast<simulator::Mutation>(mutation));
  if (changed == nullptr) return nullptr;
  *text = Print(*changed);
  return text->c_str();
}

// ... and to put it back.
void aotriton_simulator_restore(const char* kernel) {
  State& state = Get();
  const std::lock_guard<std::mutex> lock(state.mutex);
  const auto found = state.last_programs.find(kernel);
  if (found != state.last_programs.end()) found->second->Restore();
}

hipError_t hipGetDeviceCount(int* count) {
  *count = static_cast<int>(Get().devices.size());
  return *count > 0 ? hipSuccess : hipErrorNoDevice;
}

hipError_t hipGetDevice(int* device) {
  *device = current_device;
  return hipSuccess;
}

hipError_t hipSetDevice(int device) {
  if (!IsDevice(device)) return hipErrorInvalidDevice;
  current_device = device;
  return hipSuccess;
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int device) { return FillProperties(properties, device); }
hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000* properties, int device) { return FillProperties(properties, device); }

hipError_t hipDeviceSynchronize() { return hipSuccess; }

hipError_t hipStreamCreate(hipStream_t* stream) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (!IsDevice(current_device)) return hipErrorInvalidDevice;
  Get().streams.push_back(std::make_unique<ihipStream_t>(ihipStream_t{current_device}));
  *stream = Get().streams.back().get();
  return hipSuccess;
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  auto& streams = Get().streams;
  const auto found = std::find_if(streams.begin(), streams.end(), [&](const auto& owned) { return owned.get() == stream; });
  if (found == streams.end()) return hipErrorInvalidHandle;
  streams.erase(found);
  return hipSuccess;
}

hipError_t hipStreamSynchronize(hipStream_t) { return hipDeviceSynchronize(); }

hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t* device) {
  *device = stream->device;
  return hipSuccess;
}

hipError_t hipMalloc(void** pointer, size_t size) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (!IsDevice(current_device)) return hipErrorInvalidDevice;
  *pointer = size == 0 ? nullptr : reinterpret_cast<void*>(Get().memory.Allocate(size));
  return hipSuccess;
}

hipError_t hipFree(void* pointer) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  return pointer == nullptr || Get().memory.Free(reinterpret_cast<uintptr_t>(pointer)) ? hipSuccess : hipErrorInvalidValue;
}

// Host memory that kernels may address; it may overlap nothing that is registered or allocated.
hipError_t hipHostRegister(void* pointer, size_t size, unsigned) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (pointer == nullptr || size == 0) return hipErrorInvalidValue;
  Get().memory.Register(pointer, size);
  return hipSuccess;
}

hipError_t hipHostUnregister(void* pointer) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  return Get().memory.Free(reinterpret_cast<uintptr_t>(pointer)) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipMemcpy(void* to, const void* from, size_t size, hipMemcpyKind) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  memmove(to, from, size);
  Get().memory.CopyDefined(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from), size);
  return hipSuccess;
}

hipError_t hipMemset(void* to, int value, size_t size) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  memset(to, value, size);
  Get().memory.SetDefined(reinterpret_cast<uintptr_t>(to), size);
  return hipSuccess;
}

hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  if (!IsDevice(current_device)) return hipErrorInvalidDevice;
  try {
    const auto* bytes = static_cast<const uint8_t*>(image);
    auto program = std::make_unique<simulator::Program>(
        simulator::CodeObject(std::vector<uint8_t>(bytes, bytes + simulator::CodeObject::SizeOf(image))));
    if (!program->object().RunsOn(Get().devices[current_device])) return hipErrorNoBinaryForGpu;
    CheckCode(*program);
    Get().modules.push_back(std::make_unique<ihipModule_t>(ihipModule_t{current_device, std::move(program)}));
  } catch (const simulator::Fault& fault) {
    return Report(fault, hipErrorInvalidImage);
  }
  *module = Get().modules.back().get();
  return hipSuccess;
}

hipError_t hipModuleUnload(hipModule_t module) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  auto& functions = Get().functions;
  functions.erase(std::remove_if(functions.begin(), functions.end(), [&](const auto& owned) { return owned->module == module; }),
                  functions.end());
  auto& modules = Get().modules;
  const auto found = std::find_if(modules.begin(), modules.end(), [&](const auto& owned) { return owned.get() == module; });
  if (found == modules.end()) return hipErrorInvalidHandle;
  auto& last = Get().last_programs;
  for (auto at = last.begin(); at != last.end();) at = at->second == module->program.get() ? last.erase(at) : std::next(at);
  modules.erase(found);
  return hipSuccess;
}

hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  const std::lock_guard<std::mutex> lock(Get().mutex);
  for (const simulator::Kernel& kernel : module->program->object().kernels()) {
    if (kernel.name != name) continue;
    Get().functions.push_back(std::make_unique<ihipModuleSymbol_t>(ihipModuleSymbol_t{module, &kernel}));
    *function = Get().functions.back().get();
    return hipSuccess;
  }
  return hipErrorNotFound;
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* count, hipFunction_t function, int threads, size_t shared) {
  const uint32_t lds = LdsSize(function->module->program->arch().name);
  const int by_lds = shared == 0 ? kThreadsOfMultiprocessor : static_cast<int>(lds / shared);
  *count = std::min(kThreadsOfMultiprocessor / threads, by_lds);
  return hipSuccess;
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z, unsigned shared, hipStream_t stream, void** parameters,
                                 void** extra) {
  State& state = Get();
  const std::lock_guard<std::mutex> lock(state.mutex);
  // What HIP refuses: another device's function, or another device's stream.
  const ihipModule_t& module = *function->module;
  if (module.device != current_device || (stream != nullptr && stream->device != current_device)) return hipErrorInvalidHandle;
  if (extra != nullptr || shared > LdsSize(module.program->arch().name)) return hipErrorInvalidValue;
  state.last_programs[function->kernel->name] = module.program.get();
  state.last_fault.clear();
  try {
    const std::vector<uint8_t> kernargs = PackArguments(*function->kernel, parameters);
    const double begin = CpuSeconds();
    const simulator::LaunchCounts counts = simulator::Launch(*module.program, *function->kernel, state.memory, {grid_x, grid_y, grid_z},
                                                             {block_x, block_y, block_z}, shared, kernargs, state.options);
    std::ostringstream line;
    line << function->kernel->name << " " << counts.wave_instructions << " " << CpuSeconds() - begin << "\n";
    state.launches += line.str();
  } catch (const simulator::Fault& fault) {
    return Report(fault, hipErrorLaunchFailure);
  }
  return hipSuccess;
}

const char* hipGetErrorName(hipError_t error) {
  switch (error) {
    case hipSuccess: return "hipSuccess";
    case hipErrorInvalidValue: return "hipErrorInvalidValue";
    case hipErrorInvalidImage: return "hipErrorInvalidImage";
    case hipErrorInvalidHandle: return "hipErrorInvalidHandle";
    case hipErrorInvalidDevice: return "hipErrorInvalidDevice";
    case hipErrorNoDevice: return "hipErrorNoDevice";
    case hipErrorNoBinaryForGpu: return "hipErrorNoBinaryForGpu";
    case hipErrorNotFound: return "hipErrorNotFound";
    case hipErrorLaunchFailure: return "hipErrorLaunchFailure";
    default: return "hipErrorUnknown";
  }
}

}  // extern "C"
