#ifndef AOTRITON_SIMULATOR_PROGRAM_H_
#define AOTRITON_SIMULATOR_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "simulator/arch.h"
#include "simulator/code_object.h"
#include "simulator/instruction.h"

namespace simulator {

// Reads one instruction from its bytes. `words` has at least 4 words, zeros behind the program's end.
// Throws Fault with the bytes for an encoding that is not known.
void Decode(const Arch& arch, const uint32_t* words, uint64_t address, Instruction* instruction);
void DecodeGfx9(const Arch& arch, const uint32_t* words, Instruction* instruction);
void DecodeRdna(const Arch& arch, const uint32_t* words, Instruction* instruction);

// A code object whose instructions are decoded when they are first reached.
class Program {
 public:
  explicit Program(CodeObject object);

  const CodeObject& object() const { return object_; }
  const Arch& arch() const { return arch_; }
  // Addresses of instructions are offsets in the image.
  const Instruction& At(uint64_t address);

  // All of them in order, up to the first that is not known.
  std::vector<Instruction> Listing() const;

  // For mutation runs: how many instructions were reached so far, and to leave out one of them, by its number, from now
  // on; a negative number leaves out none.
  int reached() const;
  void LeaveOut(int number);

 private:
  const CodeObject object_;
  const Arch arch_;
  std::vector<uint32_t> words_;
  std::vector<std::unique_ptr<Instruction>> decoded_;
  uint64_t left_out_ = ~uint64_t{0};
  Instruction nothing_;
};

}  // namespace simulator

#endif
