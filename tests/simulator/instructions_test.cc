// Each class of instructions alone, against references written from the formats' definitions and the ISA manuals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/simulator/machine.h"

namespace {

using simulator::Bits;
using simulator::Float;

// --- number formats, by listing all their numbers

struct Format {
  int exponent_bits, mantissa_bits;

  double Value(uint32_t bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
    const double mantissa = bits & ((1u << mantissa_bits) - 1);
    const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp(1 + std::ldexp(mantissa, -mantissa_bits), exponent - bias);
  }

  // The nearest of the positive numbers, the even one of two; what lies half a step beyond the largest is infinite.
  uint32_t Nearest(double value) const {
    const uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
    value = std::fabs(value);
    const uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
    uint32_t below = 0;
    for (uint32_t step = 1u << 15; step != 0; step /= 2) {
      if (below + step < infinity && Value(below + step) <= value) below += step;
    }
    const double low = Value(below);
    const double high = below + 1 == infinity ? 2 * low - Value(below - 1) : Value(below + 1);
    const double middle = (low + high) / 2;
    return sign | (value > middle || (value == middle && (below & 1) != 0) ? below + 1 : below);
  }
};
constexpr Format kHalf{5, 10}, kBfloat{8, 7};

std::vector<float> InterestingFloats() {
  std::vector<float> out = {0.0f, -0.0f, 1.0f, 65504.0f, 65519.996f, 65520.0f, -65536.0f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1.fffp-15f, 3e38f};
  std::mt19937 random(1);
  while (out.size() < 64 * 400) {
    const float value = Float(static_cast<uint32_t>(random()));
    if (std::isfinite(value)) out.push_back(value);
    // As many in the range of fp16, and halfway between two of its numbers.
    const float half = Float((random() & 0x8fffffff) + 0x38000000 - 0x0a000000 * (random() & 1));
    if (std::isfinite(half)) out.push_back(Float(Bits(half) & 0xfffff000));
  }
  out.resize(64 * 400);
  return out;
}

TEST(Conversions, ToHalfAndBfloatRoundToNearestEven) {
  Machine machine("gfx950");
  const std::vector<float> values = InterestingFloats();
  for (size_t i = 0; i < values.size(); i += 64) {
    machine.Set(0, [&](int lane) { return Bits(values[i + static_cast<size_t>(lane)]); });
    machine.Set(2, [&](int lane) { return Bits(-values[i + static_cast<size_t>(lane)]); });
    machine.Run({0x7e021500});              // v_cvt_f16_f32_e32 v1, v0
    machine.Run({0xd2680003, 0x00020500});  // v_cvt_pk_bf16_f32 v3, v0, v2
    for (int lane = 0; lane < 64; ++lane) {
      const float value = values[i + static_cast<size_t>(lane)];
      ASSERT_EQ(machine.Get(1, lane), kHalf.Nearest(value)) << value;
      ASSERT_EQ(machine.Get(3, lane), kBfloat.Nearest(value) | kBfloat.Nearest(-value) << 16) << value;
    }
  }
}

TEST(Conversions, FromHalfIsExact) {
  Machine machine("gfx942");
  for (uint32_t first = 0; first < 65536; first += 64) {
    machine.Set(0, [&](int lane) { return first + static_cast<uint32_t>(lane); });
    machine.Run({0x7e021700});  // v_cvt_f32_f16_e32 v1, v0
    for (int lane = 0; lane < 64; ++lane) {
      const double want = kHalf.Value(first + static_cast<uint32_t>(lane));
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(machine.GetFloat(1, lane)));
      } else {
        ASSERT_EQ(machine.GetFloat(1, lane), want);
      }
    }
  }
}

TEST(Arithmetic, FmaRoundsOnce) {
  Machine machine("gfx942");
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    // Exponents near each other, so that sums cancel and round.
    const auto number = [&](int) { return (static_cast<uint32_t>(random()) & 0x80ffffff) + ((100 + random() % 50) << 23); };
    machine.Set(0, number);
    machine.Set(2, number);
    machine.Set(4, number);
    machine.Run({0xd1cb0001, 0x04120500});  // v_fma_f32 v1, v0, v2, v4
    for (int lane = 0; lane < 64; ++lane) {
      ASSERT_EQ(machine.GetFloat(1, lane), std::fma(machine.GetFloat(0, lane), machine.GetFloat(2, lane), machine.GetFloat(4, lane)));
    }
  }
}

