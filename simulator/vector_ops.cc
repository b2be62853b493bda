// Element-wise instructions of the vector ALU.
#include <algorithm>
#include <cmath>

#include "simulator/lanes.h"

namespace simulator {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;

// Sources that say where the bits of others go.
constexpr int kFirst = 1, kSecond = 2, kThird = 4;

float ToFloat(Half half) { return HalfToFloat(half.bits); }
Half ToHalf(float value) { return {static_cast<uint16_t>(FloatToHalf(value))}; }

u32 BitMask(u32 width) { return (1u << (width & 31)) - 1; }
u32 Low24(u32 x) { return x & 0xffffff; }
i32 Signed24(i32 x) { return static_cast<i32>(static_cast<u32>(x) << 8) >> 8; }

i32 BitFieldExtract(u32 value, u32 offset, u32 width) {
  width &= 31;
  const u32 field = value >> (offset & 31) & BitMask(width);
  const u32 sign = width == 0 ? 0 : 1u << (width - 1);
  return static_cast<i32>((field ^ sign) - sign);
}

u32 ToUnsigned(float value) {
  return !(value > 0) ? 0 : value >= 4294967296.0f ? 0xffffffff : static_cast<u32>(value);
}
i32 ToSigned(float value) {
  if (IsNan(value)) return 0;
  return value >= 2147483648.0f ? 0x7fffffff : value < -2147483648.0f ? static_cast<i32>(0x80000000) : static_cast<i32>(value);
}

// The hardware's exp, log and the like flush subnormals.
float Flushed(float value) { return IsSubnormal(value) ? std::copysign(0.0f, value) : value; }

u32 Permute(u32 high, u32 low, u32 selector) {
  const u64 bytes = u64{high} << 32 | low;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 select = selector >> (8 * i) & 0xff;
    u32 byte;
    if (select < 8) {
      byte = static_cast<u32>(bytes >> (8 * select)) & 0xff;
    } else if (select < 12) {  // the sign of one of the four halves
      byte = bytes >> (16 * (select - 8) + 15) & 1 ? 0xff : 0;
    } else {
      byte = select == 12 ? 0 : 0xff;
    }
    result |= byte << (8 * i);
  }
  return result;
}

u32 ReverseBits(u32 x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(x);
}

float DivFixup(float quotient, float denominator, float numerator) {
  const bool negative = std::signbit(denominator) != std::signbit(numerator);
  const auto with_sign = [negative](float magnitude) { return negative ? -magnitude : magnitude; };
  if (IsNan(numerator)) return numerator;
  if (IsNan(denominator)) return denominator;
  if (denominator == 0 && numerator == 0) return Float(0xffc00000);
  if (std::isinf(denominator) && std::isinf(numerator)) return Float(0xffc00000);
  if (denominator == 0 || std::isinf(numerator)) return with_sign(INFINITY);
  if (std::isinf(denominator) || numerator == 0) return with_sign(0);
  if (Exponent(numerator) - Exponent(denominator) < -150) return with_sign(0);
  return with_sign(std::fabs(quotient));
}

