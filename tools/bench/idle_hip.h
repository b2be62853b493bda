// What idle_hip.cc, a GPU runtime that does nothing, tells the program that uses it.
#ifndef AOTRITON_TOOLS_BENCH_IDLE_HIP_H_
#define AOTRITON_TOOLS_BENCH_IDLE_HIP_H_

#include <hip/hip_runtime_api.h>

namespace idle_hip {

inline constexpr int kDevices = 4;  // of gfx942

hipStream_t StreamOf(int device);
int Loads();  // code objects that were loaded
int Launches();

}  // namespace idle_hip

#endif  // AOTRITON_TOOLS_BENCH_IDLE_HIP_H_
