// What code objects consist of, as JSON lines for the gates (gates.py) and tables: one object a line of
//
//   path
//   counts            {mnemonic: how often it stands in the code}
//   narrow_addresses  the same of accesses of global memory whose address is not 64 bits in vector registers: a scalar base
//                     and a 32-bit offset, or a buffer's
//   loop              {instructions, matrix, scratch} of the innermost loop with the most matrix instructions: the shortest of
//                     those, as masked tiles have a loop of their own. Without any, of the longest. `scratch` is the most that
//                     one with as many matrix instructions has
//   error             in place of these: what is not a code object, or not an instruction
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "simulator/fault.h"
#include "simulator/hazards.h"
#include "simulator/program.h"

namespace {

using simulator::Format;
using simulator::Instruction;
using simulator::Operand;

using Counts = std::map<std::string, int>;

bool IsMatrix(const std::string& name) { return name.find("mfma") != std::string::npos || name.find("wmma") != std::string::npos; }

bool IsAccess(const std::string& name) {
  return name.find("load") != std::string::npos || name.find("store") != std::string::npos || name.find("atomic") != std::string::npos;
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

std::string Json(const Counts& counts) {
  std::string out = "{";
  for (const auto& [name, count] : counts) out += (out.size() > 1 ? ", " : "") + Quoted(name) + ": " + std::to_string(count);
  return out + "}";
}

// fp32 rounded to 10 bits of mantissa: the simulator does not run it, and no kernel may have it. "" for all others.
std::string Xf32Name(const simulator::Arch& arch, uint32_t word) {
  constexpr uint32_t kVop3pMai = 0x1a7;
  if (arch.name != "gfx942" || word >> 23 != kVop3pMai) return "";
  const uint32_t number = word >> 16 & 0x7f;
  return number == 62 ? "v_mfma_f32_16x16x8_xf32" : number == 63 ? "v_mfma_f32_32x32x4_xf32" : "";
}

// gfx90a reaches its scratch through a buffer, too: by an offset alone, the lane's address being the descriptor's.
bool IsScratch(const simulator::Arch& arch, const Instruction& instruction) {
  if (instruction.format == Format::kScratch) return true;
  return instruction.format == Format::kBuffer && arch.scratch_is_buffer && !instruction.index_enable && !instruction.offset_enable;
}

// An access of global memory whose address is not 64 bits in vector registers.
bool HasNarrowAddress(const simulator::Arch& arch, const Instruction& instruction) {
  if (!IsAccess(instruction.semantics->name)) return false;
  if (instruction.format == Format::kGlobal) return instruction.source[2].kind == Operand::Kind::kSgpr;
  return instruction.format == Format::kBuffer && !IsScratch(arch, instruction);
}

enum class Kind { kMatrix, kScratch, kOther };

struct Loop {
  uint64_t begin, end;  // of its first instruction, of its branch back
};

// What a loop consists of.
struct Tally {
  int instructions = 0, matrix = 0, scratch = 0;
};

// Whether `other` says more of how the kernel spends its time.
bool IsLess(const Tally& tally, const Tally& other) {
  if (tally.matrix != other.matrix) return tally.matrix < other.matrix;
  return tally.matrix > 0 ? tally.instructions > other.instructions : tally.instructions < other.instructions;
}

std::string HazardOf(const simulator::Program& program) {
  try {
    simulator::CheckHazards(program);
  } catch (const simulator::Fault& fault) {
    return fault.what();
  }
  return "";
}

std::string Describe(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  simulator::Program program{simulator::CodeObject(std::move(bytes))};
  const simulator::CodeObject& object = program.object();

  Counts counts, narrow;
  std::vector<std::pair<uint64_t, Kind>> code;
  std::vector<Loop> loops;
  for (uint64_t at = object.code_begin(); at < object.code_end();) {
    uint32_t word = 0;
    memcpy(&word, &object.image()[at], sizeof(word));
    if (const std::string xf32 = Xf32Name(program.arch(), word); !xf32.empty()) {
      ++counts[xf32];
      code.emplace_back(at, Kind::kMatrix);
      at += 8;
      continue;
    }
    const Instruction& instruction = program.At(at);
    const std::string& name = instruction.semantics->name;
    if (name == "s_code_end") break;  // behind the kernel only padding follows
    ++counts[name];
    if (HasNarrowAddress(program.arch(), instruction)) ++narrow[name];
    code.emplace_back(at, IsMatrix(name) ? Kind::kMatrix : IsAccess(name) && IsScratch(program.arch(), instruction) ? Kind::kScratch : Kind::kOther);
    at += static_cast<uint64_t>(instruction.size);
    if (name.compare(0, 8, "s_branch") == 0 || name.compare(0, 9, "s_cbranch") == 0) {
      const uint64_t target = at + static_cast<uint64_t>(int64_t{instruction.immediate()} * 4);
      if (target < at) loops.push_back({target, at});
    }
  }
  Tally best;
  for (const Loop& loop : loops) {
    const auto is_inside = [&](const Loop& other) { return &other != &loop && loop.begin <= other.begin && other.end <= loop.end; };
    if (std::any_of(loops.begin(), loops.end(), is_inside)) continue;
    Tally tally;
    for (const auto& [address, kind] : code) {
      if (address < loop.begin || address >= loop.end) continue;
      ++tally.instructions;
      tally.matrix += kind == Kind::kMatrix;
      tally.scratch += kind == Kind::kScratch;
    }
    const int scratch = tally.matrix == best.matrix ? std::max(tally.scratch, best.scratch) : std::max(tally, best, IsLess).scratch;
    best = std::max(tally, best, IsLess);
    best.scratch = scratch;
  }
  return "\"counts\": " + Json(counts) + ", \"narrow_addresses\": " + Json(narrow) + ", \"loop\": " +
         Json({{"instructions", best.instructions}, {"matrix", best.matrix}, {"scratch", best.scratch}}) +
         ", \"hazard\": " + Quoted(HazardOf(program));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: instructions FILE, a file that lists code objects of AMD GPUs, one a line\n";
    return 2;
  }
  std::ifstream list(argv[1]);
  for (std::string path; std::getline(list, path);) {
    std::string description;
    try {
      description = Describe(path);
    } catch (const simulator::Fault& fault) {
      description = "\"error\": " + Quoted(fault.what());
    }
    std::cout << "{\"path\": " << Quoted(path) << ", " << description << "}\n";
  }
  return 0;
}
