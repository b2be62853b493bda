#include "tests/dispatch/fake_cuda.h"

#include <cstring>
#include <deque>

namespace fake_cuda {
namespace {

constexpr int kInvalidValue = 1, kInvalidContext = 201, kInvalidImage = 200;

struct Context {};
struct Stream {
  void* context;
};
struct Module {
  void* context;
};
struct Function {
  Module* module;
  int max_dynamic_shared;
};

Context primary;
std::deque<Context> contexts;
std::deque<Stream> streams;
std::deque<Module> modules;
std::deque<Function> functions;
std::vector<void*> current;  // the stack; tests use one thread
std::vector<void*> load_contexts;
std::vector<Launch> launches;
int primary_retains = 0;
bool is_initialised = false;

void* Current() { return current.empty() ? nullptr : current.back(); }

}  // namespace

void* AddContext() {
  contexts.emplace_back();
  return &contexts.back();
}
void* AddStream(void* context) {
  streams.push_back({context});
  return &streams.back();
}
void* PrimaryContext() { return &primary; }
int PrimaryRetains() { return primary_retains; }
std::vector<void*> LoadContexts() { return load_contexts; }
std::vector<Launch> Launches() { return launches; }

}  // namespace fake_cuda

using namespace fake_cuda;

extern "C" {

int cuInit(unsigned) {
  is_initialised = true;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return is_initialised ? 0 : 3;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : -1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  ++primary_retains;
  *context = &primary;
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = Current();
  return 0;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return Current() != nullptr ? 0 : kInvalidContext;
}
int cuCtxPushCurrent_v2(void* context) {
  current.push_back(context);
  return 0;
}
int cuCtxPopCurrent_v2(void** context) {
  if (current.empty()) return kInvalidContext;
  *context = current.back();
  current.pop_back();
  return 0;
}
int cuStreamGetCtx(void* stream, void** context) {
  *context = static_cast<Stream*>(stream)->context;
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  if (Current() == nullptr) return kInvalidContext;
  if (strncmp(static_cast<const char*>(image), "FAKE\nsm_90\n", 11) != 0) return kInvalidImage;
  load_contexts.push_back(Current());
  modules.push_back({Current()});
  *module = &modules.back();
  return 0;
}
int cuModuleUnload(void*) { return 0; }
int cuModuleGetFunction(void** function, void* module, const char*) {
  functions.push_back({static_cast<Module*>(module), 0});
  *function = &functions.back();
  return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, void*, int threads, size_t) {
  *count = 1024 / threads;
  return 0;
}

int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (attribute != 8) return kInvalidValue;
  static_cast<Function*>(function)->max_dynamic_shared = value;
  return 0;
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned, unsigned, unsigned shared,
                   void* stream, void** parameters, void**) {
  const auto* f = static_cast<Function*>(function);
  const bool has_stream = reinterpret_cast<uintptr_t>(stream) > 2;
  if (f->module->context != Current() || (has_stream && static_cast<Stream*>(stream)->context != Current())) return kInvalidContext;
  if (shared > 48 * 1024 && static_cast<int>(shared) > f->max_dynamic_shared) return kInvalidValue;
  launches.push_back({Current(), stream, grid_x, block_x, shared, f->max_dynamic_shared, *static_cast<void**>(parameters[0])});
  return 0;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == kInvalidImage ? "CUDA_ERROR_INVALID_IMAGE" : "CUDA_ERROR_UNKNOWN";
  return 0;
}

}  // extern "C"
