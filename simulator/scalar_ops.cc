// The scalar ALU.
#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>

#include "simulator/lanes.h"
#include "simulator/wave.h"

namespace simulator {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

// What an instruction of 32 or 64 bits gives, and whether that changes scc.
template <typename T>
struct Result {
  T value;
  bool sets_scc = false, scc = false;
};

template <typename T>
Result<T> Plain(T value) { return {value}; }
template <typename T>
Result<T> WithScc(T value, bool scc) { return {value, true, scc}; }
template <typename T>
Result<T> NonZero(T value) { return {value, true, value != 0}; }

template <typename T>
T Read(const Wave& wave, const Operand& operand) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(wave.Scalar64(operand, std::is_signed_v<T> ? Type::kSignedPair : Type::kPair));
  } else {
    return static_cast<T>(wave.Scalar(operand));
  }
}

template <typename T>
std::make_unsigned_t<T> UnsetBits(const Wave& wave, const Operand& operand) {
  if constexpr (sizeof(T) == 8) {
    return wave.Scalar64Unset(operand);
  } else {
    return wave.ScalarUnset(operand);
  }
}

// Of a result whose bits are made of single bits of a and b: what changes with those that have no value, has none.
template <typename R, typename A, typename B, typename F>
std::make_unsigned_t<R> Changes(A a, std::make_unsigned_t<A> a_unset, B b, std::make_unsigned_t<B> b_unset, const F& value) {
  using U = std::make_unsigned_t<R>;
  const A a_set = static_cast<A>(a | a_unset), a_clear = static_cast<A>(a & ~a_unset);
  const B b_set = static_cast<B>(b | b_unset), b_clear = static_cast<B>(b & ~b_unset);
  const U first = static_cast<U>(value(a_clear, b_clear));
  return (first ^ static_cast<U>(value(a_set, b_clear))) | (first ^ static_cast<U>(value(a_clear, b_set))) | (first ^ static_cast<U>(value(a_set, b_set)));
}

template <typename T>
void Write(Wave& wave, const Instruction& instruction, const Result<T>& result, std::make_unsigned_t<T> unset) {
  const auto value = static_cast<std::make_unsigned_t<T>>(result.value);
  // Where single bits count, scc says that one is set.
  const bool scc_defined = unset == 0 || (value & ~unset) != 0;
  if (result.sets_scc) wave.SetScc(result.scc, scc_defined);
  if constexpr (sizeof(T) == 8) {
    wave.SetScalar64(instruction.destination, value, unset);
  } else {
    wave.SetScalar(instruction.destination, value, unset);
  }
}

template <typename R, typename A, typename B, typename F>
void RunBinary(Wave& wave, const Instruction& instruction, A a, B b, const F& function) {
  const Semantics& semantics = *instruction.semantics;
  std::make_unsigned_t<R> unset = 0;
  if (!wave.scalar_read_defined()) {
    const auto a_unset = UnsetBits<A>(wave, instruction.source[0]);
    const auto b_unset = semantics.source_count < 2 ? 0 : UnsetBits<B>(wave, instruction.source[1]);
    const int missing = (a_unset != 0 ? 1 : 0) | (b_unset != 0 ? 2 : 0) | (wave.scc_defined() ? 0 : 4);
    const bool single = semantics.spread == Spread::kBits && (missing & semantics.controls) == 0;
    unset = single ? Changes<R>(a, a_unset, b, b_unset, [&](A x, B y) { return function(x, y).value; }) : static_cast<std::make_unsigned_t<R>>(~u64{0});
  }
  Write(wave, instruction, function(a, b), unset);
}

template <typename F, typename R, typename A>
void Run(Result<R> (*)(A), Wave& wave, const Instruction& instruction) {
  RunBinary<R>(wave, instruction, Read<A>(wave, instruction.source[0]), u32{0}, [](A a, u32) { return Instance<F>()(a); });
}
template <typename F, typename R, typename A, typename B>
void Run(Result<R> (*)(A, B), Wave& wave, const Instruction& instruction) {
  const A a = Read<A>(wave, instruction.source[0]);
  RunBinary<R>(wave, instruction, a, Read<B>(wave, instruction.source[1]), Instance<F>());
}
// The third argument is scc.
template <typename F, typename R, typename A, typename B>
void Run(Result<R> (*)(A, B, bool), Wave& wave, const Instruction& instruction) {
  const A a = Read<A>(wave, instruction.source[0]);
  const B b = Read<B>(wave, instruction.source[1]);
  const bool scc = wave.scc();
  RunBinary<R>(wave, instruction, a, b, [scc](A x, B y) { return Instance<F>()(x, y, scc); });
}