void DefineIntegers() {
  DefineBits({"v_mov_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32"}, [](u32 a) { return a; });
  DefineBits({"v_mov_b64"}, [](u64 a) { return a; });
  DefineBits({"v_not_b32"}, [](u32 a) { return ~a; });
  DefineBits({"v_bfrev_b32"}, [](u32 a) { return ReverseBits(a); });
  DefineLanes({"v_ffbh_u32", "v_clz_i32_u32"}, [](u32 a) { return a == 0 ? ~0u : static_cast<u32>(__builtin_clz(a)); });
  DefineLanes({"v_ffbl_b32", "v_ctz_i32_b32"}, [](u32 a) { return a == 0 ? ~0u : static_cast<u32>(__builtin_ctz(a)); });
  DefineLanes({"v_bcnt_u32_b32"}, [](u32 a, u32 b) { return static_cast<u32>(__builtin_popcount(a)) + b; });

  DefineUpwards({"v_add_u32", "v_add_nc_u32", "v_add_i32", "v_add_nc_i32"}, [](u32 a, u32 b) { return a + b; });
  DefineUpwards({"v_sub_u32", "v_sub_nc_u32", "v_sub_i32", "v_sub_nc_i32"}, [](u32 a, u32 b) { return a - b; });
  DefineLanes({"v_subrev_u32", "v_subrev_nc_u32"}, [](u32 a, u32 b) { return b - a; });
  DefineBits({"v_and_b32"}, [](u32 a, u32 b) { return a & b; });
  DefineBits({"v_or_b32"}, [](u32 a, u32 b) { return a | b; });
  DefineBits({"v_xor_b32"}, [](u32 a, u32 b) { return a ^ b; });
  DefineBits({"v_xnor_b32"}, [](u32 a, u32 b) { return ~(a ^ b); });
  DefineBits({"v_lshlrev_b32"}, [](u32 a, u32 b) { return b << (a & 31); }, kFirst);
  DefineBits({"v_lshrrev_b32"}, [](u32 a, u32 b) { return b >> (a & 31); }, kFirst);
  DefineBits({"v_ashrrev_i32"}, [](u32 a, i32 b) { return b >> (a & 31); }, kFirst);
  DefineLanes({"v_max_i32"}, [](i32 a, i32 b) { return a > b ? a : b; });
  DefineLanes({"v_min_i32"}, [](i32 a, i32 b) { return a < b ? a : b; });
  DefineLanes({"v_max_u32"}, [](u32 a, u32 b) { return a > b ? a : b; });
  DefineLanes({"v_min_u32"}, [](u32 a, u32 b) { return a < b ? a : b; });
  DefineUpwards({"v_mul_lo_u32"}, [](u32 a, u32 b) { return a * b; });
  DefineLanes({"v_mul_hi_u32"}, [](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); });
  DefineLanes({"v_mul_hi_i32"}, [](i32 a, i32 b) { return static_cast<i32>(i64{a} * b >> 32); });
  DefineLanes({"v_mul_u32_u24"}, [](u32 a, u32 b) { return Low24(a) * Low24(b); });
  DefineLanes({"v_mul_i32_i24"}, [](i32 a, i32 b) { return static_cast<u32>(i64{Signed24(a)} * Signed24(b)); });
  DefineLanes({"v_mad_u32_u24"}, [](u32 a, u32 b, u32 c) { return Low24(a) * Low24(b) + c; });
  DefineLanes({"v_mad_i32_i24"}, [](i32 a, i32 b, u32 c) { return static_cast<u32>(i64{Signed24(a)} * Signed24(b)) + c; });

  DefineLanes({"v_lshl_add_u32"}, [](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; });
  DefineLanes({"v_add_lshl_u32"}, [](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); });
  DefineBits({"v_lshl_or_b32"}, [](u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; }, kSecond);
  DefineBits({"v_and_or_b32"}, [](u32 a, u32 b, u32 c) { return (a & b) | c; });
  DefineBits({"v_or3_b32"}, [](u32 a, u32 b, u32 c) { return a | b | c; });
  DefineBits({"v_xor3_b32"}, [](u32 a, u32 b, u32 c) { return a ^ b ^ c; });
  DefineUpwards({"v_add3_u32"}, [](u32 a, u32 b, u32 c) { return a + b + c; });
  DefineLanes({"v_xad_u32"}, [](u32 a, u32 b, u32 c) { return (a ^ b) + c; });
  DefineBits({"v_bfe_u32"}, [](u32 a, u32 b, u32 c) { return a >> (b & 31) & BitMask(c); }, kSecond | kThird);
  DefineBits({"v_bfe_i32"}, [](u32 a, u32 b, u32 c) { return BitFieldExtract(a, b, c); }, kSecond | kThird);
  DefineBits({"v_bfi_b32"}, [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); });
  DefineBits({"v_perm_b32"}, [](u32 a, u32 b, u32 c) { return Permute(a, b, c); }, kThird);
  DefineBits({"v_alignbit_b32"}, [](u32 a, u32 b, Half c) { return static_cast<u32>((u64{a} << 32 | b) >> (c.bits & 31)); }, kThird);
  DefineBits({"v_alignbyte_b32"}, [](u32 a, u32 b, Half c) { return static_cast<u32>((u64{a} << 32 | b) >> (8 * (c.bits & 3))); }, kThird);
  DefineLanes({"v_max3_i32"}, [](i32 a, i32 b, i32 c) { return std::max(std::max(a, b), c); });
  DefineLanes({"v_min3_i32"}, [](i32 a, i32 b, i32 c) { return std::min(std::min(a, b), c); });
  DefineLanes({"v_max3_u32"}, [](u32 a, u32 b, u32 c) { return std::max(std::max(a, b), c); });
  DefineLanes({"v_min3_u32"}, [](u32 a, u32 b, u32 c) { return std::min(std::min(a, b), c); });

  DefineBits({"v_lshlrev_b64"}, [](u32 a, u64 b) { return b << (a & 63); }, kFirst);
  DefineBits({"v_lshrrev_b64"}, [](u32 a, u64 b) { return b >> (a & 63); }, kFirst);
  DefineBits({"v_ashrrev_i64"}, [](u32 a, i64 b) { return b >> (a & 63); }, kFirst);
  DefineUpwards({"v_lshl_add_u64"}, [](u64 a, u32 b, u64 c) { return (a << (b & 63)) + c; }, kSecond);

  DefineBits({"v_lshlrev_b16"}, [](Half a, Half b) { return Half{static_cast<uint16_t>(b.bits << (a.bits & 15))}; }, kFirst);
  DefineBits({"v_lshrrev_b16"}, [](Half a, Half b) { return Half{static_cast<uint16_t>(b.bits >> (a.bits & 15))}; }, kFirst);
  DefineBits({"v_ashrrev_i16"}, [](Half a, Half b) { return Half{static_cast<uint16_t>(static_cast<int16_t>(b.bits) >> (a.bits & 15))}; }, kFirst);
  DefineLanes({"v_add_u16", "v_add_nc_u16"}, [](Half a, Half b) { return Half{static_cast<uint16_t>(a.bits + b.bits)}; });
  DefineLanes({"v_sub_u16", "v_sub_nc_u16"}, [](Half a, Half b) { return Half{static_cast<uint16_t>(a.bits - b.bits)}; });
  DefineLanes({"v_mul_lo_u16"}, [](Half a, Half b) { return Half{static_cast<uint16_t>(u32{a.bits} * b.bits)}; });
  DefineBits({"v_and_b16"}, [](Half a, Half b) { return Half{static_cast<uint16_t>(a.bits & b.bits)}; });
  DefineBits({"v_or_b16"}, [](Half a, Half b) { return Half{static_cast<uint16_t>(a.bits | b.bits)}; });
  DefineBits({"v_xor_b16"}, [](Half a, Half b) { return Half{static_cast<uint16_t>(a.bits ^ b.bits)}; });
  DefineBits({"v_mov_b16"}, [](Half a) { return a; });
}

