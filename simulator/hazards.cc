#include "simulator/hazards.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <unordered_map>

#include "simulator/access.h"
#include "simulator/fault.h"

namespace simulator {
namespace {

constexpr int kMaxWaitStates = 20, kMaxOfVectors = 5;
constexpr int kNotSeen = kMaxWaitStates + 1;
constexpr int kBranchStates = 4;  // a branch that is taken is as long as these

struct Range {
  int first = 0, count = 0;
  bool Overlaps(const Range& other) const { return first < other.first + other.count && other.first < first + count; }
  bool operator==(const Range& other) const { return first == other.first && count == other.count; }
};

// What of an instruction the rules ask for.
struct Facts {
  bool vector = false, matrix = false, dot = false, transcendental = false, memory = false, store = false, lane_select = false;
  int passes = 0;             // of a matrix instruction: what it takes, in units of four cycles
  bool is_xdl = false;        // a matrix instruction of 16-bit numbers
  Range sources[4], written;  // vector registers
  Range scalar_sources[4], scalar_written;
  bool writes_exec = false, shifts_result = false, swaps = false;  // swaps: rows of two registers
  bool reads_late = false;    // it is none of the scalar side, which waits for what it needs
  int states = 1;             // wait states that it is
};

bool Begins(const std::string& name, const char* prefix) { return name.compare(0, strlen(prefix), prefix) == 0; }

int WordsOf(Type type) { return IsPair(type) ? 2 : 1; }

class Reader {
 public:
  Reader(const Arch& arch, const Instruction& instruction) : arch_(arch), in_(instruction), name_(instruction.semantics->name) {}

  Facts Read() {
    facts_.vector = name_[0] == 'v';
    facts_.matrix = Begins(name_, "v_mfma") || Begins(name_, "v_wmma");
    facts_.dot = Begins(name_, "v_dot");
    facts_.reads_late = name_[0] != 's' || Begins(name_, "scratch_");
    for (const char* prefix : {"v_exp_", "v_log_", "v_rcp_", "v_rsq_", "v_sqrt_", "v_sin_", "v_cos_"}) facts_.transcendental |= Begins(name_, prefix);
    for (const char* word : {"_load_", "_store_", "_atomic_"}) facts_.memory |= name_[0] != 's' && name_[0] != 'd' && name_.find(word) != std::string::npos;
    if (name_ == "s_nop") facts_.states = in_.immediate() + 1;
    facts_.lane_select = name_ == "v_readlane_b32" || name_ == "v_writelane_b32";
    if (facts_.matrix) {
      Matrix();
    } else if (facts_.vector) {
      Vector();
    } else if (facts_.memory || Begins(name_, "ds_")) {
      Memory();
    }
    for (int i = 0; i < 4; ++i) {
      if (in_.source[i].kind != Operand::Kind::kSgpr) continue;
      facts_.scalar_sources[i] = {in_.source[i].index, facts_.memory && i == 2 ? (Begins(name_, "buffer_") ? 4 : 2) : 1};
    }
    if (facts_.vector && in_.scalar_destination.kind == Operand::Kind::kSgpr) {
      const bool one_word = facts_.lane_select || name_ == "v_readfirstlane_b32" || arch_.isa != Isa::kGfx9;
      facts_.scalar_written = {in_.scalar_destination.index, one_word ? 1 : 2};
    }
    facts_.writes_exec = Begins(name_, "v_cmpx");
    facts_.shifts_result = in_.destination.high || (in_.crossing == Instruction::Crossing::kSdwa && (in_.crossing_word >> 8 & 7) != 6);
    return facts_;
  }

 private:
  Range Of(const Operand& operand, int words) const { return operand.is_vgpr() ? Range{operand.index, words} : Range(); }

  void Vector() {
    const Semantics& semantics = *in_.semantics;
    const bool pairs = Begins(name_, "v_pk_") && (name_.find("_f32") != std::string::npos || name_ == "v_pk_mov_b32");
    for (int i = 0; i < 3; ++i) facts_.sources[i] = Of(in_.source[i], pairs ? 2 : WordsOf(semantics.sources[i]));
    facts_.written = Of(in_.destination, pairs ? 2 : WordsOf(semantics.result));
    facts_.swaps = Begins(name_, "v_permlane") && name_.find("swap") != std::string::npos;
    if (semantics.reads_result || facts_.swaps) facts_.sources[2] = facts_.written;
  }

