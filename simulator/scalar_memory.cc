// Scalar loads.
#include <cstring>

#include "simulator/wave.h"

namespace simulator {
namespace {

// parameter: [0] words.
void ScalarLoad(Wave& wave, const Instruction& instruction) {
  const int words = instruction.semantics->parameter[0];
  wave.ClearScalarRead();
  uint64_t address = wave.Scalar64(instruction.source[0]) & ~uint64_t{3};
  if (instruction.source[1].kind != Operand::Kind::kNone) address += wave.Scalar(instruction.source[1]);
  wave.RequireDefinedScalars("the address of a scalar load");
  address += static_cast<int64_t>(instruction.offset);
  const Memory::Block* block = wave.memory.Find(address, 4 * static_cast<size_t>(words));
  if (block == nullptr) throw Fault("a scalar load of ", 4 * words, " bytes at ", Hex{address}, " lies outside every allocation");
  const int first = instruction.destination.index;
  for (int i = 0; i < words; ++i) {
    uint32_t word;
    const uint64_t at = address + 4 * static_cast<uint64_t>(i);
    memcpy(&word, reinterpret_cast<const void*>(at), sizeof(word));
    const uint8_t* flags = block->defined == nullptr ? nullptr : block->defined + (at - block->begin);
    uint32_t defined = ~0u;
    if (flags != nullptr) memcpy(&defined, flags, sizeof(defined));
    wave.SetSgpr(first + i, word, ~defined);
  }
  wave.Issue(Counter::kScalar, false, first, words);
}

}  // namespace

void DefineScalarMemoryInstructions() {
  Semantics semantics;
  semantics.execute = ScalarLoad;
  const auto define = [&](int words, const char* old_name, const char* name) {
    semantics.parameter[0] = words;
    Define({old_name, name}, semantics);
  };
  define(1, "s_load_dword", "s_load_b32");
  define(2, "s_load_dwordx2", "s_load_b64");
  define(3, "s_load_dwordx3", "s_load_b96");
  define(4, "s_load_dwordx4", "s_load_b128");
  define(8, "s_load_dwordx8", "s_load_b256");
  define(16, "s_load_dwordx16", "s_load_b512");
}

}  // namespace simulator
