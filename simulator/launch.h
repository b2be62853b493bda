#ifndef AOTRITON_SIMULATOR_LAUNCH_H_
#define AOTRITON_SIMULATOR_LAUNCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulator/code_object.h"
#include "simulator/memory.h"
#include "simulator/program.h"

namespace simulator {

// What the launch gives in s[0:3] where scratch is a buffer (gfx90a): no address, only known again.
constexpr uint32_t kScratchDescriptor[2] = {0x5c2a7c40, 0x0000a51c};

struct Dim3 {
  uint32_t x, y, z;
};

struct LaunchOptions {
  uint64_t seed = 0;  // of the order of waves; 0: by number
  uint64_t endless = 2'000'000'000;  // a wave that runs so many instructions hangs
  // Told of each instruction before it is executed.
  std::function<void(Dim3 workgroup, Wave&, const Instruction&)> trace;
};

struct LaunchCounts {
  uint64_t wave_instructions = 0;
};

// Runs all workgroups, one after another. Throws Fault, with what ran where.
LaunchCounts Launch(Program& program, const Kernel& kernel, Memory& memory, Dim3 grid, Dim3 block, uint32_t dynamic_lds,
                    const std::vector<uint8_t>& kernargs, const LaunchOptions& options);

}  // namespace simulator

#endif