  void Matrix() {
    const int size = in_.semantics->parameter[0], depth = in_.semantics->parameter[1];
    const bool is_float = name_.find("f32", strlen("v_mfma_f32")) != std::string::npos;
    const bool is_wmma = Begins(name_, "v_wmma");
    const int groups = is_wmma ? (arch_.isa == Isa::kGfx11 ? 1 : 2) : 64 / size, per_lane = depth / groups;
    const int operand = is_float ? per_lane : per_lane / 2, result = size * size / (is_wmma ? 32 : 64);
    facts_.sources[0] = Of(in_.source[0], operand);
    facts_.sources[1] = Of(in_.source[1], operand);
    facts_.sources[2] = Of(in_.source[2], result);
    facts_.written = Of(in_.destination, result);
    facts_.is_xdl = !is_float;
    const bool is_90a = arch_.name == "gfx90a";
    facts_.passes = (size == 32 ? 16 : 8) / (is_90a || is_float ? 1 : 2);
  }

  void Memory() {
    const Access access = Access::Of(in_.semantics->parameter);
    facts_.store = name_.find("store") != std::string::npos || name_.find("write") != std::string::npos;
    const bool has_two = Begins(name_, "global_") && in_.source[2].kind != Operand::Kind::kSgpr;
    const bool uses_address = !Begins(name_, "buffer_") || in_.offset_enable;
    if (uses_address) facts_.sources[0] = Of(in_.source[0], has_two ? 2 : 1);
    if (facts_.store || name_.find("atomic") != std::string::npos || name_.find("permute") != std::string::npos) {
      facts_.sources[1] = Of(in_.source[1], access.words());
      if (in_.semantics->parameter[3] != 0 && Begins(name_, "ds_")) facts_.sources[2] = Of(in_.source[2], access.words());
    }
  }

  const Arch& arch_;
  const Instruction& in_;
  const std::string& name_;
  Facts facts_;
};

class WaitStates {
 public:
  WaitStates(const Arch& arch, const std::vector<Instruction>& code)
      : code_(code), is_940_(arch.isa == Isa::kGfx9 && arch.name != "gfx90a"), is_950_(arch.name == "gfx950"),
        is_gfx9_(arch.isa == Isa::kGfx9) {
    for (size_t i = 0; i < code.size(); ++i) {
      facts_.push_back(Reader(arch, code[i]).Read());
      numbers_[code[i].address] = i;
    }
    seen_.resize(code.size(), kNotSeen);
    if (std::none_of(facts_.begin(), facts_.end(), [](const Facts& facts) { return facts.matrix; })) limit_ = kMaxOfVectors;
    for (size_t i = 0; i < code.size(); ++i) {
      const std::string& name = code[i].semantics->name;
      if (!Begins(name, "s_cbranch") && name != "s_branch") continue;
      const auto target = numbers_.find(code[i].address + static_cast<uint64_t>(code[i].size + 4 * code[i].immediate()));
      if (target != numbers_.end()) sources_[target->second].push_back(i);
    }
  }

  void Run() {
    for (size_t i = 0; i < code_.size(); ++i) {
      reader_ = i;
      if (is_gfx9_ && facts_[i].reads_late) {
        LookBack(i, 0, false);
      } else if (!is_gfx9_ && facts_[i].matrix) {
        LookBackToVector(i);
      }
      for (size_t seen : visited_) seen_[seen] = kNotSeen;
      visited_.clear();
    }
  }

 private:
  // Instructions that may have run just before instruction i, and whether by a branch.
  template <typename F>
  void ForEachBefore(size_t i, const F& function) const {
    const auto jumps = sources_.find(i);
    if (jumps != sources_.end()) {
      for (size_t from : jumps->second) function(from, true);
    }
    if (i > 0 && !EndsBlock(code_[i - 1].semantics->name)) function(i - 1, false);
  }

  // Goes over all that may have run up to `states` wait states before instruction i. `sum_known`: the nearest of the matrix
  // instructions that write what this one adds to has been seen.
  void LookBack(size_t i, int states, bool sum_known) {
    if (i != reader_) {
      if (seen_[i] <= states) return;
      See(i, states);
    }
    ForEachBefore(i, [&](size_t from, bool jumps) {
      const int after = states + (jumps ? kBranchStates - 1 : 0);
      Check(from, after, sum_known);
      const bool knows = sum_known || (facts_[from].matrix && facts_[reader_].sources[2].Overlaps(facts_[from].written));
      if (after + facts_[from].states <= limit_) LookBack(from, after + facts_[from].states, knows);
    });
  }

