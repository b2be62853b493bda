#include "tests/dispatch/fake_cuda.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <sstream>

namespace fake_cuda {
namespace {

constexpr int kInvalidValue = 1, kInvalidContext = 201, kInvalidImage = 200, kCaptureUnsupported = 900;
constexpr int kGlobal = 0, kRelaxed = 2;  // CU_STREAM_CAPTURE_MODE_...

struct Context {};
struct Stream {
  void* context;
  bool is_capturing;
};
struct Module {
  void* context;
  std::string image;
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
std::vector<TensorMap> tensor_maps;
int capture_mode = kGlobal, encode_error = 0, alloc_error = 0, allocations = 0;

int Take(int* error) {
  const int taken = *error;
  *error = 0;
  return taken;
}

// What a real runtime refuses while anything is captured, unless the thread says that it knows what it does.
bool IsForbidden() {
  bool is_any_capturing = false;
  for (const Stream& stream : streams) is_any_capturing |= stream.is_capturing;
  return is_any_capturing && capture_mode != kRelaxed;
}

// The image's declarations, "name:type ...", against what was passed.
std::map<std::string, uint64_t> Read(const std::string& image, void** parameters) {
  std::istringstream lines(image);
  std::string line, word;
  for (int i = 0; i < 5; ++i) std::getline(lines, line);
  std::map<std::string, uint64_t> arguments;
  std::istringstream words(line);
  for (int i = 0; words >> word; ++i) {
    const size_t colon = word.find(':');
    const std::string type = word.substr(colon + 1);
    uint64_t value = 0;
    memcpy(&value, parameters[i], type == "i32" || type == "fp32" ? 4 : 8);
    if (type.rfind("tensor_map", 0) == 0 && reinterpret_cast<uintptr_t>(parameters[i]) % 64 != 0) abort();
    arguments[word.substr(0, colon)] = value;
  }
  return arguments;
}

void* Current() { return current.empty() ? nullptr : current.back(); }

}  // namespace

void* AddContext() {
  contexts.emplace_back();
  return &contexts.back();
}
void* AddStream(void* context) {
  streams.push_back({context, false});
  return &streams.back();
}
void* PrimaryContext() { return &primary; }
int PrimaryRetains() { return primary_retains; }
std::vector<void*> LoadContexts() { return load_contexts; }
std::vector<Launch> Launches() { return launches; }
std::vector<TensorMap> TensorMaps() { return tensor_maps; }
void Capture(void* stream, bool is_capturing) { static_cast<Stream*>(stream)->is_capturing = is_capturing; }
void FailEncode(int error) { encode_error = error; }
void FailAlloc(int error) { alloc_error = error; }
int Allocations() { return allocations; }
void Clear() {
  launches.clear();
  tensor_maps.clear();
}

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
  modules.push_back({Current(), static_cast<const char*>(image)});
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
  std::istringstream lines(f->module->image);
  std::string kernel;
  for (int i = 0; i < 4; ++i) std::getline(lines, kernel);
  launches.push_back({Current(), stream, grid_x, block_x, shared, f->max_dynamic_shared, *static_cast<void**>(parameters[0]), kernel,
                      Read(f->module->image, parameters)});
  return 0;
}
#if !defined(FAKE_CUDA_BEFORE_12)
int cuTensorMapEncodeTiled(void* map, int dtype, uint32_t rank, void* data, const uint64_t* sizes, const uint64_t* strides,
                           const uint32_t* box, const uint32_t* element_strides, int interleave, int swizzle, int l2_promotion, int fill) {
  if (const int error = Take(&encode_error)) return error;
  memset(map, 0, 128);
  const uint64_t number = tensor_maps.size();
  memcpy(map, &number, sizeof(number));
  tensor_maps.push_back({dtype, interleave, swizzle, l2_promotion, fill, data, {sizes, sizes + rank}, {strides, strides + rank - 1},
                         {box, box + rank}, {element_strides, element_strides + rank}});
  return 0;
}
int cuStreamGetId(void* stream, unsigned long long* id) {
  if (reinterpret_cast<uintptr_t>(stream) > 2 && static_cast<Stream*>(stream)->is_capturing) return kCaptureUnsupported;
  *id = reinterpret_cast<uintptr_t>(stream);
  return 0;
}
#endif
int cuStreamIsCapturing(void* stream, int* capture) {
  *capture = reinterpret_cast<uintptr_t>(stream) > 2 && static_cast<Stream*>(stream)->is_capturing;
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}
// Device memory is the host's, and not 0.
int cuMemAlloc_v2(uint64_t* address, size_t size) {
  if (IsForbidden()) return kCaptureUnsupported;
  if (const int error = Take(&alloc_error)) return error;
  ++allocations;
  void* const memory = malloc(size);
  memset(memory, 0xA5, size);
  *address = reinterpret_cast<uintptr_t>(memory);
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  free(reinterpret_cast<void*>(address));
  return 0;
}
int cuMemsetD8Async(uint64_t address, unsigned char value, size_t size, void* stream) {
  if (IsForbidden() || stream == nullptr) return kCaptureUnsupported;
  memset(reinterpret_cast<void*>(address), value, size);
  return 0;
}
int cuStreamCreate(void** stream, unsigned flags) {
  if (flags != 1) return kInvalidValue;
  *stream = AddStream(Current());
  return 0;
}
int cuStreamSynchronize(void*) { return IsForbidden() ? kCaptureUnsupported : 0; }
int cuStreamDestroy_v2(void*) { return 0; }
int cuGetErrorName(int error, const char** name) {
  *name = error == kInvalidValue ? "CUDA_ERROR_INVALID_VALUE" : error == kInvalidImage ? "CUDA_ERROR_INVALID_IMAGE" : "CUDA_ERROR_UNKNOWN";
  return 0;
}

}  // extern "C"
