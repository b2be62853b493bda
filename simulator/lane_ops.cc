// Instructions that move words between lanes, or between lanes and scalar registers.
#include <cstring>

#include "simulator/lanes.h"

namespace simulator {
namespace {

// The lowest active lane; lane 0 if there is none.
void ReadFirstLane(Wave& wave, const Instruction& instruction) {
  const int lane = wave.exec() == 0 ? 0 : __builtin_ctzll(wave.exec());
  const int source = instruction.source[0].index;
  if (!instruction.source[0].is_vgpr()) {
    wave.ClearScalarRead();
    const uint32_t value = wave.Scalar(instruction.source[0]);
    wave.SetScalar(instruction.scalar_destination, value, wave.ScalarUnset(instruction.source[0]));
    return;
  }
  wave.SetScalar(instruction.scalar_destination, wave.Vgpr(source)[lane], wave.VgprUnset(source, lane));
}

int LaneNumber(Wave& wave, const Operand& operand) {
  wave.ClearScalarRead();
  const uint32_t lane = wave.Scalar(operand) % static_cast<uint32_t>(wave.lanes);
  wave.RequireDefinedScalars("the lane that is read or written");
  return static_cast<int>(lane);
}

void ReadLane(Wave& wave, const Instruction& instruction) {
  const int lane = LaneNumber(wave, instruction.source[1]), source = instruction.source[0].index;
  wave.SetScalar(instruction.scalar_destination, wave.Vgpr(source)[lane], wave.VgprUnset(source, lane));
}

void WriteLane(Wave& wave, const Instruction& instruction) {
  const int lane = LaneNumber(wave, instruction.source[1]);
  const Operand& source = instruction.source[0];
  wave.WriteWord(instruction.destination.index, lane, wave.Scalar(source), wave.ScalarUnset(source));
}

// The set bits of the mask below each lane, in its half of 64.
void CountMaskBelow(Wave& wave, const Instruction& instruction) {
  const bool high = instruction.semantics->parameter[0] != 0;
  alignas(64) uint32_t room[2][2 * kRow], result[kRow];
  uint64_t defined = kAllLanes;
  const uint32_t* mask = SourceRows(wave, instruction, 0, Type::kWord, room[0], &defined);
  const uint32_t* add = SourceRows(wave, instruction, 1, Type::kWord, room[1], &defined);
  for (int lane = 0; lane < wave.lanes; ++lane) {
    const uint64_t below = (uint64_t{1} << lane) - 1;
    const auto part = static_cast<uint32_t>(high ? below >> 32 : below);
    result[lane] = static_cast<uint32_t>(__builtin_popcount(mask[lane] & part)) + add[lane];
  }
  WriteResult(wave, instruction, Type::kWord, result, defined);
}

// v_permlane16 and permlanex16: any lane of the same, or of the neighbouring row of 16.
void PermuteRow(Wave& wave, const Instruction& instruction) {
  const bool neighbour = instruction.semantics->parameter[0] != 0;
  wave.ClearScalarRead();
  const uint64_t select = wave.Scalar(instruction.source[1]) | uint64_t{wave.Scalar(instruction.source[2])} << 32;
  wave.RequireDefinedScalars("the lanes of a permutation");
  const int source = instruction.source[0].index;
  const uint32_t* words = wave.Vgpr(source);
  // op_sel: 1 reads inactive lanes, 2 gives 0 for those not readable.
  const bool fetch_inactive = (instruction.op_sel & 1) != 0, bound_control = (instruction.op_sel & 2) != 0;
  uint32_t result[kRow], unset[kRow];
  uint64_t written = 0;
  for (int lane = 0; lane < wave.lanes; ++lane) {
    const int row = (lane / 16) ^ (neighbour ? 1 : 0);
    const int from = row * 16 + static_cast<int>(select >> (4 * (lane % 16)) & 15);
    const bool readable = fetch_inactive || (wave.exec() >> from & 1) != 0;
    result[lane] = readable ? words[from] : 0;
    unset[lane] = readable ? wave.VgprUnset(source, from) : 0;
    written |= uint64_t{readable || bound_control} << lane;
  }
  wave.WriteVgpr(instruction.destination.index, result, kAllLanes, wave.exec() & written);
  wave.SetUnset(instruction.destination.index, unset, wave.exec() & written);
}

// A register's words and their bits without a value, while another takes its place.
struct Row {
  Row(const Wave& wave, const Operand& operand) {
    memcpy(words, wave.Vgpr(operand.index), sizeof(words));
    wave.UnsetRows(operand, Type::kWord, unset);
  }
  void WriteTo(Wave& wave, const Operand& operand) const {
    wave.WriteVgpr(operand.index, words, kAllLanes);
    wave.SetUnset(operand.index, unset, wave.exec());
  }
  uint32_t words[kRow], unset[kRow];
};

// v_permlane16_swap, 32_swap: odd rows of the first with even rows of the second.
void SwapRows(Wave& wave, const Instruction& instruction) {
  const int size = instruction.semantics->parameter[0];
  Row first(wave, instruction.destination), second(wave, instruction.source[0]);
  for (int lane = 0; lane < wave.lanes; ++lane) {
    if (lane / size % 2 == 0) continue;
    std::swap(first.words[lane], second.words[lane - size]);
    std::swap(first.unset[lane], second.unset[lane - size]);
  }
  first.WriteTo(wave, instruction.destination);
  second.WriteTo(wave, instruction.source[0]);
}

void Swap(Wave& wave, const Instruction& instruction) {
  const Row first(wave, instruction.destination), second(wave, instruction.source[0]);
  second.WriteTo(wave, instruction.destination);
  first.WriteTo(wave, instruction.source[0]);
}

Semantics Moves(Execute execute, int sources, int parameter = 0) {
  Semantics semantics;
  semantics.execute = execute;
  semantics.source_count = sources;
  for (Type& type : semantics.sources) type = Type::kWord;
  semantics.result = Type::kWord;
  semantics.parameter[0] = parameter;
  return semantics;
}

}  // namespace

void DefineLaneInstructions() {
  Define({"v_readfirstlane_b32"}, Moves(ReadFirstLane, 1));
  Define({"v_readlane_b32"}, Moves(ReadLane, 2));
  Define({"v_writelane_b32"}, Moves(WriteLane, 2));
  Define({"v_mbcnt_lo_u32_b32"}, Moves(CountMaskBelow, 2));
  Define({"v_mbcnt_hi_u32_b32"}, Moves(CountMaskBelow, 2, 1));
  Define({"v_permlane16_b32"}, Moves(PermuteRow, 3));
  Define({"v_permlanex16_b32"}, Moves(PermuteRow, 3, 1));
  Define({"v_permlane16_swap_b32"}, Moves(SwapRows, 1, 16));
  Define({"v_permlane32_swap_b32"}, Moves(SwapRows, 1, 32));
  Define({"v_swap_b32"}, Moves(Swap, 1));
}

}  // namespace simulator
