// Constants, NaNs, signed zeros, subnormals, saturation: expected values are written from the formulas of the ISA manuals.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/simulator/machine.h"

namespace {

using simulator::Bits;
using simulator::Float;

constexpr float kInf = INFINITY;

class Numbers : public testing::Test {
 protected:
  Numbers() : machine("gfx942") {}
  void Set(int vgpr, float value) {
    machine.Set(vgpr, [value](int) { return Bits(value); });
  }
  // v3 after an instruction on v0, v1, v2.
  float Of(const std::vector<uint32_t>& words, float a, float b = 0, float c = 0) {
    Set(0, a);
    Set(1, b);
    Set(2, c);
    machine.Run(words);
    return machine.GetFloat(3, 5);
  }
  uint64_t Pair(int sgpr) { return machine.wave().Sgpr64(sgpr); }
  bool Holds(const std::vector<uint32_t>& words, float a, float b) {
    Of(words, a, b);
    const uint64_t vcc = Pair(simulator::kVccLo);
    EXPECT_TRUE(vcc == 0 || vcc == ~uint64_t{0});
    return vcc != 0;
  }
  uint32_t Scalar(const std::vector<uint32_t>& words, uint32_t a, uint32_t b) {
    machine.wave().SetSgpr(4, a);
    machine.wave().SetSgpr(5, b);
    machine.Run(words);
    return machine.wave().Sgpr(6);
  }