template <typename F>
void DefineScalar(const std::vector<const char*>& names, F, int sources, Spread spread = Spread::kWhole, int controls = 0) {
  Semantics semantics;
  semantics.execute = [](Wave& wave, const Instruction& instruction) {
    wave.ClearScalarRead();
    Run<F>(decltype(+std::declval<F>())(), wave, instruction);
  };
  semantics.source_count = sources;
  semantics.spread = spread;
  semantics.controls = controls;
  Define(names, semantics);
}
template <typename F>
void DefineUnary(const std::vector<const char*>& names, F function) {
  DefineScalar(names, function, 1);
}
template <typename F>
void DefineBinary(const std::vector<const char*>& names, F function) {
  DefineScalar(names, function, 2);
}
// Each bit of the result is made of at most one of each source; `controls` say which: sources, and 4 for scc.
template <typename F>
void DefineUnaryBits(const std::vector<const char*>& names, F function) {
  DefineScalar(names, function, 1, Spread::kBits);
}
constexpr int kShift = 2, kScc = 4;  // controls: the second source; scc
template <typename F>
void DefineBits(const std::vector<const char*>& names, F function, int controls = 0) {
  DefineScalar(names, function, 2, Spread::kBits, controls);
}

bool AddOverflows(u32 a, u32 b, u32 sum) { return ((~(a ^ b) & (a ^ sum)) >> 31) != 0; }
bool SubOverflows(u32 a, u32 b, u32 difference) { return (((a ^ b) & (a ^ difference)) >> 31) != 0; }

u64 Field(u64 value, u32 control, int bits) {
  const u32 offset = control & static_cast<u32>(bits - 1), width = control >> 16 & 0x7f;
  const u64 shifted = value >> offset;
  return width >= 64 ? shifted : shifted & ((u64{1} << width) - 1);
}
i64 SignedField(u64 value, u32 control, int bits) {
  const u32 width = std::min<u32>(control >> 16 & 0x7f, static_cast<u32>(bits));
  if (width == 0) return 0;
  return static_cast<i64>(Field(value, control, bits) << (64 - width)) >> (64 - width);
}

void DefineArithmetic() {
  DefineBinary({"s_add_u32", "s_add_co_u32"}, [](u32 a, u32 b) { return WithScc(a + b, a + b < a); });
  DefineBinary({"s_sub_u32", "s_sub_co_u32"}, [](u32 a, u32 b) { return WithScc(a - b, a < b); });
  DefineBinary({"s_add_i32", "s_add_co_i32"}, [](u32 a, u32 b) { return WithScc(a + b, AddOverflows(a, b, a + b)); });
  DefineBinary({"s_sub_i32", "s_sub_co_i32"}, [](u32 a, u32 b) { return WithScc(a - b, SubOverflows(a, b, a - b)); });
  DefineBinary({"s_addc_u32", "s_add_co_ci_u32"}, [](u32 a, u32 b, bool carry) {
    const u64 sum = u64{a} + b + carry;
    return WithScc(static_cast<u32>(sum), sum >> 32 != 0);
  });
  DefineBinary({"s_subb_u32", "s_sub_co_ci_u32"}, [](u32 a, u32 b, bool carry) {
    const u64 difference = u64{a} - b - carry;
    return WithScc(static_cast<u32>(difference), difference >> 32 != 0);
  });
  DefineBinary({"s_min_i32"}, [](i32 a, i32 b) { return WithScc(std::min(a, b), a < b); });
  DefineBinary({"s_min_u32"}, [](u32 a, u32 b) { return WithScc(std::min(a, b), a < b); });
  DefineBinary({"s_max_i32"}, [](i32 a, i32 b) { return WithScc(std::max(a, b), a >= b); });
  DefineBinary({"s_max_u32"}, [](u32 a, u32 b) { return WithScc(std::max(a, b), a >= b); });
  DefineBinary({"s_mul_i32"}, [](u32 a, u32 b) { return Plain(a * b); });
  DefineBinary({"s_mul_hi_u32"}, [](u32 a, u32 b) { return Plain(static_cast<u32>(u64{a} * b >> 32)); });
  DefineBinary({"s_mul_hi_i32"}, [](i32 a, i32 b) { return Plain(static_cast<i32>(i64{a} * b >> 32)); });
  DefineBinary({"s_lshl1_add_u32"}, [](u32 a, u32 b) { return WithScc((a << 1) + b, ((u64{a} << 1) + b) >> 32 != 0); });
  DefineBinary({"s_lshl2_add_u32"}, [](u32 a, u32 b) { return WithScc((a << 2) + b, ((u64{a} << 2) + b) >> 32 != 0); });
  DefineBinary({"s_lshl3_add_u32"}, [](u32 a, u32 b) { return WithScc((a << 3) + b, ((u64{a} << 3) + b) >> 32 != 0); });
  DefineBinary({"s_lshl4_add_u32"}, [](u32 a, u32 b) { return WithScc((a << 4) + b, ((u64{a} << 4) + b) >> 32 != 0); });
  DefineBinary({"s_add_nc_u64", "s_add_u64"}, [](u64 a, u64 b) { return Plain(a + b); });
  DefineBinary({"s_sub_nc_u64", "s_sub_u64"}, [](u64 a, u64 b) { return Plain(a - b); });
  DefineBinary({"s_mul_u64"}, [](u64 a, u64 b) { return Plain(a * b); });
  DefineBits({"s_cselect_b32"}, [](u32 a, u32 b, bool scc) { return Plain(scc ? a : b); }, kScc);
  DefineBits({"s_cselect_b64"}, [](u64 a, u64 b, bool scc) { return Plain(scc ? a : b); }, kScc);
  // The immediate is the second source; s_addk and s_mulk read their destination.
  DefineUnaryBits({"s_movk_i32"}, [](u32 a) { return Plain(a); });
  DefineBinary({"s_addk_i32", "s_addk_co_i32"}, [](u32 a, u32 b) { return WithScc(a + b, AddOverflows(a, b, a + b)); });
  DefineBinary({"s_mulk_i32"}, [](u32 a, u32 b) { return Plain(a * b); });
}