  // gfx11, gfx12: between a matrix instruction and one that multiplies its result is another of the vector ALU.
  void LookBackToVector(size_t i) {
    if (seen_[i] == 0) return;
    See(i, 0);
    ForEachBefore(i, [&](size_t from, bool) {
      const Facts &writer = facts_[from], &reader = facts_[reader_];
      const bool multiplies = reader.sources[0].Overlaps(writer.written) || reader.sources[1].Overlaps(writer.written);
      if (writer.matrix && multiplies) {
        throw Fault(At(reader_), " multiplies the result of ", At(from), ", and needs a vector instruction between them");
      }
      if (!writer.vector) LookBackToVector(from);
    });
  }

  void See(size_t i, int states) {
    seen_[i] = states;
    visited_.push_back(i);
  }

  std::string At(size_t i) const {
    std::ostringstream text;
    text << Print(code_[i]) << " at " << Hex{code_[i].address};
    return text.str();
  }

  static bool EndsBlock(const std::string& name) { return name == "s_branch" || name == "s_endpgm" || Begins(name, "s_setpc"); }

  void Need(size_t from, int states, int needed, const char* what) const {
    if (states >= needed) return;
    throw Fault(At(reader_), " ", what, " ", At(from), " ", states, " wait states after it, and needs ", needed);
  }

  bool Reads(const Range& range) const {
    const Facts& reader = facts_[reader_];
    return std::any_of(std::begin(reader.sources), std::end(reader.sources), [&](const Range& source) { return source.Overlaps(range); });
  }
  bool ReadsScalar(const Range& range) const {
    const Facts& reader = facts_[reader_];
    return std::any_of(std::begin(reader.scalar_sources), std::end(reader.scalar_sources), [&](const Range& source) { return source.Overlaps(range); });
  }

  // The manuals' tables of required wait states, between `from` and the instruction that is looked at.
  void Check(size_t from, int states, bool sum_known) const {
    const Facts &writer = facts_[from], &reader = facts_[reader_];
    if (!writer.vector && !writer.store) return;
    const std::string& name = code_[reader_].semantics->name;
    if (writer.matrix) {
      CheckMatrix(from, states, sum_known);
      return;
    }
    if (writer.store && writer.memory) {
      // The data of a wide store are read late.
      if (reader.vector && reader.written.count > 0 && writer.sources[1].count > 2 && reader.written.Overlaps(writer.sources[1])) {
        Need(from, states, is_940_ ? 2 : 1, "overwrites what is stored by");
      }
      return;
    }
    const Instruction& in = code_[reader_];
    const bool is_dpp = in.crossing == Instruction::Crossing::kDpp;
    if (writer.scalar_written.count > 0) {
      const bool reads = ReadsScalar(writer.scalar_written);
      if (reader.memory && reads) Need(from, states, 5, "reads the scalar register of");
      if (reader.lane_select && reader.scalar_sources[1].Overlaps(writer.scalar_written)) Need(from, states, 4, "takes its lane from");
      if (Begins(name, "v_div_fmas") && writer.scalar_written.Overlaps({kVccLo, 2})) Need(from, states, 4, "reads vcc of");
      if (is_940_ && reader.vector && reads) Need(from, states, 2, "reads the scalar register of");
    }
    if (writer.writes_exec) {
      if (is_dpp) Need(from, states, 5, "crosses lanes of the exec of");
      if (reader.matrix || (is_940_ && (reader.lane_select || name == "v_readfirstlane_b32"))) Need(from, states, 4, "runs with the exec of");
    }
    if (writer.written.count == 0) return;
    if (is_dpp && reader.sources[0].Overlaps(writer.written)) Need(from, states, 2, "crosses lanes of the result of");
    const bool reads = Reads(writer.written);
    if (reader.swaps && reads) Need(from, states, 2, "swaps the result of");
    if (reader.matrix && reads && !writer.dot) Need(from, states, 2, "reads the result of");
    if (writer.dot && reader.vector) {
      const bool same = reader.dot && code_[from].semantics == in.semantics;
      if (same ? reader.sources[0].Overlaps(writer.written) || reader.sources[1].Overlaps(writer.written) : reads) Need(from, states, 3, "reads the result of");
      if (!same && reader.written.Overlaps(writer.written)) Need(from, states, 3, "overwrites the result of");
    }
    if (!is_940_ || !reader.vector || !reads) return;
    if (name == "v_readlane_b32" || name == "v_readfirstlane_b32") Need(from, states, 1, "reads the result of");
    if (writer.transcendental && !reader.transcendental) Need(from, states, 1, "reads the result of");
    if (writer.shifts_result) Need(from, states, 1, "reads the result of");
  }

