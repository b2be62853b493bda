#include "simulator/opcodes.h"

#include "simulator/fault.h"

namespace simulator {
namespace {

uint32_t Key(Format format, uint32_t number) { return static_cast<uint32_t>(format) << 16 | number; }

}  // namespace

OpcodeTable::OpcodeTable(const std::vector<std::pair<Format, Rows>>& formats) {
  for (const auto& [format, rows] : formats) {
    for (const auto& [number, name] : rows) {
      const Semantics* semantics = FindSemantics(name);
      if (semantics == nullptr) throw Fault("the opcode table names ", name, ", which has no meaning");
      semantics_[Key(format, number)] = semantics;
    }
  }
}

const Semantics* OpcodeTable::Find(Format format, uint32_t number) const {
  const auto found = semantics_.find(Key(format, number));
  return found == semantics_.end() ? nullptr : found->second;
}

}  // namespace simulator