void DefineBitwise() {
  DefineBits({"s_and_b32"}, [](u32 a, u32 b) { return NonZero(a & b); });
  DefineBits({"s_and_b64"}, [](u64 a, u64 b) { return NonZero(a & b); });
  DefineBits({"s_or_b32"}, [](u32 a, u32 b) { return NonZero(a | b); });
  DefineBits({"s_or_b64"}, [](u64 a, u64 b) { return NonZero(a | b); });
  DefineBits({"s_xor_b32"}, [](u32 a, u32 b) { return NonZero(a ^ b); });
  DefineBits({"s_xor_b64"}, [](u64 a, u64 b) { return NonZero(a ^ b); });
  DefineBits({"s_andn2_b32", "s_and_not1_b32"}, [](u32 a, u32 b) { return NonZero(a & ~b); });
  DefineBits({"s_andn2_b64", "s_and_not1_b64"}, [](u64 a, u64 b) { return NonZero(a & ~b); });
  DefineBits({"s_orn2_b32", "s_or_not1_b32"}, [](u32 a, u32 b) { return NonZero(a | ~b); });
  DefineBits({"s_orn2_b64", "s_or_not1_b64"}, [](u64 a, u64 b) { return NonZero(a | ~b); });
  DefineBits({"s_nand_b64"}, [](u64 a, u64 b) { return NonZero(~(a & b)); });
  DefineBits({"s_nor_b64"}, [](u64 a, u64 b) { return NonZero(~(a | b)); });
  DefineBits({"s_xnor_b64"}, [](u64 a, u64 b) { return NonZero(~(a ^ b)); });
  DefineBits({"s_xnor_b32"}, [](u32 a, u32 b) { return NonZero(~(a ^ b)); });
  DefineBits({"s_lshl_b32"}, [](u32 a, u32 b) { return NonZero(a << (b & 31)); }, kShift);
  DefineBits({"s_lshl_b64"}, [](u64 a, u32 b) { return NonZero(a << (b & 63)); }, kShift);
  DefineBits({"s_lshr_b32"}, [](u32 a, u32 b) { return NonZero(a >> (b & 31)); }, kShift);
  DefineBits({"s_lshr_b64"}, [](u64 a, u32 b) { return NonZero(a >> (b & 63)); }, kShift);
  DefineBits({"s_ashr_i32"}, [](i32 a, u32 b) { return NonZero(a >> (b & 31)); }, kShift);
  DefineBits({"s_ashr_i64"}, [](i64 a, u32 b) { return NonZero(a >> (b & 63)); }, kShift);
  DefineBinary({"s_bfm_b32"}, [](u32 a, u32 b) { return Plain(((1u << (a & 31)) - 1) << (b & 31)); });
  DefineBits({"s_bfe_u32"}, [](u32 a, u32 b) { return NonZero(static_cast<u32>(Field(a, b, 32))); }, kShift);
  DefineBits({"s_bfe_i32"}, [](u32 a, u32 b) { return NonZero(static_cast<u32>(SignedField(a, b, 32))); }, kShift);
  DefineBits({"s_bfe_u64"}, [](u64 a, u32 b) { return NonZero(Field(a, b, 64)); }, kShift);
  DefineBits({"s_bfe_i64"}, [](i64 a, u32 b) { return NonZero(SignedField(static_cast<u64>(a), b, 64)); }, kShift);
  DefineBits({"s_pack_ll_b32_b16"}, [](u32 a, u32 b) { return Plain((a & 0xffff) | b << 16); });
  DefineBits({"s_pack_lh_b32_b16"}, [](u32 a, u32 b) { return Plain((a & 0xffff) | (b & 0xffff0000)); });
  DefineBits({"s_pack_hh_b32_b16"}, [](u32 a, u32 b) { return Plain(a >> 16 | (b & 0xffff0000)); });
  DefineUnaryBits({"s_mov_b32"}, [](u32 a) { return Plain(a); });
  DefineUnaryBits({"s_mov_b64"}, [](u64 a) { return Plain(a); });
  DefineUnaryBits({"s_not_b32"}, [](u32 a) { return NonZero(~a); });
  DefineUnaryBits({"s_not_b64"}, [](u64 a) { return NonZero(~a); });
  DefineUnary({"s_bcnt1_i32_b32"}, [](u32 a) { return NonZero(static_cast<u32>(__builtin_popcount(a))); });
  DefineUnary({"s_bcnt1_i32_b64"}, [](u64 a) { return NonZero(static_cast<u32>(__builtin_popcountll(a))); });
  DefineUnary({"s_ff1_i32_b32", "s_ctz_i32_b32"}, [](u32 a) { return Plain(a == 0 ? ~0u : static_cast<u32>(__builtin_ctz(a))); });
  DefineUnary({"s_ff1_i32_b64", "s_ctz_i32_b64"}, [](u64 a) { return Plain(a == 0 ? ~0u : static_cast<u32>(__builtin_ctzll(a))); });
  DefineUnary({"s_flbit_i32_b32", "s_clz_i32_u32"}, [](u32 a) { return Plain(a == 0 ? ~0u : static_cast<u32>(__builtin_clz(a))); });
  DefineUnary({"s_abs_i32"}, [](u32 a) { return NonZero(a >> 31 != 0 ? 0 - a : a); });
  DefineUnaryBits({"s_sext_i32_i8"}, [](u32 a) { return Plain(i32{static_cast<int8_t>(a)}); });
  DefineUnaryBits({"s_sext_i32_i16"}, [](u32 a) { return Plain(i32{static_cast<int16_t>(a)}); });
}