  // A matrix instruction writes its result when it has made all its passes.
  void CheckMatrix(size_t from, int states, bool sum_known) const {
    const Facts &writer = facts_[from], &reader = facts_[reader_];
    const int later = is_950_ ? 1 : 0;
    const int to_read = !is_940_ || writer.is_xdl ? writer.passes + 3 + later : writer.passes + 2;
    if (reader.matrix) {
      for (int i = 0; i < 2; ++i) {
        if (reader.sources[i].Overlaps(writer.written)) Need(from, states, to_read, "multiplies the result of");
      }
      const bool adds_part = reader.sources[2].Overlaps(writer.written) && !(reader.sources[2] == writer.written);
      if (!adds_part || sum_known || (is_940_ && reader.is_xdl && !writer.is_xdl)) return;
      Need(from, states, is_940_ && writer.is_xdl ? writer.passes + 1 + later : writer.passes, "adds a part of the result of");
      return;
    }
    if (Reads(writer.written)) Need(from, states, to_read, "reads the result of");
    if (!reader.vector || reader.written.count == 0) return;
    if (reader.written.Overlaps(writer.written)) Need(from, states, to_read, "overwrites the result of");
    if (reader.written.Overlaps(writer.sources[2]) && (!is_940_ || writer.is_xdl)) Need(from, states, writer.passes - 1, "overwrites what is added by");
  }

  const std::vector<Instruction>& code_;
  const bool is_940_, is_950_, is_gfx9_;
  std::vector<Facts> facts_;
  std::unordered_map<uint64_t, size_t> numbers_;
  std::unordered_map<size_t, std::vector<size_t>> sources_;  // the branches to an instruction
  size_t reader_ = 0;
  int limit_ = kMaxWaitStates;       // how far back anything matters
  std::vector<int> seen_;            // the fewest wait states by which each instruction was reached
  std::vector<size_t> visited_;
};

bool WritesExec(const Instruction& instruction) {
  return instruction.destination.kind == Operand::Kind::kSgpr && instruction.destination.index == kExecLo;
}

}  // namespace

void CheckWaitStates(const Arch& arch, const std::vector<Instruction>& code) { WaitStates(arch, code).Run(); }

void CheckJoins(const std::vector<Instruction>& code) {
  std::unordered_map<uint64_t, size_t> numbers;
  for (size_t i = 0; i < code.size(); ++i) numbers[code[i].address] = i;
  for (const Instruction& branch : code) {
    if (branch.semantics->name != "s_cbranch_execz") continue;
    const auto join = numbers.find(branch.address + static_cast<uint64_t>(branch.size + 4 * branch.immediate()));
    if (join == numbers.end()) continue;
    const Instruction* written = nullptr;
    for (size_t i = join->second; i < code.size(); ++i) {
      const std::string& name = code[i].semantics->name;
      if (WritesExec(code[i]) && Begins(name, "s_or_b")) {
        if (written == nullptr) break;
        throw Fault(Print(*written), " at ", Hex{written->address}, " is behind the end of the branch at ", Hex{branch.address},
                    ", but before exec has all lanes again at ", Hex{code[i].address});
      }
      if (WritesExec(code[i]) || name.find("saveexec") != std::string::npos || Begins(name, "s_cbranch") || name == "s_branch" || name == "s_endpgm" || Begins(name, "s_setpc")) break;
      const bool moves_lanes = name == "v_writelane_b32" || name == "v_nop";
      if (written == nullptr && name[0] == 'v' && code[i].destination.is_vgpr() && !moves_lanes) written = &code[i];
    }
  }
}

void CheckHazards(const Program& program) {
  const std::vector<Instruction> code = program.Listing();
  CheckJoins(code);
  CheckWaitStates(program.arch(), code);
}

}  // namespace simulator