void DefineFloats() {
  DefineLanes({"v_add_f32"}, [](float a, float b) { return a + b; });
  DefineLanes({"v_sub_f32"}, [](float a, float b) { return a - b; });
  DefineLanes({"v_subrev_f32"}, [](float a, float b) { return b - a; });
  DefineLanes({"v_mul_f32"}, [](float a, float b) { return a * b; });
  DefineLanes({"v_mul_legacy_f32", "v_mul_dx9_zero_f32"}, [](float a, float b) { return a == 0 || b == 0 ? 0.0f : a * b; });
  DefineLanes({"v_max_f32", "v_max_num_f32"}, [](float a, float b) { return MaxNum(a, b); });
  DefineLanes({"v_min_f32", "v_min_num_f32"}, [](float a, float b) { return MinNum(a, b); });
  DefineLanes({"v_maximum_f32"}, [](float a, float b) { return Maximum(a, b); });
  DefineLanes({"v_minimum_f32"}, [](float a, float b) { return Minimum(a, b); });
  DefineLanes({"v_max3_f32", "v_max3_num_f32"}, [](float a, float b, float c) { return MaxNum(MaxNum(a, b), c); });
  DefineLanes({"v_min3_f32", "v_min3_num_f32"}, [](float a, float b, float c) { return MinNum(MinNum(a, b), c); });
  DefineLanes({"v_maximum3_f32"}, [](float a, float b, float c) { return Maximum(Maximum(a, b), c); });
  DefineLanes({"v_minimum3_f32"}, [](float a, float b, float c) { return Minimum(Minimum(a, b), c); });
  DefineLanes({"v_maxmin_f32", "v_maxmin_num_f32"}, [](float a, float b, float c) { return MinNum(MaxNum(a, b), c); });
  DefineLanes({"v_minmax_f32", "v_minmax_num_f32"}, [](float a, float b, float c) { return MaxNum(MinNum(a, b), c); });
  DefineLanes({"v_med3_f32", "v_med3_num_f32"}, [](float a, float b, float c) {
    const float smallest = MinNum(MinNum(a, b), c);
    return IsNan(a) || IsNan(b) || IsNan(c) ? smallest : MaxNum(MinNum(a, b), MinNum(MaxNum(a, b), c));
  });
  DefineLanes({"v_fma_f32"}, [](float a, float b, float c) { return Fma(a, b, c); });
  DefineAccumulating({"v_fmac_f32"}, [](float a, float b, float c) { return Fma(a, b, c); });
  // The decoder puts the literal where it multiplies or is added.
  DefineLanes({"v_fmaak_f32", "v_fmamk_f32"}, [](float a, float b, float c) { return Fma(a, b, c); });
  DefineLanes({"v_div_fixup_f32"}, [](float a, float b, float c) { return DivFixup(a, b, c); });
  DefineLanes({"v_exp_f32"}, [](float a) { return Flushed(std::exp2(Flushed(a))); });
  DefineLanes({"v_log_f32"}, [](float a) { return std::log2(Flushed(a)); });
  DefineLanes({"v_rcp_f32", "v_rcp_iflag_f32"}, [](float a) { return Flushed(1.0f / Flushed(a)); });
  DefineLanes({"v_rsq_f32"}, [](float a) { return 1.0f / std::sqrt(Flushed(a)); });
  DefineLanes({"v_sqrt_f32"}, [](float a) { return std::sqrt(Flushed(a)); });
  DefineLanes({"v_trunc_f32"}, [](float a) { return std::trunc(a); });
  DefineLanes({"v_floor_f32"}, [](float a) { return std::floor(a); });
  DefineLanes({"v_ceil_f32"}, [](float a) { return std::ceil(a); });
  DefineLanes({"v_rndne_f32"}, [](float a) { return std::nearbyint(a); });
  DefineLanes({"v_fract_f32"}, [](float a) { return std::isfinite(a) ? std::min(a - std::floor(a), 0x1.fffffep-1f) : NAN; });
  DefineLanes({"v_ldexp_f32"}, [](float a, i32 b) { return std::ldexp(a, b < -300 ? -300 : b > 300 ? 300 : b); });

  DefineLanes({"v_add_f16"}, [](Half a, Half b) { return ToHalf(ToFloat(a) + ToFloat(b)); });
  DefineLanes({"v_sub_f16"}, [](Half a, Half b) { return ToHalf(ToFloat(a) - ToFloat(b)); });
  DefineLanes({"v_mul_f16"}, [](Half a, Half b) { return ToHalf(ToFloat(a) * ToFloat(b)); });
  DefineLanes({"v_max_f16", "v_max_num_f16"}, [](Half a, Half b) { return ToHalf(MaxNum(ToFloat(a), ToFloat(b))); });
  DefineLanes({"v_min_f16", "v_min_num_f16"}, [](Half a, Half b) { return ToHalf(MinNum(ToFloat(a), ToFloat(b))); });
}

