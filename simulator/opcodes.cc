#include "simulator/opcodes.h"

#include "simulator/fault.h"

namespace simulator {
namespace {

constexpr uint32_t kVop2InVop3 = 256, kVop1Numbers = 128;

uint32_t Key(Format format, uint32_t number) { return static_cast<uint32_t>(format) << 16 | number; }

bool HasVop3Form(const std::string& name) {
  for (const char* other : {"v_nop", "v_readfirstlane_b32", "v_swap_b32", "v_accvgpr_mov_b32", "v_fmamk_f32", "v_fmaak_f32",
                            "v_dot2acc_f32_f16"}) {
    if (name == other) return false;
  }
  return true;
}

}  // namespace

void OpcodeTable::Add(Format format, const Rows& rows) {
  for (const auto& [number, name] : rows) {
    const Semantics* semantics = FindSemantics(name);
    if (semantics == nullptr) throw Fault("the opcode table names ", name, ", which has no meaning");
    rows_[Key(format, number)] = semantics;
  }
}

void OpcodeTable::Remove(Format format, const std::vector<uint32_t>& numbers) {
  for (const uint32_t number : numbers) rows_.erase(Key(format, number));
}

void OpcodeTable::AddRelations(uint32_t first, uint32_t to_exec, const std::string& type,
                               const std::vector<const char*>& relations) {
  uint32_t number = first;
  for (const char* relation : relations) {
    ++number;  // the first is "false", which has no use
    Add(Format::kVopc, {{number, "v_cmp_" + std::string(relation) + "_" + type}});
    Add(Format::kVopc, {{number + to_exec, "v_cmpx_" + std::string(relation) + "_" + type}});
  }
}

void OpcodeTable::AddFloatRelations(uint32_t first, uint32_t to_exec, const std::string& type) {
  AddRelations(first, to_exec, type, {"lt", "eq", "le", "gt", "lg", "ge", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt"});
}

void OpcodeTable::AddIntegerRelations(uint32_t first, uint32_t to_exec, const std::string& type) {
  AddRelations(first, to_exec, type, {"lt", "eq", "le", "gt", "ne", "ge"});
}

void OpcodeTable::AddMemory(const Rows& rows) {
  for (const auto& [number, name] : rows) {
    Add(Format::kBuffer, {{number, "buffer_" + name}});
    Add(Format::kGlobal, {{number, "global_" + name}});
    Add(Format::kScratch, {{number, "scratch_" + name}});
  }
}

void OpcodeTable::AddAtomics(const Rows& rows) {
  for (const auto& [number, name] : rows) {
    Add(Format::kBuffer, {{number, "buffer_" + name}});
    Add(Format::kGlobal, {{number, "global_" + name}});
  }
}

Opcode OpcodeTable::Find(Format format, uint32_t number) const {
  if (const Semantics* semantics = FindRow(format, number)) {
    const bool is_short = format == Format::kVop1 || format == Format::kVop2 || format == Format::kVopc;
    return {semantics, is_short && HasVop3Form(semantics->name)};
  }
  if (format != Format::kVop3) return {};
  const Semantics* semantics = nullptr;
  if (number < kVop2InVop3) {
    semantics = FindRow(Format::kVopc, number);
  } else if (number < vop1_in_vop3_) {
    semantics = FindRow(Format::kVop2, number - kVop2InVop3);
  } else if (number < vop1_in_vop3_ + kVop1Numbers) {
    semantics = FindRow(Format::kVop1, number - vop1_in_vop3_);
  }
  if (semantics == nullptr || !HasVop3Form(semantics->name)) return {};
  return {semantics, true};
}

const Semantics* OpcodeTable::FindRow(Format format, uint32_t number) const {
  const auto found = rows_.find(Key(format, number));
  return found == rows_.end() ? nullptr : found->second;
}

}  // namespace simulator
