// What hardware does not wait for, and the compiler must: found in the code, before it runs and on every path.
#ifndef AOTRITON_SIMULATOR_HAZARDS_H_
#define AOTRITON_SIMULATOR_HAZARDS_H_

#include <vector>

#include "simulator/program.h"

namespace simulator {

// Throws Fault for the first instruction that comes too soon after another: "v_mov_b32 at 0x40 reads what
// v_mfma_f32_32x32x8_f16 at 0x30 writes after 3 wait states, and needs 11". `code` is in the order of addresses.
void CheckWaitStates(const Arch& arch, const std::vector<Instruction>& code);

// Throws Fault if a vector register is written where a branch around a part of the lanes ends, but before exec has the
// others again: they keep what was in the register. LLVM is known to put copies there.
void CheckJoins(const std::vector<Instruction>& code);

// Both, over the whole of a program.
void CheckHazards(const Program& program);

}  // namespace simulator

#endif
