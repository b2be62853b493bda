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

// What a mutation run changes of one instruction.
enum class Mutation {
  kLeftOut,
  kSourcesSwapped,  // the first two
  kImmediate,       // a constant, an offset or a counter is one more
  kRegister,        // a source is the register next to it
};

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

  // For mutation runs: how many instructions were reached so far, and to change one of them, by its number, from now on. Gives
  // the instruction as it was, or nullptr if it has nothing that `mutation` could change.
  int reached() const;
  const Instruction* Mutate(int number, Mutation mutation);
  void Restore() { mutated_ = ~uint64_t{0}; }

 private:
  const CodeObject object_;
  const Arch arch_;
  std::vector<uint32_t> words_;
  std::vector<std::unique_ptr<Instruction>> decoded_;
  uint64_t mutated_ = ~uint64_t{0};
  Instruction mutant_;
};

}  // namespace simulator

#endif
