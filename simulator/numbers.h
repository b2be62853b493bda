// Number formats and the rounding of the machine, written so that loops over lanes vectorise.
#ifndef AOTRITON_SIMULATOR_NUMBERS_H_
#define AOTRITON_SIMULATOR_NUMBERS_H_

#include <cstdint>
#include <cstring>

namespace simulator {

template <typename To, typename From>
inline To BitCast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

inline uint32_t Bits(float f) { return BitCast<uint32_t>(f); }
inline float Float(uint32_t bits) { return BitCast<float>(bits); }
inline bool IsNan(float f) { return f != f; }

inline float HalfToFloat(uint32_t half) {
  // The exponent is moved by a multiplication, which also gets subnormals right.
  const float moved = Float((half & 0x7fff) << 13) * 0x1p112f;
  const uint32_t special = (half & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
  return Float(Bits(moved) | special | (half & 0x8000) << 16);
}

// Rounds to nearest even.
inline uint32_t FloatToHalf(float f) {
  const uint32_t sign = Bits(f) >> 16 & 0x8000;
  const uint32_t x = Bits(f) & 0x7fffffff;
  const uint32_t normal = (x - (112u << 23) + 0xfff + (x >> 13 & 1)) >> 13;
  // One half has as unit in the last place the smallest subnormal.
  const uint32_t subnormal = Bits(Float(x) + 0.5f) - 0x3f000000;
  const uint32_t finite = x < 0x38800000 ? subnormal : normal;
  const uint32_t large = x > 0x7f800000 ? 0x7e00 : 0x7c00;
  return sign | (x >= 0x477ff000 ? large : finite);
}

inline uint32_t FloatToHalfTowardsZero(float f) {
  const uint32_t sign = Bits(f) >> 16 & 0x8000;
  const uint32_t x = Bits(f) & 0x7fffffff;
  if (x > 0x7f800000) return sign | 0x7e00;
  if (x == 0x7f800000) return sign | 0x7c00;
  if (x >= 0x47800000) return sign | 0x7bff;
  if (x >= 0x38800000) return sign | (x - (112u << 23)) >> 13;
  return sign | static_cast<uint32_t>(Float(x) * 0x1p24f);
}

inline float BfloatToFloat(uint32_t bfloat) { return Float(bfloat << 16); }

inline uint32_t FloatToBfloat(float f) {
  const uint32_t x = Bits(f);
  const uint32_t rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
  return IsNan(f) ? x >> 16 | 0x40 : rounded;
}

// a b + c, rounded to odd in double, which has bits enough that to round it again is to round once.
inline double FmaToOdd(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;
  const double sum = product + c;
  const double moved = sum - product;
  const double error = (product - (sum - moved)) + (c - moved);
  const auto bits = BitCast<int64_t>(sum);
  const int64_t towards = (error > 0) == (sum > 0) ? 1 : -1;
  const bool inexact = error < 0 || error > 0;
  return BitCast<double>(bits + (inexact && (bits & 1) == 0 ? towards : 0));
}

inline float Fma(float a, float b, float c) { return static_cast<float>(FmaToOdd(a, b, c)); }

// Of numbers that were 16 bits, to 16 bits.
inline uint32_t FmaToHalf(float a, float b, float c) {
  const double sum = FmaToOdd(a, b, c);
  const auto rounded = static_cast<float>(sum);
  // The float next to the sum whose last bit is 1, if none is the sum itself.
  const int towards = (sum > rounded) == (sum > 0) ? 1 : -1;
  const bool inexact = rounded < sum || rounded > sum;
  return FloatToHalf(Float(Bits(rounded) + static_cast<uint32_t>(inexact && (Bits(rounded) & 1) == 0 ? towards : 0)));
}

// The number, not the NaN, if there is one (IEEE 754-2008 maxNum).
inline float MaxNum(float a, float b) {
  const float larger = a > b || (a == b && (Bits(a) >> 31) == 0) ? a : b;
  return IsNan(a) ? b : IsNan(b) ? a : larger;
}
inline float MinNum(float a, float b) {
  const float smaller = a < b || (a == b && (Bits(a) >> 31) != 0) ? a : b;
  return IsNan(a) ? b : IsNan(b) ? a : smaller;
}

// NaN if there is one (IEEE 754-2019 maximum).
inline float Maximum(float a, float b) { return IsNan(a) ? a : IsNan(b) ? b : MaxNum(a, b); }
inline float Minimum(float a, float b) { return IsNan(a) ? a : IsNan(b) ? b : MinNum(a, b); }

inline int Exponent(float f) { return static_cast<int>(Bits(f) >> 23 & 0xff); }
inline bool IsSubnormal(float f) { return Exponent(f) == 0 && (Bits(f) << 1) != 0; }

}  // namespace simulator

#endif