TEST(Arithmetic, SignsAndOutputScale) {
  Machine machine("gfx942");
  machine.Set(0, [](int) { return Bits(3.0f); });
  machine.Set(2, [](int) { return Bits(-5.0f); });
  machine.Set(4, [](int) { return Bits(1.0f); });
  machine.Run({0xd1cb0201, 0x2c120500});  // v_fma_f32 v1, -v0, |v2|, v4 mul:2
  EXPECT_EQ(machine.GetFloat(1, 7), -28.0f);
}

TEST(Arithmetic, CarriesAcrossLanes) {
  Machine machine("gfx942");
  machine.Set(0, [](int lane) { return lane % 3 == 0 ? 0xffffffffu : 5u; });
  machine.Set(1, [](int lane) { return static_cast<uint32_t>(lane); });
  machine.Run({0x32060300});  // v_add_co_u32_e32 v3, vcc, v0, v1
  machine.Run({0x38080300});  // v_addc_co_u32_e32 v4, vcc, v0, v1, vcc
  for (int lane = 0; lane < 64; ++lane) {
    const uint64_t a = lane % 3 == 0 ? 0xffffffffu : 5u, sum = a + static_cast<uint64_t>(lane);
    EXPECT_EQ(machine.Get(3, lane), static_cast<uint32_t>(sum));
    EXPECT_EQ(machine.Get(4, lane), static_cast<uint32_t>(sum + (sum >> 32)));
  }
}

TEST(Arithmetic, AFunctionOfThreeBits) {
  Machine machine("gfx950");
  machine.Set(0, [](int) { return 0xf0f0f0f0u; });
  machine.Set(1, [](int) { return 0xccccccccu; });
  machine.Set(2, [](int) { return 0xaaaaaaaau; });
  machine.Run({0xd2340103, 0x5c0a0300});  // v_bitop3_b32 v3, v0, v1, v2 bitop3:0xca
  EXPECT_EQ(machine.Get(3, 0), 0xcacacacau);
}

TEST(Arithmetic, PackedFloatsSelectTheirWords) {
  Machine machine("gfx942");
  const auto set = [&](int vgpr, float value) { machine.Set(vgpr, [value](int) { return Bits(value); }); };
  set(0, 2);
  set(1, 3);
  set(2, 5);
  set(3, 7);
  set(6, 11);
  set(7, 13);
  // v_pk_fma_f32 v[4:5], v[0:1], v[2:3], v[6:7] op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_lo:[0,1,0]
  machine.Run({0xd3b04804, 0x541a0500});
  EXPECT_EQ(machine.GetFloat(4, 0), 3 * -5 + 11);
  EXPECT_EQ(machine.GetFloat(5, 0), 2 * 7 + 13);
  machine.Run({0xd3b34804, 0x18020500});  // v_pk_mov_b32 v[4:5], v[0:1], v[2:3] op_sel:[1,0]
  EXPECT_EQ(machine.GetFloat(4, 0), 3);
  EXPECT_EQ(machine.GetFloat(5, 0), 5);
}

TEST(Arithmetic, PackedHalvesAndMixedNumbers) {
  Machine machine("gfx942");
  machine.Set(0, [](int) { return kHalf.Nearest(2) | kHalf.Nearest(3) << 16; });
  machine.Set(2, [](int) { return kHalf.Nearest(5) | kHalf.Nearest(7) << 16; });
  machine.Run({0xd3904804, 0x10020500});  // v_pk_mul_f16 v4, v0, v2 op_sel:[1,0] op_sel_hi:[0,1]
  EXPECT_EQ(machine.Get(4, 9), kHalf.Nearest(15) | kHalf.Nearest(14) << 16);
  machine.Set(2, [](int) { return Bits(0.25f); });
  machine.Set(6, [](int) { return Bits(1.0f); });
  machine.Run({0xd3a00804, 0x0c1a0500});  // v_fma_mix_f32 v4, v0, v2, v6 op_sel:[1,0,0] op_sel_hi:[1,0,0]
  EXPECT_EQ(machine.GetFloat(4, 9), 1.75f);
}

TEST(Arithmetic, PermutedBytes) {
  Machine machine("gfx942");
  machine.Set(0, [](int) { return 0x77665544u; });
  machine.Set(1, [](int) { return 0x33221100u; });
  machine.Set(2, [](int) { return 0x0c070d01u; });
  machine.Run({0xd1ed0003, 0x040a0300});  // v_perm_b32 v3, v0, v1, v2
  EXPECT_EQ(machine.Get(3, 0), 0x0077ff11u);
}