// Two products of halves and a sum, each rounded once.
float Dot2(u32 a, u32 b, float c) {
  const float low = Fma(HalfToFloat(a & 0xffff), HalfToFloat(b & 0xffff), c);
  return Fma(HalfToFloat(a >> 16), HalfToFloat(b >> 16), low);
}

void DefineConversions() {
  DefineLanes({"v_cvt_f32_i32"}, [](i32 a) { return static_cast<float>(a); });
  DefineLanes({"v_cvt_f32_u32"}, [](u32 a) { return static_cast<float>(a); });
  DefineLanes({"v_cvt_i32_f32"}, [](float a) { return ToSigned(a); });
  DefineLanes({"v_cvt_u32_f32"}, [](float a) { return ToUnsigned(a); });
  DefineLanes({"v_cvt_f16_f32"}, [](float a) { return ToHalf(a); });
  DefineLanes({"v_cvt_f32_f16"}, [](Half a) { return ToFloat(a); });
  DefineLanes({"v_cvt_f32_ubyte0"}, [](u32 a) { return static_cast<float>(a & 0xff); });
  DefineLanes({"v_cvt_pk_f16_f32"}, [](float a, float b) { return FloatToHalf(a) | FloatToHalf(b) << 16; });
  DefineLanes({"v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"},
              [](float a, float b) { return FloatToHalfTowardsZero(a) | FloatToHalfTowardsZero(b) << 16; });
  DefineLanes({"v_cvt_pk_bf16_f32"}, [](float a, float b) { return FloatToBfloat(a) | FloatToBfloat(b) << 16; });
  DefineAccumulating({"v_dot2acc_f32_f16"}, [](u32 a, u32 b, float c) { return Dot2(a, b, c); });
  DefineLanes({"v_dot2_f32_f16"}, [](u32 a, u32 b, float c) { return Dot2(a, b, c); });
  DefineBits({"v_pack_b32_f16"}, [](Half a, Half b) { return a.bits | u32{b.bits} << 16; });
}

