#ifndef AOTRITON_SIMULATOR_ARCH_H_
#define AOTRITON_SIMULATOR_ARCH_H_

#include <cstdint>
#include <string>

#include "simulator/instruction.h"
#include "simulator/opcodes.h"

namespace simulator {

// A chip, or a family of chips that one code object serves (gfx11-generic).
struct Arch {
  std::string name;
  uint32_t machine;    // EF_AMDGPU_MACH of ELF's e_flags
  std::string family;  // "" if there is none
  Isa isa;
  const OpcodeTable* opcodes;
  bool flushes_matrix_subnormals = false;  // matrix instructions take subnormal 16-bit numbers for 0
  bool scratch_is_buffer = false;          // there is no architected flat scratch
  bool has_preload = false;                // kernel arguments in SGPRs

  bool is_family() const { return name == family; }
};

// Throws Fault if the arch is not modelled.
Arch FindArch(const std::string& name);

}  // namespace simulator

#endif