// --- DPP: lane, and the lane that it reads; -1: none

using Lanes = std::function<int(int)>;

void ExpectDpp(const std::string& arch, uint32_t word, const Lanes& from, const Lanes& written) {
  Machine machine(arch);
  machine.Set(0, [](int lane) { return 1000u + static_cast<uint32_t>(lane); });
  machine.Set(1, [](int lane) { return static_cast<uint32_t>(lane); });
  machine.Run({0x7e0202fa, word});  // v_mov_b32_dpp v1, v0
  for (int lane = 0; lane < machine.lanes; ++lane) {
    const int source = from(lane);
    const uint32_t want = !written(lane) ? static_cast<uint32_t>(lane) : source < 0 ? 0u : 1000u + static_cast<uint32_t>(source);
    EXPECT_EQ(machine.Get(1, lane), want) << arch << " lane " << lane;
  }
}

TEST(Dpp, EveryPattern) {
  const auto all = [](int) { return 1; };
  // row_shr:3: without bound_ctrl a lane with no source keeps its value, with it gets 0.
  const auto shifted = [](int lane) { return lane % 16 < 3 ? -1 : lane - 3; };
  ExpectDpp("gfx942", 0xff011300, shifted, [](int lane) { return lane % 16 >= 3; });
  ExpectDpp("gfx942", 0xff091300, shifted, all);
  // quad_perm:[2,0,3,1]
  constexpr int kQuad[] = {2, 0, 3, 1};
  ExpectDpp("gfx942", 0xff007200, [&](int lane) { return lane / 4 * 4 + kQuad[lane % 4]; }, all);
  // row_ror:5 row_mask:0x5
  ExpectDpp("gfx942", 0x5f012500, [](int lane) { return lane / 16 * 16 + (lane + 11) % 16; }, [](int lane) { return lane / 16 % 2 == 0; });
  // row_bcast:15: the last lane of a row goes to the next row.
  ExpectDpp("gfx942", 0xff014200, [](int lane) { return lane / 16 * 16 - 1; }, [](int lane) { return lane >= 16; });
  // row_bcast:31: lane 31 goes to the upper half.
  ExpectDpp("gfx942", 0xff014300, [](int) { return 31; }, [](int lane) { return lane >= 32; });
  // row_mirror bank_mask:0x3
  ExpectDpp("gfx942", 0xf3014000, [](int lane) { return lane / 16 * 16 + 15 - lane % 16; }, [](int lane) { return lane % 16 < 8; });
  ExpectDpp("gfx942", 0xff014100, [](int lane) { return lane / 8 * 8 + 7 - lane % 8; }, all);  // row_half_mirror
  ExpectDpp("gfx1201", 0xff015300, [](int lane) { return lane / 16 * 16 + 3; }, all);          // row_share:3
  ExpectDpp("gfx1201", 0xff016500, [](int lane) { return lane ^ 5; }, all);                    // row_xmask:5
}

TEST(Dpp, InactiveLanesAreNoSource) {
  Machine machine("gfx942");
  machine.Set(0, [](int lane) { return static_cast<uint32_t>(lane); });
  machine.Set(1, [](int) { return 77u; });
  machine.wave().SetExec(~uint64_t{1 << 4});
  machine.Run({0x7e0202fa, 0xff011300});  // row_shr:3: lane 7 reads lane 4
  EXPECT_EQ(machine.Get(1, 7), 77u);
  EXPECT_EQ(machine.Get(1, 8), 5u);
}

TEST(Sdwa, PartsOfWords) {
  Machine machine("gfx942");
  machine.Set(0, [](int) { return 0x44332211u; });
  machine.Set(1, [](int) { return 0xaaaabbbbu; });
  machine.Set(2, [](int) { return 0x0000ff0fu; });
  // v_and_b32_sdwa v1, v0, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_2 src1_sel:DWORD
  machine.Run({0x260204f9, 0x06021500});
  EXPECT_EQ(machine.Get(1, 0), 0x0003bbbbu);
}

