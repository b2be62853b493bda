// A libamdhip64 for tests: it has as many devices of any arch as a test adds, logs what it is
// asked to do, and fails a named call on demand. It runs nothing.
//
// A device takes code objects of its arch, and of its family: those of "gfx11-generic" run on any gfx11.
// A code object is the text that make_test_pack.py writes: "FAKE\n<arch>\n<id>\n<symbol>\n<arguments>\n",
// ended by a NUL. Kernel arguments are decoded by the declaration in it, as a GPU would read them.
#ifndef AOTRITON_TESTS_DISPATCH_FAKE_HIP_H_
#define AOTRITON_TESTS_DISPATCH_FAKE_HIP_H_

#include <hip/hip_runtime_api.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fake_hip {

struct Argument {
  std::string type;
  uint64_t bits = 0;  // zero-extended from the width of the type

  int64_t integer() const;  // i32, i64
  float real() const;       // fp32
  void* pointer() const;    // *
};

struct Load {
  int device = 0;  // current when it was loaded
  std::string id;
  uint64_t hash = 0;  // of the code object
};

struct Launch {
  int device = 0;  // current when it was launched
  hipStream_t stream = nullptr;
  std::string id;      // of the code object
  std::string symbol;
  uint32_t grid[3] = {}, block[3] = {}, shared = 0;
  std::vector<std::string> names;  // of the arguments, in the order of the launch
  std::map<std::string, Argument> arguments;
};

// The number of the new device.
int AddDevice(const std::string& gcn_arch_name, int multiprocessors = 304, double memory_gib = 191.98);
hipStream_t AddStream(int device);

// After `skip` calls more, the next `times` calls of a function return `error`.
void Fail(const std::string& function, hipError_t error, int times, int skip = 0);

// The call of any function that comes after `skip` more returns `error`. HasFailed(): it came.
void FailAny(hipError_t error, int skip);
bool HasFailed();

std::vector<Load> Loads();
std::vector<Launch> Launches();
int Calls(const std::string& function);
// Forgets the log and what is left to fail; devices, streams and modules stay.
void Clear();

}  // namespace fake_hip

#endif  // AOTRITON_TESTS_DISPATCH_FAKE_HIP_H_
