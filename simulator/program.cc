#include "simulator/program.h"

#include <algorithm>
#include <cstring>

#include "simulator/fault.h"

namespace simulator {
namespace {

bool IsRegister(const Operand& operand) {
  // What follows the last of them is none.
  return (operand.kind == Operand::Kind::kVgpr && operand.index % kFirstAccVgpr + 1 < kFirstAccVgpr) ||
         (operand.kind == Operand::Kind::kSgpr && operand.index + 1 < kVccLo);
}

bool IsSame(const Operand& a, const Operand& b) { return a.kind == b.kind && a.index == b.index && a.value == b.value; }

// The changes of a mutation; false if the instruction has nothing that changes.
bool Change(Mutation mutation, Instruction* instruction) {
  constexpr auto kNone = Operand::Kind::kNone, kConstant = Operand::Kind::kConstant;
  auto& source = instruction->source;
  switch (mutation) {
    case Mutation::kLeftOut: {
      Instruction nothing;
      nothing.address = instruction->address;
      nothing.size = instruction->size;
      nothing.semantics = FindSemantics("s_nop");
      *instruction = nothing;
      return true;
    }
    case Mutation::kSourcesSwapped:
      if (source[0].kind == kNone || source[1].kind == kNone || IsSame(source[0], source[1])) return false;
      std::swap(source[0], source[1]);
      return true;
    case Mutation::kImmediate:
      for (Operand& one : source) {
        if (one.kind != kConstant) continue;
        // Of the inline floating point numbers the next one, else the value.
        if (one.code >= 240 && one.code < 248) {
          ++one.code;
        } else {
          ++one.value;
        }
        return true;
      }
      if (instruction->offset == 0) return false;
      ++instruction->offset;
      return true;
    case Mutation::kRegister:
      for (Operand& one : source) {
        if (!IsRegister(one)) continue;
        ++one.index;
        return true;
      }
      return false;
  }
  return false;
}

}  // namespace

Program::Program(CodeObject object) : object_(std::move(object)), arch_(FindArch(object_.arch())) {
  // Round to nearest, keep subnormals; in every width.
  constexpr uint32_t kFloatMode = 0xf0;
  for (const Kernel& kernel : object_.kernels()) {
    const uint32_t mode = kernel.rsrc1 >> 12 & 0xff;
    if (mode != kFloatMode) throw Fault(kernel.name, ": float mode ", Hex{mode}, " is not modelled, only ", Hex{kFloatMode});
  }
  const auto& image = object_.image();
  words_.resize((object_.code_end() + 3) / 4 + 4);
  memcpy(words_.data(), image.data(), object_.code_end());
  decoded_.resize(words_.size());
}

const Instruction& Program::At(uint64_t address) {
  if (address % 4 != 0 || address < object_.code_begin() || address >= object_.code_end()) {
    throw Fault("no instruction lies at ", Hex{address});
  }
  std::unique_ptr<Instruction>& slot = decoded_[address / 4];
  if (slot == nullptr) {
    auto instruction = std::make_unique<Instruction>();
    Decode(arch_, &words_[address / 4], address, instruction.get());
    slot = std::move(instruction);
  }
  return address == mutated_ ? mutant_ : *slot;
}

std::vector<Instruction> Program::Listing() const {
  std::vector<Instruction> listing;
  for (uint64_t at = object_.code_begin(); at < object_.code_end();) {
    Instruction instruction;
    try {
      Decode(arch_, &words_[at / 4], at, &instruction);
    } catch (const Fault&) {
      break;  // an error only when it is reached
    }
    at += static_cast<uint64_t>(instruction.size);
    listing.push_back(instruction);
  }
  return listing;
}

int Program::reached() const {
  return static_cast<int>(std::count_if(decoded_.begin(), decoded_.end(), [](const auto& slot) { return slot != nullptr; }));
}

const Instruction* Program::Mutate(int number, Mutation mutation) {
  const auto is_wanted = [&](const auto& slot) { return slot != nullptr && number-- == 0; };
  const auto found = std::find_if(decoded_.begin(), decoded_.end(), is_wanted);
  if (found == decoded_.end()) return nullptr;
  mutant_ = **found;
  if (!Change(mutation, &mutant_)) return nullptr;
  mutated_ = mutant_.address;
  return found->get();
}

void Decode(const Arch& arch, const uint32_t* words, uint64_t address, Instruction* instruction) {
  instruction->address = address;
  instruction->isa = arch.isa;
  if (arch.isa == Isa::kGfx9) {
    DecodeGfx9(arch, words, instruction);
  } else {
    DecodeRdna(arch, words, instruction);
  }
}

}  // namespace simulator