TEST(BetweenLanes, BackwardPermuteAndSwizzle) {
  Machine machine("gfx942");
  machine.Set(0, [](int lane) { return static_cast<uint32_t>(4 * (63 - lane) + 256 * lane); });  // only modulo 64 lanes counts
  machine.Set(2, [](int lane) { return 500u + static_cast<uint32_t>(lane); });
  machine.Run({0xd87e0000, 0x01000200});  // ds_bpermute_b32 v1, v0, v2
  machine.Run({0xbf8cc07f});              // s_waitcnt lgkmcnt(0)
  for (int lane = 0; lane < 64; ++lane) EXPECT_EQ(machine.Get(1, lane), 500u + 63 - static_cast<uint32_t>(lane));
  machine.Set(0, [](int lane) { return static_cast<uint32_t>(lane); });
  machine.Run({0xd87a0445, 0x01000000});  // ds_swizzle_b32 v1, v0 offset:swizzle(BITMASK_PERM,"00p1i")
  machine.Run({0xbf8cc07f});
  // From the highest bit of five: 0, 0, kept, 1, inverted.
  for (int lane = 0; lane < 64; ++lane) {
    const int from = (lane & 32) + (lane & 4) + 2 + (~lane & 1);
    EXPECT_EQ(machine.Get(1, lane), static_cast<uint32_t>(from)) << lane;
  }
}

TEST(BetweenLanes, SwapsAndNeighbourRows) {
  Machine machine("gfx950");
  const auto fill = [&] {
    machine.Set(0, [](int lane) { return static_cast<uint32_t>(lane); });
    machine.Set(1, [](int lane) { return 100u + static_cast<uint32_t>(lane); });
  };
  fill();
  machine.Run({0x7e00b501});  // v_permlane32_swap_b32_e32 v0, v1: the upper half of v0 for the lower of v1
  EXPECT_EQ(machine.Get(0, 5), 5u);
  EXPECT_EQ(machine.Get(0, 37), 105u);
  EXPECT_EQ(machine.Get(1, 5), 37u);
  EXPECT_EQ(machine.Get(1, 37), 137u);
  fill();
  machine.Run({0x7e00b301});  // v_permlane16_swap_b32_e32 v0, v1: odd rows of v0 for even rows of v1
  EXPECT_EQ(machine.Get(0, 17), 101u);
  EXPECT_EQ(machine.Get(1, 1), 17u);
  EXPECT_EQ(machine.Get(0, 33), 33u);

  Machine rdna("gfx1100");
  rdna.Set(0, [](int lane) { return static_cast<uint32_t>(lane); });
  rdna.Set(1, [](int) { return 0u; });
  rdna.wave().SetSgpr(0, 0x76543210);
  rdna.wave().SetSgpr(1, 0xfedcba98);
  rdna.Run({0xd65c0001, 0x00040100});  // v_permlanex16_b32 v1, v0, s0, s1
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(rdna.Get(1, lane), static_cast<uint32_t>(lane ^ 16));
}

TEST(BetweenLanes, DualInstructionsReadBeforeTheyWrite) {
  Machine machine("gfx1100");
  machine.Set(0, [](int) { return 3u; });
  machine.Set(1, [](int) { return 4u; });
  machine.Run({0xca100101, 0x00000100});  // v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0
  EXPECT_EQ(machine.Get(0, 0), 4u);
  EXPECT_EQ(machine.Get(1, 0), 3u);
}

// --- matrices: where one element of A and one of B meet in D

struct Layout {
  const char* arch;
  std::vector<uint32_t> words;
  int size, depth, registers_a, b, registers_d;  // first registers: A 0, B b, D 16
  bool is_float, is_bfloat;
  std::function<std::pair<int, int>(int lane, int i)> element;  // (row of A or column of B, k)
  std::function<int(int lane, int r)> row_of_d;
};