// The instruction's immediate is a truth table of three inputs.
void BitOp3(Wave& wave, const Instruction& instruction) {
  alignas(64) uint32_t room[3][2 * kRow], result[2 * kRow] = {};
  const Type type = instruction.semantics->result;
  uint64_t defined = kAllLanes;
  const uint32_t* rows[3];
  for (int i = 0; i < 3; ++i) rows[i] = SourceRows(wave, instruction, i, type, room[i], &defined);
  for (int bit = 0; bit < 8; ++bit) {
    if ((instruction.immediate() >> bit & 1) == 0) continue;
    const u32 a = bit & 4 ? 0 : ~0u, b = bit & 2 ? 0 : ~0u, c = bit & 1 ? 0 : ~0u;
    for (int i = 0; i < wave.lanes; ++i) result[i] |= (rows[0][i] ^ a) & (rows[1][i] ^ b) & (rows[2][i] ^ c);
  }
  if (type == Type::kHalf) {
    for (int i = 0; i < wave.lanes; ++i) result[i] &= 0xffff;
  }
  WriteResult(wave, instruction, type, result, defined);
}

}  // namespace

void DefineVectorInstructions() {
  DefineIntegers();
  DefineFloats();
  DefineConversions();
  Semantics bitop;
  bitop.execute = BitOp3;
  bitop.source_count = 3;
  for (Type& type : bitop.sources) type = Type::kWord;
  bitop.result = Type::kWord;
  Define({"v_bitop3_b32"}, bitop);
  for (Type& type : bitop.sources) type = Type::kHalf;
  bitop.result = Type::kHalf;
  Define({"v_bitop3_b16"}, bitop);
  Semantics nothing;
  nothing.execute = [](Wave&, const Instruction&) {};
  Define({"v_nop"}, nothing);
}

}  // namespace simulator
