// Packed and mixed arithmetic (VOP3P): two numbers in a register or in a pair of registers.
#include <cstring>

#include "simulator/lanes.h"

namespace simulator {
namespace {

bool Bit(int bits, int source) { return (bits >> source & 1) != 0; }

// Which word or half of each source makes the low or the high part of the result.
int SelectOf(const Instruction& instruction, int half) { return half == 0 ? instruction.op_sel : instruction.op_sel_hi; }

void Negate(uint32_t* row, int lanes, uint32_t sign) {
  for (int i = 0; i < lanes; ++i) row[i] ^= sign;
}

// The low or the high word of a 64-bit source, at `room`. A scalar constant is both.
void PickWord(Wave& wave, const Operand& operand, bool high, uint32_t* room, uint64_t* defined) {
  Operand part = operand;
  if (high && (operand.kind == Operand::Kind::kVgpr || operand.kind == Operand::Kind::kSgpr)) ++part.index;
  alignas(64) uint32_t space[2 * kRow];
  memcpy(room, wave.Rows(part, Type::kFloat, space, defined), sizeof(uint32_t) * kRow);
}

// v_pk_fma_f32 and the like: `lanes` twice, op_sel and op_sel_hi say on which words.
void PackedFloat(Wave& wave, const Instruction& instruction) {
  const Semantics& semantics = *instruction.semantics;
  alignas(64) uint32_t rows[3][kRow], result[2 * kRow];
  uint64_t defined[2] = {kAllLanes, kAllLanes};
  for (int half = 0; half < 2; ++half) {
    const int select = SelectOf(instruction, half);
    const int negate = half == 0 ? instruction.neg_lo : instruction.neg_hi;
    for (int i = 0; i < semantics.source_count; ++i) {
      PickWord(wave, instruction.source[i], Bit(select, i), rows[i], &defined[half]);
      if (Bit(negate, i)) Negate(rows[i], wave.lanes, 0x80000000);
    }
    semantics.lanes(result + half * kRow, rows[0], rows[1], rows[2], wave.lanes);
  }
  if (instruction.clamp) throw Fault("clamp of packed numbers is not modelled");
  const int destination = instruction.destination.index;
  wave.WriteVgpr(destination, result, defined[0]);
  wave.WriteVgpr(destination + 1, result + kRow, defined[1]);
}

void PackedMove(Wave& wave, const Instruction& instruction) {
  alignas(64) uint32_t low[kRow], high[kRow];
  uint64_t low_defined = kAllLanes, high_defined = kAllLanes;
  PickWord(wave, instruction.source[0], Bit(instruction.op_sel, 0), low, &low_defined);
  PickWord(wave, instruction.source[1], Bit(instruction.op_sel, 1), high, &high_defined);
  wave.WriteVgpr(instruction.destination.index, low, low_defined);
  wave.WriteVgpr(instruction.destination.index + 1, high, high_defined);
}

// Which halves of a packed result are made of what has no value.
void UnsetHalves(const Wave& wave, const Instruction& instruction, Unset* unset) {
  memset(unset->bits, 0, sizeof(unset->bits));
  for (int i = 0; i < instruction.semantics->source_count; ++i) {
    alignas(64) uint32_t bits[2 * kRow];
    wave.UnsetRows(instruction.source[i], Type::kHalf, bits);
    for (int half = 0; half < 2; ++half) {
      const int shift = Bit(SelectOf(instruction, half), i) ? 16 : 0;
      for (int lane = 0; lane < wave.lanes; ++lane) unset->bits[lane] |= (bits[lane] >> shift & 0xffff) != 0 ? 0xffffu << (16 * half) : 0;
    }
  }
}

// v_pk_*_f16, _i16, _u16, _b16: `lanes` on the halves of a word.
void PackedHalf(Wave& wave, const Instruction& instruction) {
  const Semantics& semantics = *instruction.semantics;
  alignas(64) uint32_t room[2 * kRow], rows[3][kRow], part[2][kRow];
  uint64_t defined = kAllLanes;
  for (int half = 0; half < 2; ++half) {
    const int select = SelectOf(instruction, half);
    const int negate = half == 0 ? instruction.neg_lo : instruction.neg_hi;
    for (int i = 0; i < semantics.source_count; ++i) {
      const uint32_t* source = wave.Rows(instruction.source[i], Type::kHalf, room, &defined);
      const int shift = Bit(select, i) ? 16 : 0;
      for (int lane = 0; lane < wave.lanes; ++lane) rows[i][lane] = source[lane] >> shift & 0xffff;
      if (Bit(negate, i)) Negate(rows[i], wave.lanes, 0x8000);
    }
    semantics.lanes(part[half], rows[0], rows[1], rows[2], wave.lanes);
  }
  if (instruction.clamp) throw Fault("clamp of packed numbers is not modelled");
  for (int lane = 0; lane < wave.lanes; ++lane) part[0][lane] = (part[0][lane] & 0xffff) | part[1][lane] << 16;
  Unset unset;
  unset.any = (~defined & wave.exec()) != 0;
  if (unset.any) UnsetHalves(wave, instruction, &unset);
  const int destination = instruction.destination.index;
  wave.WriteVgpr(destination, part[0], kAllLanes);
  if (unset.any) wave.SetUnset(destination, unset.bits, wave.exec());
}

// v_fma_mix*: op_sel_hi says which sources are f16, op_sel which half; neg_hi is the absolute value.
void FmaMix(Wave& wave, const Instruction& instruction) {
  enum { kFloat, kLow, kHigh };
  const int result_is = instruction.semantics->parameter[0];
  alignas(64) uint32_t room[2 * kRow], rows[3][kRow], result[kRow];
  uint64_t undefined = 0;
  for (int i = 0; i < 3; ++i) {
    const bool is_half = Bit(instruction.op_sel_hi, i);
    uint64_t whole = kAllLanes;
    const uint32_t* source = wave.Rows(instruction.source[i], is_half ? Type::kHalf : Type::kFloat, room, &whole);
    const int shift = Bit(instruction.op_sel, i) ? 16 : 0;
    if ((~whole & wave.exec()) != 0) {
      alignas(64) uint32_t bits[2 * kRow];
      wave.UnsetRows(instruction.source[i], Type::kFloat, bits);
      for (int lane = 0; lane < wave.lanes; ++lane) undefined |= uint64_t{(is_half ? bits[lane] >> shift & 0xffff : bits[lane]) != 0} << lane;
    }
    const uint32_t keep = Bit(instruction.neg_hi, i) ? 0x7fffffff : ~0u, flip = Bit(instruction.neg_lo, i) ? 0x80000000 : 0;
    for (int lane = 0; lane < wave.lanes; ++lane) {
      const uint32_t word = is_half ? Bits(HalfToFloat(source[lane] >> shift & 0xffff)) : source[lane];
      rows[i][lane] = (word & keep) ^ flip;
    }
  }
  if (instruction.clamp) throw Fault("clamp of mixed numbers is not modelled");
  for (int lane = 0; lane < wave.lanes; ++lane) {
    const float value = Fma(Float(rows[0][lane]), Float(rows[1][lane]), Float(rows[2][lane]));
    result[lane] = result_is == kFloat ? Bits(value) : FloatToHalf(value);
  }
  const int destination = instruction.destination.index;
  if (result_is != kFloat) {
    const uint32_t* before = wave.Vgpr(destination);
    for (int lane = 0; lane < wave.lanes; ++lane) {
      result[lane] = result_is == kLow ? (before[lane] & 0xffff0000) | result[lane] : (before[lane] & 0xffff) | result[lane] << 16;
    }
  }
  Unset unset;
  const uint32_t written = result_is == kFloat ? ~0u : result_is == kLow ? 0xffffu : 0xffff0000u;
  unset.any = (undefined & wave.exec()) != 0 || (written != ~0u && (~wave.VgprDefined(destination) & wave.exec()) != 0);
  if (unset.any) {
    wave.UnsetRows(instruction.destination, Type::kWord, unset.bits);
    for (int lane = 0; lane < wave.lanes; ++lane) unset.bits[lane] = (unset.bits[lane] & ~written) | (undefined >> lane & 1 ? written : 0);
  }
  wave.WriteVgpr(destination, result, kAllLanes);
  if (unset.any) wave.SetUnset(destination, unset.bits, wave.exec());
}

template <typename F>
void DefineHalves(const std::vector<const char*>& names, F function) {
  Define(names, LanesOf(function, PackedHalf));
}

float ToFloat(Half half) { return HalfToFloat(half.bits); }
Half ToHalf(float value) { return {static_cast<uint16_t>(FloatToHalf(value))}; }
Half Integer(int value) { return {static_cast<uint16_t>(value)}; }

}  // namespace

void DefinePackedInstructions() {
  Define({"v_pk_fma_f32"}, LanesOf([](float a, float b, float c) { return Fma(a, b, c); }, PackedFloat));
  Define({"v_pk_mul_f32"}, LanesOf([](float a, float b) { return a * b; }, PackedFloat));
  Define({"v_pk_add_f32"}, LanesOf([](float a, float b) { return a + b; }, PackedFloat));
  Semantics semantics;
  semantics.source_count = 2;
  semantics.execute = PackedMove;
  Define({"v_pk_mov_b32"}, semantics);

  DefineHalves({"v_pk_add_f16"}, [](Half a, Half b) { return ToHalf(ToFloat(a) + ToFloat(b)); });
  DefineHalves({"v_pk_mul_f16"}, [](Half a, Half b) { return ToHalf(ToFloat(a) * ToFloat(b)); });
  DefineHalves({"v_pk_fma_f16"}, [](Half a, Half b, Half c) { return Half{static_cast<uint16_t>(FmaToHalf(ToFloat(a), ToFloat(b), ToFloat(c)))}; });
  DefineHalves({"v_pk_max_f16", "v_pk_max_num_f16"}, [](Half a, Half b) { return ToHalf(MaxNum(ToFloat(a), ToFloat(b))); });
  DefineHalves({"v_pk_min_f16", "v_pk_min_num_f16"}, [](Half a, Half b) { return ToHalf(MinNum(ToFloat(a), ToFloat(b))); });
  DefineHalves({"v_pk_add_u16", "v_pk_add_i16"}, [](Half a, Half b) { return Integer(a.bits + b.bits); });
  DefineHalves({"v_pk_sub_u16", "v_pk_sub_i16"}, [](Half a, Half b) { return Integer(a.bits - b.bits); });
  DefineHalves({"v_pk_mul_lo_u16"}, [](Half a, Half b) { return Integer(static_cast<int>(uint32_t{a.bits} * b.bits)); });
  DefineHalves({"v_pk_lshlrev_b16"}, [](Half a, Half b) { return Integer(b.bits << (a.bits & 15)); });
  DefineHalves({"v_pk_lshrrev_b16"}, [](Half a, Half b) { return Integer(b.bits >> (a.bits & 15)); });

  semantics.source_count = 3;
  semantics.execute = FmaMix;
  Define({"v_fma_mix_f32"}, semantics);
  semantics.parameter[0] = 1;
  Define({"v_fma_mixlo_f16"}, semantics);
  semantics.parameter[0] = 2;
  Define({"v_fma_mixhi_f16"}, semantics);
}

}  // namespace simulator
