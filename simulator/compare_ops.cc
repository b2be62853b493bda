// Comparisons: a bit for each active lane.
#include "simulator/lanes.h"

namespace simulator {
namespace {

uint64_t Packed(const uint32_t* rows, int lanes) {
  uint64_t mask = 0;
  for (int i = 0; i < lanes; ++i) mask |= static_cast<uint64_t>(rows[i] & 1) << i;
  return mask;
}

// The lanes for which the relation holds; in *unset those where that depends on an undefined value.
uint64_t Holds(Wave& wave, const Instruction& instruction, uint64_t* unset) {
  alignas(64) uint32_t result[2 * kRow];
  Unset of_result;
  ComputeLanes(wave, instruction, result, &of_result);
  *unset = of_result.any ? Packed(of_result.bits, wave.lanes) & wave.exec() : 0;
  return Packed(result, wave.lanes) & wave.exec();
}

void Compare(Wave& wave, const Instruction& instruction) {
  uint64_t unset;
  const uint64_t mask = Holds(wave, instruction, &unset);
  wave.SetLaneMask(instruction.scalar_destination, mask, unset);
}

// v_cmpx: the result is the new exec.
void CompareExec(Wave& wave, const Instruction& instruction) {
  uint64_t unset;
  const uint64_t mask = Holds(wave, instruction, &unset);
  wave.RequireDefined(~unset, wave.exec(), "a v_cmpx operand");
  if (wave.isa == Isa::kGfx9) wave.SetLaneMask(instruction.scalar_destination, mask, 0);
  wave.SetExec(mask);
}

std::string Name(const char* prefix, const char* relation, const char* type) {
  return std::string(prefix) + "_" + relation + "_" + type;
}

template <typename F>
void DefineRelation(const char* relation, const char* type, F function) {
  const std::string compare = Name("v_cmp", relation, type), exec = Name("v_cmpx", relation, type);
  Define({compare.c_str()}, LanesOf(function, Compare));
  Define({exec.c_str()}, LanesOf(function, CompareExec));
}

template <typename T>
void DefineIntegerRelations(const char* type) {
  DefineRelation("lt", type, [](T a, T b) { return a < b; });
  DefineRelation("eq", type, [](T a, T b) { return a == b; });
  DefineRelation("le", type, [](T a, T b) { return a <= b; });
  DefineRelation("gt", type, [](T a, T b) { return a > b; });
  DefineRelation("ne", type, [](T a, T b) { return a != b; });
  DefineRelation("ge", type, [](T a, T b) { return a >= b; });
}

void DefineFloatRelations() {
  const char* type = "f32";
  DefineRelation("lt", type, [](float a, float b) { return a < b; });
  DefineRelation("eq", type, [](float a, float b) { return a == b; });
  DefineRelation("le", type, [](float a, float b) { return a <= b; });
  DefineRelation("gt", type, [](float a, float b) { return a > b; });
  DefineRelation("lg", type, [](float a, float b) { return a < b || a > b; });
  DefineRelation("ge", type, [](float a, float b) { return a >= b; });
  DefineRelation("o", type, [](float a, float b) { return !IsNan(a) && !IsNan(b); });
  DefineRelation("u", type, [](float a, float b) { return IsNan(a) || IsNan(b); });
  DefineRelation("nge", type, [](float a, float b) { return !(a >= b); });
  DefineRelation("nlg", type, [](float a, float b) { return !(a < b || a > b); });
  DefineRelation("ngt", type, [](float a, float b) { return !(a > b); });
  DefineRelation("nle", type, [](float a, float b) { return !(a <= b); });
  DefineRelation("neq", type, [](float a, float b) { return !(a == b); });
  DefineRelation("nlt", type, [](float a, float b) { return !(a < b); });
}

template <typename T>
void DefineShortRelations(const char* type) {
  DefineRelation("lt", type, [](Half a, Half b) { return static_cast<T>(a.bits) < static_cast<T>(b.bits); });
  DefineRelation("eq", type, [](Half a, Half b) { return a.bits == b.bits; });
  DefineRelation("le", type, [](Half a, Half b) { return static_cast<T>(a.bits) <= static_cast<T>(b.bits); });
  DefineRelation("gt", type, [](Half a, Half b) { return static_cast<T>(a.bits) > static_cast<T>(b.bits); });
  DefineRelation("ne", type, [](Half a, Half b) { return a.bits != b.bits; });
  DefineRelation("ge", type, [](Half a, Half b) { return static_cast<T>(a.bits) >= static_cast<T>(b.bits); });
}

// v_cmp_class_f32: the second source has a bit for each kind of number asked for.
bool IsOfClass(float a, uint32_t kinds) {
  const uint32_t magnitude = Bits(a) & 0x7fffffff;
  const bool negative = Bits(a) >> 31 != 0;
  int kind;
  if (magnitude > 0x7f800000) {
    kind = (magnitude & 0x400000) != 0 ? 1 : 0;
  } else if (magnitude == 0x7f800000) {
    kind = negative ? 2 : 9;
  } else if (magnitude >= 0x00800000) {
    kind = negative ? 3 : 8;
  } else if (magnitude != 0) {
    kind = negative ? 4 : 7;
  } else {
    kind = negative ? 5 : 6;
  }
  return (kinds >> kind & 1) != 0;
}

}  // namespace

void DefineCompareInstructions() {
  DefineIntegerRelations<int32_t>("i32");
  DefineIntegerRelations<uint32_t>("u32");
  DefineIntegerRelations<int64_t>("i64");
  DefineIntegerRelations<uint64_t>("u64");
  DefineShortRelations<int16_t>("i16");
  DefineShortRelations<uint16_t>("u16");
  DefineFloatRelations();
  DefineRelation("class", "f32", [](float a, uint32_t b) { return IsOfClass(a, b); });
}

}  // namespace simulator
