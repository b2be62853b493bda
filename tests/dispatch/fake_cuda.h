// A libcuda for tests: one device of compute capability 9.0, contexts, and a log. It runs nothing.
#ifndef AOTRITON_TESTS_DISPATCH_FAKE_CUDA_H_
#define AOTRITON_TESTS_DISPATCH_FAKE_CUDA_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fake_cuda {

struct Launch {
  void* context = nullptr;  // current when it was launched
  void* stream = nullptr;
  uint32_t grid = 0, block = 0, shared = 0;
  int max_dynamic_shared = 0;  // what the function was allowed
  void* q = nullptr;           // the first argument
  std::string kernel;
  std::map<std::string, uint64_t> arguments;  // by name; of a tensor map which of TensorMaps() it is
};

// What a tensor map was made of.
struct TensorMap {
  int dtype = 0, interleave = 0, swizzle = 0, l2_promotion = 0, fill = 0;
  void* data = nullptr;
  std::vector<uint64_t> sizes, strides;
  std::vector<uint32_t> box, element_strides;
};

void* AddContext();                // of device 0
void* AddStream(void* context);
void* PrimaryContext();
int PrimaryRetains();
std::vector<void*> LoadContexts();  // current at each module load
std::vector<Launch> Launches();
std::vector<TensorMap> TensorMaps();
void Capture(void* stream, bool is_capturing);
// The next cuTensorMapEncodeTiled, the next cuMemAlloc returns this.
void FailEncode(int error);
void FailAlloc(int error);
int Allocations();
// Forgets launches and maps.
void Clear();

}  // namespace fake_cuda

extern "C" {
int cuCtxGetCurrent(void** context);
int cuCtxPushCurrent_v2(void* context);
int cuCtxPopCurrent_v2(void** context);
}

#endif  // AOTRITON_TESTS_DISPATCH_FAKE_CUDA_H_
