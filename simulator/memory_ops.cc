// Global memory by address, by buffer descriptor, and scratch.
#include <algorithm>
#include <optional>
#include <string>

#include "simulator/access.h"
#include "simulator/lanes.h"
#include "simulator/launch.h"

namespace simulator {
namespace {

using Part = Access::Part;

enum Operation { kLoad, kStore, kAtomicAdd, kAtomicAddFloat, kAtomicSwap, kAtomicCompareSwap, kAtomicMaxUnsigned, kAtomicMinUnsigned, kAtomicOr, kAtomicAnd };

Operation OperationOf(const Instruction& instruction) { return static_cast<Operation>(instruction.semantics->parameter[3]); }

// Where each lane accesses; lanes out of a buffer's range are not in `present`.
struct Targets {
  uint64_t address[kRow];
  uint64_t present;
};

// The block of an access; most lanes use the one of the lane before.
class Blocks {
 public:
  explicit Blocks(const Memory& memory) : memory_(memory) {}

  const Memory::Block& Find(uint64_t address, int bytes, int lane, const char* what) {
    const auto size = static_cast<uint64_t>(bytes);
    if (last_ != nullptr && address >= last_->begin && address <= last_->end && last_->end - address >= size) return *last_;
    last_ = memory_.Find(address, size);
    if (last_ != nullptr) return *last_;
    const Memory::Block* near = memory_.Nearest(address);
    if (near == nullptr) throw Fault("lane ", lane, " ", what, " ", bytes, " bytes at ", Hex{address}, ", below every allocation");
    throw Fault("lane ", lane, " ", what, " ", bytes, " bytes at ", Hex{address}, ", which is byte ", address - near->begin,
                " of an allocation of ", near->end - near->begin, " bytes");
  }