// s_bitset reads its destination.
template <bool kSet>
void BitSet(Wave& wave, const Instruction& instruction) {
  wave.ClearScalarRead();
  const u32 bit = 1u << (wave.Scalar(instruction.source[0]) & 31);
  const u32 unset = wave.scalar_read_defined() ? wave.ScalarUnset(instruction.destination) & ~bit : ~0u;
  const u32 before = wave.Scalar(instruction.destination);
  wave.SetScalar(instruction.destination, kSet ? before | bit : before & ~bit, unset);
}

struct BitIsSet {
  bool operator()(u32 a, u32 b) const { return (a >> (b & 31) & 1) != 0; }
};
struct BitIsClear {
  bool operator()(u32 a, u32 b) const { return (a >> (b & 31) & 1) == 0; }
};

template <typename T, typename F>
void DefineComparison(const std::vector<const char*>& names, F) {
  Semantics semantics;
  semantics.execute = [](Wave& wave, const Instruction& instruction) {
    wave.ClearScalarRead();
    const T a = Read<T>(wave, instruction.source[0]), b = Read<T>(wave, instruction.source[1]);
    bool defined = wave.scalar_read_defined();
    if (!defined) {
      const auto a_unset = UnsetBits<T>(wave, instruction.source[0]), b_unset = UnsetBits<T>(wave, instruction.source[1]);
      if (std::is_same_v<F, std::equal_to<>> || std::is_same_v<F, std::not_equal_to<>>) {
        defined = ((a ^ b) & ~(a_unset | b_unset)) != 0;  // they differ in a bit that has a value in both
      } else if (std::is_same_v<F, BitIsSet> || std::is_same_v<F, BitIsClear>) {
        defined = b_unset == 0 && (a_unset >> (b & 31) & 1) == 0;
      }
    }
    wave.SetScc(F()(a, b), defined);
  };
  semantics.source_count = 2;
  Define(names, semantics);
}