void ExpectProduct(const Layout& layout) {
  Machine machine(layout.arch);
  std::mt19937 random(3);
  std::vector<double> a(static_cast<size_t>(layout.size * layout.depth)), b(a.size());
  // Small integers: every sum is exact.
  for (double& x : a) x = static_cast<int>(random() % 17) - 8;
  for (double& x : b) x = static_cast<int>(random() % 17) - 8;
  const Format format = layout.is_bfloat ? kBfloat : kHalf;
  const auto load = [&](int first, const std::vector<double>& matrix) {
    for (int r = 0; r < layout.registers_a; ++r) {
      machine.Set(first + r, [&](int lane) {
        const auto value = [&](int i) {
          const auto [row, k] = layout.element(lane, i);
          return matrix[static_cast<size_t>(row * layout.depth + k)];
        };
        if (layout.is_float) return Bits(static_cast<float>(value(r)));
        return format.Nearest(value(2 * r)) | format.Nearest(value(2 * r + 1)) << 16;
      });
    }
  };
  load(0, a);
  load(layout.b, b);
  machine.Run(layout.words);
  for (int r = 0; r < layout.registers_d; ++r) {
    for (int lane = 0; lane < machine.lanes; ++lane) {
      const int row = layout.row_of_d(lane, r), column = lane % layout.size;
      double want = 0;
      for (int k = 0; k < layout.depth; ++k) {
        want += a[static_cast<size_t>(row * layout.depth + k)] * b[static_cast<size_t>(column * layout.depth + k)];
      }
      ASSERT_EQ(machine.GetFloat(16 + r, lane), want) << layout.arch << " register " << r << " lane " << lane;
    }
  }
}

TEST(Matrices, ElementsLieWhereTheManualsSay) {
  const auto row32 = [](int lane, int r) { return 8 * (r / 4) + 4 * (lane / 32) + r % 4; };
  const auto row16 = [](int lane, int r) { return 4 * (lane / 16) + r; };
  const auto of = [](int size, int each) {
    return [size, each](int lane, int i) { return std::make_pair(lane % size, lane / size * each + i); };
  };
  // v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[2:3], 0
  ExpectProduct({"gfx942", {0xd3cc0010, 0x02020500}, 32, 8, 2, 2, 16, false, false, of(32, 4), row32});
  ExpectProduct({"gfx90a", {0xd3cc0010, 0x02020500}, 32, 8, 2, 2, 16, false, false, of(32, 4), row32});
  // v_mfma_f32_16x16x4_f32 v[16:19], v0, v2, 0
  ExpectProduct({"gfx942", {0xd3c50010, 0x02020500}, 16, 4, 1, 2, 4, true, false, of(16, 1), row16});
  // v_mfma_f32_32x32x16_bf16 v[16:31], v[0:3], v[4:7], 0
  ExpectProduct({"gfx950", {0xd3b70010, 0x02020900}, 32, 16, 4, 4, 16, false, true, of(32, 8), row32});
  // v_wmma_f32_16x16x16_f16 v[16:23], v[0:7], v[8:15], 0: both halves of the wave hold all of A and B.
  ExpectProduct({"gfx1100", {0xcc404010, 0x1a021100}, 16, 16, 8, 8, 8, false, false,
                 [](int lane, int i) { return std::make_pair(lane % 16, i); }, [](int lane, int r) { return 2 * r + lane / 16; }});
  // v_wmma_f32_16x16x16_bf16 v[16:23], v[0:3], v[4:7], 0
  ExpectProduct({"gfx1201", {0xcc414010, 0x1a020900}, 16, 16, 4, 4, 8, false, true, of(16, 8),
                 [](int lane, int r) { return 8 * (lane / 16) + r; }});
}

TEST(Matrices, WmmaOfGfx11NeedsItsHalvesAlike) {
  Machine machine("gfx1100");
  for (int i = 0; i < 16; ++i) machine.Set(i, [](int lane) { return static_cast<uint32_t>(lane); });
  EXPECT_NE(machine.FaultOf({0xcc404010, 0x1a021100}), "");
}

TEST(Matrices, Gfx90aTakesSubnormalsForZero) {
  for (const auto& [arch, want] : {std::make_pair("gfx90a", 0.0f), std::make_pair("gfx942", 8 * 0x1p-24f * 0x1p-24f)}) {
    Machine machine(arch);
    for (int i = 0; i < 4; ++i) machine.Set(i, [](int) { return 0x00010001u; });
    machine.Run({0xd3cc0010, 0x02020500});
    EXPECT_EQ(machine.GetFloat(16, 0), want) << arch;
  }
}

// --- memory

