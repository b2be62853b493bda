#include "simulator/program.h"

#include <algorithm>
#include <cstring>

#include "simulator/fault.h"

namespace simulator {

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
  return address == left_out_ ? nothing_ : *slot;
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

void Program::LeaveOut(int number) {
  left_out_ = ~uint64_t{0};
  for (const auto& slot : decoded_) {
    if (slot == nullptr || number-- != 0) continue;
    left_out_ = slot->address;
    nothing_.address = slot->address;
    nothing_.size = slot->size;
    nothing_.semantics = FindSemantics("s_nop");
  }
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