void DefineComparisons() {
  DefineComparison<i32>({"s_cmp_eq_i32"}, std::equal_to<>());
  DefineComparison<i32>({"s_cmp_lg_i32"}, std::not_equal_to<>());
  DefineComparison<i32>({"s_cmp_gt_i32"}, std::greater<>());
  DefineComparison<i32>({"s_cmp_ge_i32"}, std::greater_equal<>());
  DefineComparison<i32>({"s_cmp_lt_i32"}, std::less<>());
  DefineComparison<i32>({"s_cmp_le_i32"}, std::less_equal<>());
  DefineComparison<u32>({"s_cmp_eq_u32"}, std::equal_to<>());
  DefineComparison<u32>({"s_cmp_lg_u32"}, std::not_equal_to<>());
  DefineComparison<u32>({"s_cmp_gt_u32"}, std::greater<>());
  DefineComparison<u32>({"s_cmp_ge_u32"}, std::greater_equal<>());
  DefineComparison<u32>({"s_cmp_lt_u32"}, std::less<>());
  DefineComparison<u32>({"s_cmp_le_u32"}, std::less_equal<>());
  DefineComparison<u64>({"s_cmp_eq_u64"}, std::equal_to<>());
  DefineComparison<u64>({"s_cmp_lg_u64"}, std::not_equal_to<>());
  DefineComparison<u32>({"s_bitcmp1_b32"}, BitIsSet());
  DefineComparison<u32>({"s_bitcmp0_b32"}, BitIsClear());
}

// The old exec goes to the destination, a combination of it with the source to exec.
template <int kOperation, bool k64>
void SaveExec(Wave& wave, const Instruction& instruction) {
  wave.ClearScalarRead();
  const u64 source = k64 ? wave.Scalar64(instruction.source[0]) : wave.Scalar(instruction.source[0]);
  const u64 unset = k64 ? wave.Scalar64Unset(instruction.source[0]) : wave.ScalarUnset(instruction.source[0]);
  const u64 old = wave.exec();
  const auto with = [old](u64 mask) {
    return kOperation == 0   ? mask & old
           : kOperation == 1 ? mask | old
           : kOperation == 2 ? mask ^ old
           : kOperation == 3 ? mask & ~old
           : kOperation == 4 ? ~mask & old
                             : mask | ~old;
  };
  const u64 next = with(source), undecided = (with(source | unset) ^ with(source & ~unset)) & wave.all();
  if (undecided != 0) throw Fault("an undefined scalar register decides lane ", __builtin_ctzll(undecided), " of exec");
  if (k64) {
    wave.SetScalar64(instruction.destination, old);
  } else {
    wave.SetScalar(instruction.destination, static_cast<u32>(old));
  }
  wave.SetExec(next);
  wave.SetScc(wave.exec() != 0, true);
}

template <int kOperation>
void DefineSaveExec(const std::vector<const char*>& names64, const std::vector<const char*>& names32) {
  Semantics semantics;
  semantics.source_count = 1;
  semantics.execute = SaveExec<kOperation, true>;
  Define(names64, semantics);
  semantics.execute = SaveExec<kOperation, false>;
  Define(names32, semantics);
}

// gfx11.5 and gfx12 have scalar floats.
template <typename F>
void DefineFloat(const std::vector<const char*>& names, F) {
  Semantics semantics;
  semantics.execute = [](Wave& wave, const Instruction& instruction) {
    wave.ClearScalarRead();
    const float a = Float(wave.Scalar(instruction.source[0])), b = Float(wave.Scalar(instruction.source[1]));
    wave.SetScalar(instruction.destination, Bits(F()(a, b)), wave.scalar_read_defined() ? 0 : ~0u);
  };
  semantics.source_count = 2;
  Define(names, semantics);
}
struct MaxNumber {
  float operator()(float a, float b) const { return MaxNum(a, b); }
};
struct MinNumber {
  float operator()(float a, float b) const { return MinNum(a, b); }
};

