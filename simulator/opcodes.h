#ifndef AOTRITON_SIMULATOR_OPCODES_H_
#define AOTRITON_SIMULATOR_OPCODES_H_

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/instruction.h"

namespace simulator {

// From the number of an instruction in its format to its name, and from there to what it means.
class OpcodeTable {
 public:
  using Rows = std::vector<std::pair<uint32_t, const char*>>;
  OpcodeTable(const std::vector<std::pair<Format, Rows>>& formats);

  // nullptr if there is no such number.
  const Semantics* Find(Format format, uint32_t number) const;

 private:
  std::unordered_map<uint32_t, const Semantics*> semantics_;
};

const OpcodeTable& OpcodesGfx90a();
const OpcodeTable& OpcodesGfx940();
const OpcodeTable& OpcodesGfx11();
const OpcodeTable& OpcodesGfx12();

}  // namespace simulator

#endif
