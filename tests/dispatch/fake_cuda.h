// A libcuda for tests: one device of compute capability 9.0, contexts, and a log. It runs nothing.
#ifndef AOTRITON_TESTS_DISPATCH_FAKE_CUDA_H_
#define AOTRITON_TESTS_DISPATCH_FAKE_CUDA_H_

#include <cstdint>
#include <vector>

namespace fake_cuda {

struct Launch {
  void* context = nullptr;  // current when it was launched
  void* stream = nullptr;
  uint32_t grid = 0, block = 0, shared = 0;
  int max_dynamic_shared = 0;  // what the function was allowed
  void* q = nullptr;           // the first argument
};

void* AddContext();                // of device 0
void* AddStream(void* context);
void* PrimaryContext();
int PrimaryRetains();
std::vector<void*> LoadContexts();  // current at each module load
std::vector<Launch> Launches();

}  // namespace fake_cuda

extern "C" {
int cuCtxGetCurrent(void** context);
int cuCtxPushCurrent_v2(void* context);
int cuCtxPopCurrent_v2(void** context);
}

#endif  // AOTRITON_TESTS_DISPATCH_FAKE_CUDA_H_