template <typename F>
void DefineFloatComparison(const std::vector<const char*>& names, F) {
  Semantics semantics;
  semantics.execute = [](Wave& wave, const Instruction& instruction) {
    wave.ClearScalarRead();
    const float a = Float(wave.Scalar(instruction.source[0])), b = Float(wave.Scalar(instruction.source[1]));
    wave.SetScc(F()(a, b), wave.scalar_read_defined());
  };
  semantics.source_count = 2;
  Define(names, semantics);
}

struct NotGreater {
  bool operator()(float a, float b) const { return !(a > b); }
};

// The destination is the third number.
void Fmac(Wave& wave, const Instruction& instruction) {
  wave.ClearScalarRead();
  const float a = Float(wave.Scalar(instruction.source[0])), b = Float(wave.Scalar(instruction.source[1]));
  const float c = Float(wave.Scalar(instruction.destination));
  wave.SetScalar(instruction.destination, Bits(Fma(a, b, c)), wave.scalar_read_defined() ? 0 : ~0u);
}

void DefineFloats() {
  DefineFloat({"s_add_f32"}, std::plus<>());
  DefineFloat({"s_sub_f32"}, std::minus<>());
  DefineFloat({"s_mul_f32"}, std::multiplies<>());
  DefineFloat({"s_max_f32", "s_max_num_f32"}, MaxNumber());
  DefineFloat({"s_min_f32", "s_min_num_f32"}, MinNumber());
  DefineUnary({"s_cvt_f32_u32"}, [](u32 a) { return Plain(Bits(static_cast<float>(a))); });
  DefineUnary({"s_cvt_f32_i32"}, [](i32 a) { return Plain(Bits(static_cast<float>(a))); });
  DefineUnary({"s_cvt_u32_f32"}, [](u32 a) {
    const float value = Float(a);
    return Plain(!(value > 0) ? 0u : value >= 4294967296.0f ? ~0u : static_cast<u32>(value));
  });
  DefineFloatComparison({"s_cmp_lt_f32"}, std::less<>());
  DefineFloatComparison({"s_cmp_eq_f32"}, std::equal_to<>());
  DefineFloatComparison({"s_cmp_le_f32"}, std::less_equal<>());
  DefineFloatComparison({"s_cmp_gt_f32"}, std::greater<>());
  DefineFloatComparison({"s_cmp_ngt_f32"}, NotGreater());
  DefineUnary({"s_floor_f32"}, [](u32 a) { return Plain(Bits(std::floor(Float(a)))); });
  DefineUnary({"s_trunc_f32"}, [](u32 a) { return Plain(Bits(std::trunc(Float(a)))); });
  Semantics fmac;
  fmac.execute = Fmac;
  fmac.source_count = 2;
  Define({"s_fmac_f32"}, fmac);
  DefineFloatComparison({"s_cmp_ge_f32"}, std::greater_equal<>());
}

}  // namespace

void DefineScalarInstructions() {
  DefineArithmetic();
  DefineBitwise();
  DefineComparisons();
  DefineFloats();
  DefineSaveExec<0>({"s_and_saveexec_b64"}, {"s_and_saveexec_b32"});
  DefineSaveExec<1>({"s_or_saveexec_b64"}, {"s_or_saveexec_b32"});
  DefineSaveExec<2>({"s_xor_saveexec_b64"}, {"s_xor_saveexec_b32"});
  DefineSaveExec<3>({"s_andn2_saveexec_b64", "s_and_not1_saveexec_b64"}, {"s_and_not1_saveexec_b32"});
  DefineSaveExec<4>({"s_andn1_saveexec_b64", "s_and_not0_saveexec_b64"}, {"s_and_not0_saveexec_b32"});
  DefineSaveExec<5>({"s_orn2_saveexec_b64", "s_or_not1_saveexec_b64"}, {"s_or_not1_saveexec_b32"});
  Semantics bitset;
  bitset.source_count = 1;
  bitset.execute = BitSet<false>;
  Define({"s_bitset0_b32"}, bitset);
  bitset.execute = BitSet<true>;
  Define({"s_bitset1_b32"}, bitset);
}

}  // namespace simulator
