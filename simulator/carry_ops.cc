// Vector instructions that also read or write a lane mask.
#include <cmath>
#include <cstring>

#include "simulator/lanes.h"

namespace simulator {
namespace {

void WriteMask(Wave& wave, const Instruction& instruction, uint64_t mask, uint64_t defined) {
  wave.SetLaneMask(instruction.scalar_destination, mask & wave.exec(), wave.exec() & ~defined);
}

// parameter: [0] subtracts, [1] with its sources exchanged, [2] reads a carry.
void AddCarry(Wave& wave, const Instruction& instruction) {
  const int* parameter = instruction.semantics->parameter;
  alignas(64) uint32_t room[2][2 * kRow], result[kRow];
  uint64_t defined = kAllLanes, carry_in = 0, carry = 0;
  const uint32_t* a = SourceRows(wave, instruction, 0, Type::kWord, room[0], &defined);
  const uint32_t* b = SourceRows(wave, instruction, 1, Type::kWord, room[1], &defined);
  if (parameter[1] != 0) std::swap(a, b);
  if (parameter[2] != 0) {
    uint64_t unset;
    carry_in = wave.LaneMask(instruction.source[2], &unset);
    defined &= ~unset;
  }
  const uint64_t sign = parameter[0] != 0 ? ~uint64_t{0} : 1;
  for (int i = 0; i < wave.lanes; ++i) {
    const uint64_t sum = a[i] + sign * b[i] + sign * (carry_in >> i & 1);
    result[i] = static_cast<uint32_t>(sum);
    carry |= (sum >> 32 & 1) << i;
  }
  WriteResult(wave, instruction, Type::kWord, result, defined);
  WriteMask(wave, instruction, carry, defined);
}

void MultiplyAdd64(Wave& wave, const Instruction& instruction) {
  const bool is_signed = instruction.semantics->parameter[0] != 0;
  alignas(64) uint32_t room[3][2 * kRow], result[2 * kRow];
  uint64_t defined = kAllLanes, carry = 0;
  const uint32_t* a = SourceRows(wave, instruction, 0, Type::kWord, room[0], &defined);
  const uint32_t* b = SourceRows(wave, instruction, 1, Type::kWord, room[1], &defined);
  const uint32_t* c = SourceRows(wave, instruction, 2, Type::kPair, room[2], &defined);
  for (int i = 0; i < wave.lanes; ++i) {
    const uint64_t product = is_signed ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(a[i])} * static_cast<int32_t>(b[i]))
                                       : uint64_t{a[i]} * b[i];
    const uint64_t sum = product + Lane<uint64_t>::Get(c, i);
    Lane<uint64_t>::Put(result, i, sum);
    carry |= static_cast<uint64_t>(sum < product) << i;
  }
  Unset unset;
  unset.any = (~defined & wave.exec()) != 0;
  if (unset.any) {
    memset(unset.bits, 0, sizeof(unset.bits));
    for (int source = 0; source < 3; ++source) {
      alignas(64) uint32_t bits[2 * kRow] = {};
      SourceUnset(wave, instruction, source, source == 2 ? Type::kPair : Type::kWord, bits);
      for (int i = 0; i < wave.lanes; ++i) {
        Lane<uint64_t>::Put(unset.bits, i, Lane<uint64_t>::Get(unset.bits, i) | Upwards(Lane<uint64_t>::Get(bits, i)));
      }
    }
  }
  WriteResult(wave, instruction, Type::kPair, result, &unset);
  WriteMask(wave, instruction, carry, defined);
}

// Scales numerator or denominator of a division where a step of it would leave the range.
void DivScale(Wave& wave, const Instruction& instruction) {
  alignas(64) uint32_t room[3][2 * kRow], result[kRow];
  uint64_t defined = kAllLanes, scaled = 0;
  const uint32_t* rows[3];
  for (int i = 0; i < 3; ++i) rows[i] = SourceRows(wave, instruction, i, Type::kFloat, room[i], &defined);
  for (int i = 0; i < wave.lanes; ++i) {
    const float value = Float(rows[0][i]), denominator = Float(rows[1][i]), numerator = Float(rows[2][i]);
    float out = value;
    bool mask = false;
    const double reciprocal = 1.0 / denominator;
    const float quotient = numerator / denominator;
    const bool tiny_reciprocal = std::fabs(reciprocal) < 0x1p-126 && reciprocal != 0;
    if (numerator == 0 || denominator == 0) {
      out = Float(0x7fc00000);
    } else if (Exponent(numerator) - Exponent(denominator) >= 96) {
      mask = true;
      if (Bits(value) == Bits(denominator)) out = std::ldexp(value, 64);
    } else if (IsSubnormal(denominator)) {
      out = std::ldexp(value, 64);
    } else if (tiny_reciprocal && IsSubnormal(quotient)) {
      mask = true;
      if (Bits(value) == Bits(denominator)) out = std::ldexp(value, 64);
    } else if (tiny_reciprocal) {
      out = std::ldexp(value, -64);
    } else if (IsSubnormal(quotient)) {
      mask = true;
      if (Bits(value) == Bits(numerator)) out = std::ldexp(value, 64);
    } else if (Exponent(numerator) <= 23) {
      out = std::ldexp(value, 64);
    }
    result[i] = Bits(out);
    scaled |= uint64_t{mask} << i;
  }
  WriteResult(wave, instruction, Type::kFloat, result, defined);
  WriteMask(wave, instruction, scaled, defined);
}