 private:
  const Memory& memory_;
  const Memory::Block* last_ = nullptr;
};

const uint8_t* DefinedAt(const Memory::Block& block, uint64_t address) {
  return block.defined == nullptr ? nullptr : block.defined + (address - block.begin);
}

uint32_t Combined(Operation operation, uint32_t before, uint32_t operand, uint32_t compared) {
  switch (operation) {
    case kAtomicAdd: return before + operand;
    case kAtomicAddFloat: return Bits(Float(before) + Float(operand));
    case kAtomicSwap: return operand;
    case kAtomicCompareSwap: return before == compared ? operand : before;
    case kAtomicMaxUnsigned: return std::max(before, operand);
    case kAtomicMinUnsigned: return std::min(before, operand);
    case kAtomicOr: return before | operand;
    case kAtomicAnd: return before & operand;
    case kLoad:
    case kStore: break;
  }
  throw Fault("no atomic operation");
}

void Atomic(Wave& wave, const Instruction& instruction, Operation operation, const Targets& targets) {
  const int data = instruction.source[1].index;
  const bool compares = operation == kAtomicCompareSwap;
  const uint32_t* operands = wave.Vgpr(data);
  const uint32_t* compared = compares ? wave.Vgpr(data + 1) : operands;
  wave.RequireDefined(wave.VgprDefined(data) & (compares ? wave.VgprDefined(data + 1) : kAllLanes), targets.present, "the operand of an atomic");
  Blocks blocks(wave.memory);
  LoadedRows rows(wave, Access(), instruction.destination.index);
  for (int lane = 0; lane < wave.lanes; ++lane) {
    const uint64_t address = targets.address[lane];
    uint32_t before = 0;
    if (targets.present >> lane & 1) {
      const Memory::Block& block = blocks.Find(address, 4, lane, "changes");
      if (!AllDefined(DefinedAt(block, address), 4)) throw Fault("lane ", lane, " changes undefined memory at ", Hex{address});
      memcpy(&before, reinterpret_cast<const void*>(address), sizeof(before));
      const uint32_t after = Combined(operation, before, operands[lane], compared[lane]);
      memcpy(reinterpret_cast<void*>(address), &after, sizeof(after));
    }
    rows.Set(lane, &before, nullptr);
  }
  if (instruction.returns) {
    rows.Finish(wave.exec(), Counter::kVector);
  } else if (wave.isa == Isa::kGfx9) {
    wave.Issue(Counter::kVector, true, 0, 0);
  }
}

void LoadOrStore(Wave& wave, const Instruction& instruction, const Targets& targets) {
  const Operation operation = OperationOf(instruction);
  if (operation > kStore) {
    Atomic(wave, instruction, operation, targets);
    return;
  }
  const Access access = Access::Of(instruction.semantics->parameter);
  Blocks blocks(wave.memory);
  if (operation == kLoad) {
    LoadedRows rows(wave, access, instruction.destination.index);
    static constexpr uint8_t kZeros[16] = {};
    for (int lane = 0; lane < wave.lanes; ++lane) {
      if ((wave.exec() >> lane & 1) == 0) continue;
      if (targets.present >> lane & 1) {
        const uint64_t address = targets.address[lane];
        const Memory::Block& block = blocks.Find(address, access.bytes, lane, "loads");
        rows.Set(lane, reinterpret_cast<const void*>(address), DefinedAt(block, address));
      } else {
        rows.Set(lane, kZeros, nullptr);
      }
    }
    rows.Finish(wave.exec(), Counter::kVector);
    return;
  }
  const StoredRows rows(wave, access, instruction.source[1].index);
  wave.RequireDefined(rows.defined(), targets.present, "what a store writes");
  for (int lane = 0; lane < wave.lanes; ++lane) {
    if ((targets.present >> lane & 1) == 0) continue;
    const uint64_t address = targets.address[lane];
    const Memory::Block& block = blocks.Find(address, access.bytes, lane, "stores");
    uint8_t bytes[16];
    rows.Get(lane, bytes);
    memcpy(reinterpret_cast<void*>(address), bytes, static_cast<size_t>(access.bytes));
    if (block.defined != nullptr) memset(block.defined + (address - block.begin), 0xff, static_cast<size_t>(access.bytes));
  }
  // Only gfx9 counts stores and loads together.
  if (wave.isa == Isa::kGfx9) wave.Issue(Counter::kVector, true, 0, 0);
}

// A 64-bit address, or a scalar base and a 32-bit offset; both plus the immediate.
void Global(Wave& wave, const Instruction& instruction) {
  Targets targets;
  targets.present = wave.exec();
  const Operand& base = instruction.source[2];
  const int address = instruction.source[0].index;
  const uint32_t* low = wave.Vgpr(address);
  uint64_t defined = wave.VgprDefined(address);
  const auto offset = static_cast<uint64_t>(static_cast<int64_t>(instruction.offset));
  if (base.kind == Operand::Kind::kSgpr) {
    wave.ClearScalarRead();
    const uint64_t start = wave.Scalar64(base) + offset;
    wave.RequireDefinedScalars("a global address");
    for (int lane = 0; lane < wave.lanes; ++lane) targets.address[lane] = start + low[lane];
  } else {
    const uint32_t* high = wave.Vgpr(address + 1);
    defined &= wave.VgprDefined(address + 1);
    for (int lane = 0; lane < wave.lanes; ++lane) targets.address[lane] = (low[lane] | uint64_t{high[lane]} << 32) + offset;
  }
  wave.RequireDefined(defined, wave.exec(), "a global address");
  LoadOrStore(wave, instruction, targets);
}

void ScratchAt(Wave& wave, const Instruction& instruction, const uint32_t* offsets, uint32_t base) {
  const Access access = Access::Of(instruction.semantics->parameter);
  const Operation operation = OperationOf(instruction);
  if (access.bytes < 4) throw Fault("short accesses to scratch are not modelled");
  const int words = access.words();
  LoadedRows loaded(wave, access, instruction.destination.index);
  std::optional<StoredRows> stored;
  if (operation == kStore) stored.emplace(wave, access, instruction.source[1].index);
  for (int lane = 0; lane < wave.lanes; ++lane) {
    if ((wave.exec() >> lane & 1) == 0) continue;
    const uint32_t at = base + (offsets == nullptr ? 0 : offsets[lane]);
    if (at % 4 != 0 || (size_t{at} / 4 + static_cast<size_t>(words)) * kRow > wave.scratch.size()) {
      throw Fault("lane ", lane, " accesses ", access.bytes, " bytes at ", Hex{at}, " of ", wave.scratch.size() / kRow * 4, " bytes of scratch");
    }
    uint32_t values[4], defined[4];
    if (stored) {
      stored->Get(lane, reinterpret_cast<uint8_t*>(values));
      stored->GetDefined(lane, reinterpret_cast<uint8_t*>(defined));
    }
    for (int i = 0; i < words; ++i) {
      const size_t index = (at / 4 + static_cast<size_t>(i)) * kRow + static_cast<size_t>(lane);
      if (stored) {
        wave.scratch[index] = values[i];
        wave.scratch_unset[index] = ~defined[i];
      } else {
        values[i] = wave.scratch[index];
        defined[i] = ~wave.scratch_unset[index];
      }
    }
    if (operation == kLoad) loaded.Set(lane, values, reinterpret_cast<const uint8_t*>(defined));
  }
  if (operation == kLoad) {
    loaded.Finish(wave.exec(), Counter::kVector);
  } else if (wave.isa == Isa::kGfx9) {
    wave.Issue(Counter::kVector, true, 0, 0);
  }
}

void Scratch(Wave& wave, const Instruction& instruction) {
  const Operand& address = instruction.source[0];
  const Operand& base = instruction.source[2];
  auto start = static_cast<uint32_t>(instruction.offset);
  if (base.kind == Operand::Kind::kSgpr) {
    wave.ClearScalarRead();
    start += wave.Scalar(base);
    wave.RequireDefinedScalars("a scratch address");
  }
  const uint32_t* offsets = nullptr;
  if (address.is_vgpr()) {
    offsets = wave.Vgpr(address.index);
    wave.RequireDefined(wave.VgprDefined(address.index), wave.exec(), "a scratch address");
  }
  ScratchAt(wave, instruction, offsets, start);
}

// A raw buffer: base, size, and offsets that must stay in it. The descriptor that the launch gives for scratch is known by
// its words.
void Buffer(Wave& wave, const Instruction& instruction) {
  if (instruction.lds) throw Fault("buffer loads to LDS are not modelled");
  if (instruction.index_enable) throw Fault("buffers with an index are not modelled");
  const int descriptor = instruction.source[2].index;
  wave.ClearScalarRead();
  const uint32_t word0 = wave.Sgpr(descriptor), word1 = wave.Sgpr(descriptor + 1), size = wave.Sgpr(descriptor + 2);
  const uint32_t scalar_offset = wave.Scalar(instruction.source[3]);
  wave.RequireDefinedScalars("a buffer's address");
  const uint32_t* offsets = nullptr;
  if (instruction.offset_enable) {
    offsets = wave.Vgpr(instruction.source[0].index);
    wave.RequireDefined(wave.VgprDefined(instruction.source[0].index), wave.exec(), "an offset into a buffer");
  }
  if (word0 == kScratchDescriptor[0] && word1 == kScratchDescriptor[1]) {
    ScratchAt(wave, instruction, offsets, scalar_offset + static_cast<uint32_t>(instruction.offset));
    return;
  }
  if ((word1 >> 16 & 0x3fff) != 0) throw Fault("buffers with a stride are not modelled");
  const uint64_t base = word0 | uint64_t{word1 & 0xffff} << 32;
  const int bytes = instruction.semantics->parameter[0];
  Targets targets;
  targets.present = 0;
  for (int lane = 0; lane < wave.lanes; ++lane) {
    const uint64_t offset = (offsets == nullptr ? 0 : uint64_t{offsets[lane]}) + static_cast<uint64_t>(instruction.offset);
    targets.address[lane] = base + scalar_offset + offset;
    const bool in_range = offset + scalar_offset + static_cast<uint64_t>(bytes) <= size;
    targets.present |= (wave.exec() >> lane & (in_range ? 1 : 0)) << lane;
  }
  LoadOrStore(wave, instruction, targets);
}

struct Name {
  const char* suffix;
  int bytes;
  Part part;
  bool sign;
};

constexpr Name kLoads[] = {
    {"ubyte", 1, Part::kWhole, false},   {"u8", 1, Part::kWhole, false},        {"sbyte", 1, Part::kWhole, true},
    {"i8", 1, Part::kWhole, true},       {"ushort", 2, Part::kWhole, false},    {"u16", 2, Part::kWhole, false},
    {"sshort", 2, Part::kWhole, true},   {"i16", 2, Part::kWhole, true},        {"short_d16", 2, Part::kLowHalf, false},
    {"d16_b16", 2, Part::kLowHalf, false}, {"short_d16_hi", 2, Part::kHighHalf, false}, {"d16_hi_b16", 2, Part::kHighHalf, false},
    {"dword", 4, Part::kWhole, false},   {"b32", 4, Part::kWhole, false},       {"dwordx2", 8, Part::kWhole, false},
    {"b64", 8, Part::kWhole, false},     {"dwordx3", 12, Part::kWhole, false},  {"b96", 12, Part::kWhole, false},
    {"dwordx4", 16, Part::kWhole, false}, {"b128", 16, Part::kWhole, false},
};
constexpr Name kStores[] = {
    {"byte", 1, Part::kWhole, false},    {"b8", 1, Part::kWhole, false},        {"short", 2, Part::kWhole, false},
    {"b16", 2, Part::kWhole, false},     {"byte_d16_hi", 1, Part::kHighHalf, false}, {"d16_hi_b8", 1, Part::kHighHalf, false},
    {"short_d16_hi", 2, Part::kHighHalf, false}, {"d16_hi_b16", 2, Part::kHighHalf, false}, {"dword", 4, Part::kWhole, false},
    {"b32", 4, Part::kWhole, false},     {"dwordx2", 8, Part::kWhole, false},   {"b64", 8, Part::kWhole, false},
    {"dwordx3", 12, Part::kWhole, false}, {"b96", 12, Part::kWhole, false},     {"dwordx4", 16, Part::kWhole, false},
    {"b128", 16, Part::kWhole, false},
};
struct AtomicName {
  const char *old_suffix, *suffix;
  Operation operation;
};
constexpr AtomicName kAtomics[] = {
    {"add", "add_u32", kAtomicAdd},         {"add_f32", "add_f32", kAtomicAddFloat},   {"swap", "swap_b32", kAtomicSwap},
    {"cmpswap", "cmpswap_b32", kAtomicCompareSwap}, {"umax", "max_u32", kAtomicMaxUnsigned}, {"umin", "min_u32", kAtomicMinUnsigned},
    {"or", "or_b32", kAtomicOr},            {"and", "and_b32", kAtomicAnd},
};

void DefineAccesses(const std::string& prefix, Execute execute) {
  const auto define = [&](const std::string& name, const Access& access, Operation operation) {
    Semantics semantics = access.ToSemantics(execute);
    semantics.parameter[3] = operation;
    Define({name.c_str()}, semantics);
  };
  const auto access = [](const Name& name) {
    Access a;
    a.bytes = name.bytes;
    a.part = name.part;
    a.sign = name.sign;
    return a;
  };
  for (const Name& name : kLoads) define(prefix + "_load_" + name.suffix, access(name), kLoad);
  for (const Name& name : kStores) define(prefix + "_store_" + name.suffix, access(name), kStore);
  for (const AtomicName& name : kAtomics) {
    define(prefix + "_atomic_" + name.old_suffix, Access(), name.operation);
    define(prefix + "_atomic_" + name.suffix, Access(), name.operation);
  }
}

}  // namespace

void DefineMemoryInstructions() {
  DefineAccesses("global", Global);
  DefineAccesses("scratch", Scratch);
  DefineAccesses("buffer", Buffer);
}

}  // namespace simulator
