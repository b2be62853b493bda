#include <sstream>

#include "simulator/instruction.h"

namespace simulator {
namespace {

void PrintRegister(std::ostream& out, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kVgpr:
      out << (operand.index < kFirstAccVgpr ? "v" : "a") << operand.index % kFirstAccVgpr << (operand.high ? ".h" : "");
      break;
    case Operand::Kind::kSgpr:
      if (operand.index == kVccLo || operand.index == kVccLo + 1) {
        out << (operand.index == kVccLo ? "vcc" : "vcc_hi");
      } else if (operand.index == kExecLo || operand.index == kExecHi) {
        out << (operand.index == kExecLo ? "exec" : "exec_hi");
      } else if (operand.index >= kTtmp0 && operand.index < kTtmp0 + 16) {
        out << "ttmp" << operand.index - kTtmp0;
      } else {
        out << "s" << operand.index;
      }
      break;
    case Operand::Kind::kConstant: out << "0x" << std::hex << operand.value << std::dec; break;
    case Operand::Kind::kScc: out << "scc"; break;
    case Operand::Kind::kVccIsZero: out << "vccz"; break;
    case Operand::Kind::kExecIsZero: out << "execz"; break;
    case Operand::Kind::kNull: out << "null"; break;
    case Operand::Kind::kNone: break;
  }
}

}  // namespace

std::string Print(const Instruction& instruction) {
  std::ostringstream out;
  out << instruction.semantics->name;
  const char* separator = " ";
  const auto print = [&](const Operand& operand) {
    if (operand.kind == Operand::Kind::kNone) return;
    out << separator << (operand.negate ? "-" : "") << (operand.absolute ? "|" : "");
    PrintRegister(out, operand);
    out << (operand.absolute ? "|" : "");
    separator = ", ";
  };
  print(instruction.destination);
  print(instruction.scalar_destination);
  for (const Operand& source : instruction.source) print(source);
  if (instruction.offset != 0) out << " offset:" << instruction.offset;
  if (instruction.offset1 != 0) out << " offset1:" << instruction.offset1;
  if (instruction.crossing != Instruction::Crossing::kNone) {
    out << (instruction.crossing == Instruction::Crossing::kSdwa ? " sdwa:0x" : " dpp:0x") << std::hex << instruction.crossing_word << std::dec;
  }
  if (instruction.clamp) out << " clamp";
  if (instruction.dual != nullptr) out << " :: " << Print(*instruction.dual);
  return out.str();
}

}  // namespace simulator
