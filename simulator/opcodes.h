#ifndef AOTRITON_SIMULATOR_OPCODES_H_
#define AOTRITON_SIMULATOR_OPCODES_H_

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/instruction.h"

namespace simulator {

struct Opcode {
  const Semantics* semantics = nullptr;
  bool has_two_forms = false;  // of the vector ALU: VOP3 and a shorter one
};

// From the number of an instruction in its format to what it means. Each number stands once: VOP3 forms follow from the
// short ones, and a newer arch starts with the table of the one before it.
class OpcodeTable {
 public:
  using Rows = std::vector<std::pair<uint32_t, std::string>>;

  // VOP3 holds VOPC from 0 on, VOP2 from 256 on, and VOP1 from `vop1_in_vop3` on.
  explicit OpcodeTable(uint32_t vop1_in_vop3) : vop1_in_vop3_(vop1_in_vop3) {}

  // A number that is there gets the new name.
  void Add(Format format, const Rows& rows);
  void Remove(Format format, const std::vector<uint32_t>& numbers);
  // VOPC: the relations from `first` on, and the v_cmpx of each, `to_exec` behind it.
  void AddFloatRelations(uint32_t first, uint32_t to_exec, const std::string& type);
  void AddIntegerRelations(uint32_t first, uint32_t to_exec, const std::string& type);
  // Names without what they reach: loads and stores of buffers, global memory and scratch, atomics of the first two.
  void AddMemory(const Rows& rows);
  void AddAtomics(const Rows& rows);

  // Without semantics if there is no such number.
  Opcode Find(Format format, uint32_t number) const;

 private:
  const Semantics* FindRow(Format format, uint32_t number) const;
  void AddRelations(uint32_t first, uint32_t to_exec, const std::string& type, const std::vector<const char*>& relations);

  uint32_t vop1_in_vop3_;
  std::unordered_map<uint32_t, const Semantics*> rows_;
};

const OpcodeTable& OpcodesGfx90a();
const OpcodeTable& OpcodesGfx940();
const OpcodeTable& OpcodesGfx950();
const OpcodeTable& OpcodesGfx11();
const OpcodeTable& OpcodesGfx1150();
const OpcodeTable& OpcodesGfx12();

}  // namespace simulator

#endif
