#include <unordered_map>

#include "simulator/instruction.h"

namespace simulator {
namespace {

std::unordered_map<std::string, Semantics>& Table() {
  static auto* const table = new std::unordered_map<std::string, Semantics>;
  return *table;
}

}  // namespace

void Define(const std::vector<const char*>& names, Semantics semantics) {
  for (const char* name : names) {
    semantics.name = name;
    Table()[name] = semantics;
  }
}

const Semantics* FindSemantics(const std::string& name) {
  static const bool defined = [] {
    DefineScalarInstructions();
    DefineScalarMemoryInstructions();
    DefineVectorInstructions();
    DefineCompareInstructions();
    DefineCarryInstructions();
    DefinePackedInstructions();
    DefineMatrixInstructions();
    DefineLaneInstructions();
    DefineLdsInstructions();
    DefineMemoryInstructions();
    DefineControlInstructions();
    return true;
  }();
  (void)defined;
  const auto found = Table().find(name);
  return found == Table().end() ? nullptr : &found->second;
}

}  // namespace simulator