  Machine machine;
};

TEST_F(Numbers, LiteralsOf64Bits) {
  machine.Run({0xbe8201ff, 0x800000ff});  // s_mov_b64 s[2:3], 0x800000ff: no number, so without a sign
  EXPECT_EQ(Pair(2), 0x800000ffu);
  machine.Run({0xbe8201c3});  // s_mov_b64 s[2:3], -3
  EXPECT_EQ(Pair(2), ~uint64_t{2});
  machine.Run({0xbe8201f2});  // s_mov_b64 s[2:3], 1.0: of 64 bits
  EXPECT_EQ(Pair(2), 0x3ff0000000000000u);
  machine.Run({0x908284ff, 0x80000000});  // s_ashr_i64 s[2:3], 0x80000000, 4
  EXPECT_EQ(Pair(2), 0xfffffffff8000000u);
  machine.Set(0, [](int) { return 0u; });
  machine.Set(1, [](int) { return 0u; });
  machine.Run({0x7dc800ff, 0xfffffc18});  // v_cmp_gt_i64_e32 vcc, 0xfffffc18, v[0:1]: -1000 > 0
  EXPECT_EQ(Pair(simulator::kVccLo), 0u);
  machine.Set(1, [](int) { return 1u; });
  machine.Run({0x7dd800ff, 0xfffffc18});  // v_cmp_gt_u64_e32 vcc, 0xfffffc18, v[0:1]: 2^32 - 1000 > 2^32
  EXPECT_EQ(Pair(simulator::kVccLo), 0u);
}

TEST_F(Numbers, TheLargerAndTheSmallerIgnoreNans) {
  const std::vector<uint32_t> max = {0x16060300}, min = {0x14060300};  // v_max_f32_e32, v_min_f32_e32 v3, v0, v1
  EXPECT_EQ(Of(max, NAN, 2), 2);
  EXPECT_EQ(Of(max, 2, NAN), 2);
  EXPECT_EQ(Of(min, NAN, 2), 2);
  EXPECT_TRUE(std::isnan(Of(min, NAN, NAN)));
  EXPECT_FALSE(std::signbit(Of(max, -0.0f, 0.0f)));
  EXPECT_FALSE(std::signbit(Of(max, 0.0f, -0.0f)));
  EXPECT_TRUE(std::signbit(Of(min, 0.0f, -0.0f)));
  EXPECT_TRUE(std::signbit(Of(min, -0.0f, 0.0f)));
}

TEST_F(Numbers, TheMedianOfANanIsTheSmallest) {
  const std::vector<uint32_t> med3 = {0xd1d60003, 0x040a0300};  // v_med3_f32 v3, v0, v1, v2
  for (const auto& [a, b, c] : {std::tuple(1, 2, 3), {3, 1, 2}, {2, 3, 1}, {3, 2, 1}, {2, 2, 5}}) EXPECT_EQ(Of(med3, a, b, c), 2);
  EXPECT_EQ(Of(med3, NAN, 5, 1), 1);
  EXPECT_EQ(Of(med3, 5, NAN, 1), 1);
  EXPECT_EQ(Of(med3, 1, 5, NAN), 1);
}

TEST_F(Numbers, ComparisonsWithNans) {
  const std::vector<uint32_t> lt = {0x7c820300}, lg = {0x7c8a0300}, nlt = {0x7c9c0300}, neq = {0x7c9a0300}, o = {0x7c8e0300}, u = {0x7c900300};
  EXPECT_TRUE(Holds(lt, 1, 2));
  EXPECT_FALSE(Holds(lt, NAN, 2));
  EXPECT_TRUE(Holds(nlt, NAN, 2));
  EXPECT_FALSE(Holds(nlt, 1, 2));
  EXPECT_FALSE(Holds(lg, NAN, 2));  // less or greater
  EXPECT_TRUE(Holds(lg, 3, 2));
  EXPECT_TRUE(Holds(neq, NAN, NAN));  // not equal
  EXPECT_FALSE(Holds(neq, 0.0f, -0.0f));
  EXPECT_TRUE(Holds(u, 1, NAN));
  EXPECT_FALSE(Holds(o, 1, NAN));
  EXPECT_TRUE(Holds(o, 1, kInf));
}

TEST_F(Numbers, ConversionsSaturate) {
  const auto integer = [&](const std::vector<uint32_t>& words, float value) { return Bits(Of(words, value)); };
  const std::vector<uint32_t> to_signed = {0x7e061100}, to_unsigned = {0x7e060f00};  // v_cvt_i32_f32_e32, v_cvt_u32_f32_e32 v3, v0
  EXPECT_EQ(integer(to_signed, -1.9f), 0xffffffffu);
  EXPECT_EQ(integer(to_signed, 3e9f), 0x7fffffffu);
  EXPECT_EQ(integer(to_signed, -kInf), 0x80000000u);
  EXPECT_EQ(integer(to_signed, NAN), 0u);
  EXPECT_EQ(integer(to_unsigned, 3e9f), 3000000000u);
  EXPECT_EQ(integer(to_unsigned, 5e9f), 0xffffffffu);
  EXPECT_EQ(integer(to_unsigned, -1.0f), 0u);
  EXPECT_EQ(integer(to_unsigned, NAN), 0u);
}

TEST_F(Numbers, TranscendentalsTakeSubnormalsForZero) {
  const float tiny = 0x1p-130f;
  EXPECT_EQ(Of({0x7e064300}, tiny), -kInf);             // v_log_f32_e32 v3, v0
  EXPECT_EQ(Of({0x7e064500}, tiny), kInf);              // v_rcp_f32_e32
  EXPECT_EQ(Of({0x7e064500}, 0x1p127f), 0);             // its result too
  EXPECT_EQ(Of({0x7e064900}, tiny), kInf);              // v_rsq_f32_e32
  EXPECT_EQ(Of({0x7e064f00}, tiny), 0);                 // v_sqrt_f32_e32
  EXPECT_EQ(Of({0x7e064100}, -130), 0);                 // v_exp_f32_e32
  EXPECT_EQ(Of({0x7e064100}, -126), 0x1p-126f);
  EXPECT_TRUE(std::isnan(Of({0x7e064300}, -1)));
  EXPECT_EQ(Of({0xd1050003, 0x00020300}, tiny, 2), 2 * tiny);  // v_mul_f32_e64 v3, v0, v1: all else keeps them
}

TEST_F(Numbers, ClampAndOutputScale) {
  const std::vector<uint32_t> add = {0xd1018003, 0x00020300};  // v_add_f32_e64 v3, v0, v1 clamp
  EXPECT_EQ(Of(add, 1, 0.5f), 1);
  EXPECT_EQ(Of(add, -1, 0.5f), 0);
  EXPECT_EQ(Of(add, NAN, 0.5f), 0);
  EXPECT_EQ(Of(add, 0.25f, 0.5f), 0.75f);
  EXPECT_EQ(Of({0xd1050003, 0x18020300}, 3, 5), 7.5f);  // v_mul_f32_e64 v3, v0, v1 div:2
}

TEST_F(Numbers, Fractions) {
  const std::vector<uint32_t> fract = {0x7e063700};  // v_fract_f32_e32 v3, v0
  EXPECT_EQ(Of(fract, 2.75f), 0.75f);
  EXPECT_EQ(Of(fract, -2.75f), 0.25f);
  EXPECT_EQ(Of(fract, -0x1p-30f), 0x1.fffffep-1f);  // never 1
  EXPECT_TRUE(std::isnan(Of(fract, kInf)));
  EXPECT_TRUE(std::isnan(Of(fract, NAN)));
}

TEST_F(Numbers, PowersOfTwo) {
  machine.Set(0, [](int) { return Bits(1.5f); });
  machine.Set(1, [](int lane) { return static_cast<uint32_t>(8 * lane - 256); });
  machine.Run({0xd2880003, 0x00020300});  // v_ldexp_f32 v3, v0, v1
  for (int lane = 0; lane < 64; ++lane) {
    const double want = 1.5 * std::pow(2.0, 8 * lane - 256);
    EXPECT_EQ(machine.GetFloat(3, lane), static_cast<float>(want));
  }
}

TEST_F(Numbers, QuotientsOfTheDivisionSteps) {
  const std::vector<uint32_t> fixup = {0xd1de0003, 0x040a0300};  // v_div_fixup_f32 v3, v0, v1, v2: quotient, denominator, numerator
  EXPECT_EQ(Of(fixup, 0.5f, 2, -1), -0.5f);
  EXPECT_EQ(Of(fixup, NAN, 0, 1), kInf);
  EXPECT_EQ(Of(fixup, NAN, -0.0f, 1), -kInf);
  EXPECT_TRUE(std::isnan(Of(fixup, 1, 0, 0)));
  EXPECT_TRUE(std::isnan(Of(fixup, 1, kInf, kInf)));
  EXPECT_EQ(Of(fixup, NAN, kInf, 3), 0);
  EXPECT_EQ(Of(fixup, NAN, 3, kInf), kInf);
  EXPECT_TRUE(std::isnan(Of(fixup, 1, NAN, 3)));
}

TEST_F(Numbers, ScalarFieldsAndConditions) {
  const auto scc = [&] { return machine.wave().scc(); };
  EXPECT_EQ(Scalar({0x92860504}, 0xabcd1234, 0x0008'0004), 0x23u);        // s_bfe_u32 s6, s4, s5: 8 bits from 4
  EXPECT_TRUE(scc());
  EXPECT_EQ(Scalar({0x93060504}, 0x0000'0f00, 0x0004'0008), 0xffffffffu);  // s_bfe_i32
  EXPECT_EQ(Scalar({0x92860504}, 0xffffffff, 0x0000'0004), 0u);           // no bits
  EXPECT_FALSE(scc());
  EXPECT_EQ(Scalar({0x83060504}, 0xffffffff, 1), 0xffffffffu);            // s_min_i32: the first
  EXPECT_TRUE(scc());
  EXPECT_EQ(Scalar({0x83060504}, 1, 0xffffffff), 0xffffffffu);
  EXPECT_FALSE(scc());
  EXPECT_EQ(Scalar({0x97860504}, 0x40000000, 5), 5u);                     // s_lshl2_add_u32: carries
  EXPECT_TRUE(scc());
  Scalar({0x81060504}, 0x7fffffff, 1);                                    // s_add_i32: overflows
  EXPECT_TRUE(scc());
  Scalar({0x81060504}, 0xffffffff, 1);
  EXPECT_FALSE(scc());
  Scalar({0x80860504}, 1, 2);                                             // s_sub_u32: borrows
  EXPECT_TRUE(scc());
}

TEST_F(Numbers, TheFirstActiveLane) {
  machine.Set(0, [](int lane) { return 100u + static_cast<uint32_t>(lane); });
  machine.wave().SetExec(0xf0);
  machine.Run({0x7e0c0500});  // v_readfirstlane_b32 s6, v0
  EXPECT_EQ(machine.wave().Sgpr(6), 104u);
  machine.wave().SetExec(0);
  machine.Run({0x7e0c0500});
  EXPECT_EQ(machine.wave().Sgpr(6), 100u);
}

// The value of a half; all sums below are exact in the 64 bits of a long double.
long double HalfValue(uint32_t half) {
  const int exponent = static_cast<int>(half >> 10 & 31), mantissa = static_cast<int>(half & 1023);
  const long double magnitude = exponent == 0 ? std::ldexp(static_cast<long double>(mantissa), -24)
                                              : std::ldexp(static_cast<long double>(1024 + mantissa), exponent - 25);
  return half >> 15 != 0 ? -magnitude : magnitude;
}

TEST_F(Numbers, PackedFmaOfHalvesRoundsOnce) {
  // 45 * 91 lies halfway between two halves, and 24 bits have no room for what is taken from it.
  machine.Set(0, [](int) { return 0x51a051a0u; });
  machine.Set(1, [](int) { return 0x55b055b0u; });
  machine.Set(2, [](int) { return 0x80010001u; });
  machine.Run({0xd38e4003, 0x1c0a0300});  // v_pk_fma_f16 v3, v0, v1, v2
  EXPECT_EQ(HalfValue(machine.Get(3, 0) & 0xffff), 4096);
  EXPECT_EQ(HalfValue(machine.Get(3, 0) >> 16), 4094);
  std::mt19937 random(7);
  const auto finite = [&] { return static_cast<uint32_t>(random() % 0x7c00 | (random() & 1) << 15); };
  for (int round = 0; round < 2000; ++round) {
    // a b ends halfway between two halves now and then, and c is far below it.
    machine.Set(0, [&](int) { return (finite() & 0xbfe0) | 0x2000; });
    machine.Set(1, [&](int) { return (finite() & 0xbfff) | 0x2000; });
    machine.Set(2, [&](int) { return finite() & (round % 2 == 0 ? 0x83ff : 0xffff); });
    machine.Run({0xd38e4003, 0x1c0a0300});  // v_pk_fma_f16 v3, v0, v1, v2
    for (int lane = 0; lane < 64; ++lane) {
      const long double exact = HalfValue(machine.Get(0, lane)) * HalfValue(machine.Get(1, lane)) + HalfValue(machine.Get(2, lane));
      const uint32_t got = machine.Get(3, lane) & 0xffff;
      if (std::fabs(exact) >= 65504 || (got & 0x7fff) == 0) continue;
      const long double error = std::fabs(HalfValue(got) - exact);
      for (const uint32_t other : {got - 1, got + 1}) {
        const long double distance = std::fabs(HalfValue(other) - exact);
        ASSERT_TRUE(error < distance || (error == distance && (got & 1) == 0))
            << std::hex << machine.Get(0, lane) << " " << machine.Get(1, lane) << " " << machine.Get(2, lane) << " gives " << got;
      }
    }
  }
}

}  // namespace