TEST(Buffers, OutOfRangeReadsAreZeroAndWritesAreDropped) {
  Machine machine("gfx942");
  const uintptr_t address = machine.memory.Allocate(256);
  auto* words = reinterpret_cast<uint32_t*>(address);
  for (uint32_t i = 0; i < 64; ++i) words[i] = 900 + i;
  machine.memory.SetDefined(address, 256);
  machine.wave().SetSgpr(4, static_cast<uint32_t>(address));
  machine.wave().SetSgpr(5, static_cast<uint32_t>(address >> 32));
  machine.wave().SetSgpr(6, 40);  // bytes
  machine.wave().SetSgpr(7, 0);
  machine.Set(0, [](int lane) { return static_cast<uint32_t>(4 * lane); });
  machine.Run({0xe0501004, 0x80010100});  // buffer_load_dword v1, v0, s[4:7], 0 offen offset:4
  machine.Run({0xbf8c0f70});              // s_waitcnt vmcnt(0)
  for (int lane = 0; lane < 64; ++lane) EXPECT_EQ(machine.Get(1, lane), lane < 9 ? 901u + static_cast<uint32_t>(lane) : 0u);
  machine.Set(1, [](int) { return 5u; });
  machine.Run({0xe0701000, 0x80010100});  // buffer_store_dword v1, v0, s[4:7], 0 offen
  EXPECT_EQ(words[9], 5u);
  EXPECT_EQ(words[10], 910u);
}

TEST(Global, AtomicsAddOneLaneAfterAnother) {
  Machine machine("gfx942");
  const uintptr_t address = machine.memory.Allocate(4);
  *reinterpret_cast<uint32_t*>(address) = 10;
  machine.memory.SetDefined(address, 4);
  machine.wave().SetSgpr(4, static_cast<uint32_t>(address));
  machine.wave().SetSgpr(5, static_cast<uint32_t>(address >> 32));
  machine.Set(0, [](int) { return 0u; });
  machine.Set(1, [](int lane) { return static_cast<uint32_t>(lane); });
  machine.Run({0xdd098000, 0x04040100});  // global_atomic_add v4, v0, v1, s[4:5] sc0
  machine.Run({0xbf8c0f70});
  EXPECT_EQ(*reinterpret_cast<uint32_t*>(address), 10u + 63 * 64 / 2);
  EXPECT_EQ(machine.Get(4, 3), 10u + 0 + 1 + 2);
}

TEST(Global, AShortLoadKeepsTheOtherHalf) {
  Machine machine("gfx942");
  const uintptr_t address = machine.memory.Allocate(2);
  *reinterpret_cast<uint16_t*>(address) = 0xabcd;
  machine.memory.SetDefined(address, 2);
  machine.wave().SetSgpr(4, static_cast<uint32_t>(address));
  machine.wave().SetSgpr(5, static_cast<uint32_t>(address >> 32));
  machine.Set(0, [](int) { return 0u; });
  machine.Set(1, [](int) { return 0x1111'2222u; });
  machine.Run({0xdc948000, 0x01040000});  // global_load_short_d16_hi v1, v0, s[4:5]
  machine.Run({0xbf8c0f70});
  EXPECT_EQ(machine.Get(1, 0), 0xabcd2222u);
}

TEST(Lds, ATransposedReadGivesColumns) {
  Machine machine("gfx950");
  auto* halves = reinterpret_cast<uint16_t*>(machine.lds.bytes.data());
  for (uint16_t i = 0; i < 256; ++i) halves[i] = i;
  std::fill(machine.lds.defined.begin(), machine.lds.defined.end(), 1);
  machine.Set(0, [](int lane) { return static_cast<uint32_t>(8 * lane); });
  machine.Run({0xd9c60000, 0x02000000});  // ds_read_b64_tr_b16 v[2:3], v0
  machine.Run({0xbf8cc07f});
  // Sixteen lanes hold a matrix of four rows and sixteen columns; each gets a column.
  for (int lane = 0; lane < 64; ++lane) {
    const uint32_t column = static_cast<uint32_t>(64 * (lane / 16) + lane % 16);
    EXPECT_EQ(machine.Get(2, lane), column | (column + 16) << 16);
    EXPECT_EQ(machine.Get(3, lane), (column + 32) | (column + 48) << 16);
  }
}

TEST(Registers, AccumulationRegistersAreOthers) {
  Machine machine("gfx942");
  machine.Set(0, [](int lane) { return static_cast<uint32_t>(lane); });
  machine.Set(3, [](int) { return 99u; });
  machine.Run({0xd3d94003, 0x18000100});  // v_accvgpr_write_b32 a3, v0
  EXPECT_EQ(machine.Get(3, 5), 99u);
  machine.Run({0xd3d84001, 0x18000103});  // v_accvgpr_read_b32 v1, a3
  EXPECT_EQ(machine.Get(1, 5), 5u);
}

}  // namespace