// A multiply-add that undoes the scaling where vcc says there was one.
void DivFmas(Wave& wave, const Instruction& instruction) {
  alignas(64) uint32_t room[3][2 * kRow], result[kRow];
  uint64_t defined = kAllLanes;
  const uint32_t* rows[3];
  for (int i = 0; i < 3; ++i) rows[i] = SourceRows(wave, instruction, i, Type::kFloat, room[i], &defined);
  uint64_t mask_unset;
  const uint64_t scaled = wave.LaneMask(Vcc(), &mask_unset);
  defined &= ~mask_unset;
  for (int i = 0; i < wave.lanes; ++i) {
    const float value = Fma(Float(rows[0][i]), Float(rows[1][i]), Float(rows[2][i]));
    const int scale = Exponent(Float(rows[2][i])) > 127 ? 64 : -64;
    result[i] = Bits(scaled >> i & 1 ? std::ldexp(value, scale) : value);
  }
  WriteResult(wave, instruction, Type::kFloat, result, defined);
}

void ConditionalMask(Wave& wave, const Instruction& instruction) {
  alignas(64) uint32_t room[2][2 * kRow], result[kRow];
  const Type type = instruction.semantics->sources[0];
  uint64_t if_clear = kAllLanes, if_set = kAllLanes;
  // A sign modifier makes them numbers.
  const auto type_of = [&](int source) {
    const Operand& operand = instruction.source[source];
    return type == Type::kWord && (operand.negate || operand.absolute) ? Type::kFloat : type;
  };
  const uint32_t* a = SourceRows(wave, instruction, 0, type_of(0), room[0], &if_clear);
  const uint32_t* b = SourceRows(wave, instruction, 1, type_of(1), room[1], &if_set);
  uint64_t mask_unset;
  const uint64_t mask = wave.LaneMask(instruction.source[2], &mask_unset);
  for (int i = 0; i < wave.lanes; ++i) {
    const uint32_t select = -static_cast<uint32_t>(mask >> i & 1);
    result[i] = (a[i] & ~select) | (b[i] & select);
  }
  // What is not chosen may be undefined.
  Unset unset;
  unset.any = (((mask & ~if_set) | (~mask & ~if_clear) | mask_unset) & wave.exec()) != 0;
  if (unset.any) {
    alignas(64) uint32_t bits[2][2 * kRow];
    for (int source = 0; source < 2; ++source) SourceUnset(wave, instruction, source, type_of(source), bits[source]);
    for (int i = 0; i < wave.lanes; ++i) unset.bits[i] = mask_unset >> i & 1 ? ~0u : bits[mask >> i & 1][i];
  }
  WriteResult(wave, instruction, type, result, &unset);
}

void DefineAdd(const std::vector<const char*>& names, bool subtracts, bool reversed, bool reads_carry) {
  Semantics semantics;
  semantics.execute = AddCarry;
  semantics.source_count = reads_carry ? 3 : 2;
  semantics.sources[0] = semantics.sources[1] = semantics.result = Type::kWord;
  semantics.parameter[0] = subtracts;
  semantics.parameter[1] = reversed;
  semantics.parameter[2] = reads_carry;
  Define(names, semantics);
}

}  // namespace

void DefineCarryInstructions() {
  DefineAdd({"v_add_co_u32"}, false, false, false);
  DefineAdd({"v_sub_co_u32"}, true, false, false);
  DefineAdd({"v_subrev_co_u32"}, true, true, false);
  DefineAdd({"v_addc_co_u32", "v_add_co_ci_u32"}, false, false, true);
  DefineAdd({"v_subb_co_u32", "v_sub_co_ci_u32"}, true, false, true);
  DefineAdd({"v_subbrev_co_u32", "v_subrev_co_ci_u32"}, true, true, true);

  Semantics mad;
  mad.execute = MultiplyAdd64;
  mad.source_count = 3;
  mad.sources[0] = mad.sources[1] = Type::kWord;
  mad.sources[2] = mad.result = Type::kPair;
  Define({"v_mad_u64_u32", "v_mad_co_u64_u32"}, mad);
  mad.parameter[0] = 1;
  Define({"v_mad_i64_i32", "v_mad_co_i64_i32"}, mad);

  Semantics division;
  division.source_count = 3;
  for (Type& type : division.sources) type = Type::kFloat;
  division.result = Type::kFloat;
  division.execute = DivScale;
  Define({"v_div_scale_f32"}, division);
  division.execute = DivFmas;
  Define({"v_div_fmas_f32"}, division);

  Semantics conditional;
  conditional.execute = ConditionalMask;
  conditional.source_count = 3;
  conditional.sources[0] = conditional.sources[1] = conditional.result = Type::kWord;
  Define({"v_cndmask_b32"}, conditional);
  conditional.sources[0] = conditional.sources[1] = conditional.result = Type::kHalf;
  Define({"v_cndmask_b16"}, conditional);
}

}  // namespace simulator
