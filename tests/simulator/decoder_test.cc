// Our decoder against LLVM's disassembler: names, sizes and the registers of ALU instructions, for one of each kind in
// our kernels (disassembly.txt).
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "simulator/fault.h"
#include "simulator/program.h"

namespace {

// The first register of each operand, in order. Implied operands, which not both print, are left out.
std::vector<std::string> Registers(std::string text) {
  text = text.substr(0, text.find(" offset"));
  for (const char* modifier : {" row_", " quad_", " dst_sel", " src0_sel", " op_sel", " bitop3", " neg_", " bound_", " clamp"}) {
    text = text.substr(0, text.find(modifier));
  }
  static const std::regex pattern("(^|[ ,|(-])(v|a|s|ttmp)\\[?([0-9]+)");
  std::vector<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) out.push_back((*it)[2].str() + (*it)[3].str());
  return out;
}

std::string Name(const std::string& text) {
  static const std::regex suffix("_(e32|e64|dpp|sdwa|e64_dpp)$"), dual("^v_dual_"), numeric("^(v_m..)_num_f32$");
  const std::string name = std::regex_replace(text.substr(0, text.find(' ')), suffix, "");
  return std::regex_replace(std::regex_replace(name, dual, "v_"), numeric, "$1_f32");
}

// s_addk reads its destination, which we print twice.
bool IsAlu(const std::string& name) {
  for (const char* other : {"ds_", "global_", "scratch_", "buffer_", "s_load", "s_wait", "s_branch", "s_cbranch", "s_nop", "s_addk"}) {
    if (name.rfind(other, 0) == 0) return false;
  }
  return true;
}

TEST(Decoder, AgreesWithLlvm) {
  std::ifstream file("tests/simulator/disassembly.txt");
  int instructions = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string arch, bytes, want;
    std::getline(fields, arch, ';');
    std::getline(fields, bytes, ';');
    std::getline(fields, want);
    std::vector<uint32_t> words;
    std::istringstream list(bytes);
    for (std::string word; std::getline(list, word, ',');) words.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
    const size_t size = 4 * words.size();
    words.resize(words.size() + 4);
    simulator::Instruction instruction;
    ASSERT_NO_THROW(simulator::Decode(simulator::FindArch(arch), words.data(), 0, &instruction)) << line;
    const std::string got = Print(instruction);
    EXPECT_EQ(static_cast<size_t>(instruction.size), size) << line;
    EXPECT_EQ(Name(got), Name(want)) << line;
    if (IsAlu(want)) {
      EXPECT_EQ(Registers(got), Registers(want)) << line << "\n" << got;
    }
    delete instruction.dual;
    ++instructions;
  }
  EXPECT_GT(instructions, 1500);
}

}  // namespace
