// The fake libamdhip64 of tests/dispatch for a test in Python: what it is told and what it logs, in C;
// and device memory, which is the host's.
#include <hip/hip_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "tests/dispatch/fake_hip.h"

extern "C" {

int fake_add_device(const char* gcn_arch_name) { return fake_hip::AddDevice(gcn_arch_name); }

void* fake_add_stream(int device) { return fake_hip::AddStream(device); }

void fake_fail(const char* function, int error, int skip) { fake_hip::Fail(function, static_cast<hipError_t>(error), 1, skip); }

// A line for each launch since the last call: symbol, stream, and name=bits of each argument.
const char* fake_take_launches() {
  static std::string text;
  std::ostringstream lines;
  for (const fake_hip::Launch& launch : fake_hip::Launches()) {
    lines << launch.symbol << ' ' << reinterpret_cast<uintptr_t>(launch.stream);
    for (const auto& [name, argument] : launch.arguments) lines << ' ' << name << '=' << argument.bits;
    lines << '\n';
  }
  fake_hip::Clear();
  text = lines.str();
  return text.c_str();
}

hipError_t hipMalloc(void** memory, size_t size) {
  *memory = size < size_t{1} << 40 ? malloc(size) : nullptr;
  return *memory != nullptr ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t hipFree(void* memory) {
  free(memory);
  return hipSuccess;
}

hipError_t hipMemcpy(void* to, const void* from, size_t size, hipMemcpyKind kind) {
  if (kind != hipMemcpyHostToDevice && kind != hipMemcpyDeviceToHost) return hipErrorInvalidMemcpyDirection;
  memcpy(to, from, size);
  return hipSuccess;
}

hipError_t hipMemset(void* memory, int value, size_t size) {
  memset(memory, value, size);
  return hipSuccess;
}

hipError_t hipDeviceSynchronize() { return hipSuccess; }

hipError_t hipGetLastError() { return hipErrorNotReady; }

}  // extern "C"
