// Halves of registers by name (true16), on RDNA: what reads and writes one half, and that the other stays.
#include <gtest/gtest.h>

#include "tests/simulator/machine.h"

namespace {

class HalvesTest : public testing::TestWithParam<const char*> {
 protected:
  // v0 and v1: other halves in every lane, normal numbers of fp16.
  static uint32_t First(int lane) { return (0x3c00u + static_cast<uint32_t>(lane)) | 0x4000u << 16; }
  static uint32_t Second(int lane) { return 0x3800u | (0x4400u + static_cast<uint32_t>(lane)) << 16; }

  HalvesTest() : machine(GetParam()) {
    machine.Set(0, First);
    machine.Set(1, Second);
    for (const int vgpr : {2, 200}) machine.Set(vgpr, [](int) { return 0xaaaa5555u; });
  }

  static float Number(uint32_t half) { return simulator::HalfToFloat(half & 0xffff); }

  Machine machine;
};

TEST_P(HalvesTest, MovesGoToOneHalf) {
  machine.Run({0x7f023900});  // v_mov_b16_e32 v1.h, v0.l
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(machine.Get(1, lane), (First(lane) & 0xffff) << 16 | (Second(lane) & 0xffff));
  machine.Run({0x7e023980});  // v_mov_b16_e32 v1.l, v0.h
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(machine.Get(1, lane), (First(lane) & 0xffff) << 16 | First(lane) >> 16);
  machine.Run({0xd59c4801, 0x000001c8});  // v_mov_b16_e64 v1.h, v200.h
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(machine.Get(1, lane), 0xaaaau << 16 | First(lane) >> 16);
}

TEST_P(HalvesTest, ArithmeticReadsAndWritesHalves) {
  machine.Run({0x65040380});              // v_add_f16_e32 v2.h, v0.h, v1.l
  machine.Run({0xd53258c8, 0x00020300});  // v_add_f16_e64 v200.h, v0.h, v1.h
  for (int lane = 0; lane < 32; ++lane) {
    const float high = Number(First(lane) >> 16);
    EXPECT_EQ(machine.Get(2, lane), simulator::FloatToHalf(high + Number(Second(lane))) << 16 | 0x5555u);
    EXPECT_EQ(machine.Get(200, lane), simulator::FloatToHalf(high + Number(Second(lane) >> 16)) << 16 | 0x5555u);
  }
}

TEST_P(HalvesTest, ConversionsReadAndWriteHalves) {
  machine.Run({0x7e061780});  // v_cvt_f32_f16_e32 v3, v0.h
  machine.Set(5, [](int lane) { return simulator::Bits(static_cast<float>(lane)); });
  machine.Run({0x7f041505});  // v_cvt_f16_f32_e32 v2.h, v5
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(machine.GetFloat(3, lane), Number(First(lane) >> 16));
    EXPECT_EQ(machine.Get(2, lane), simulator::FloatToHalf(static_cast<float>(lane)) << 16 | 0x5555u);
  }
}

TEST_P(HalvesTest, ComparisonsAndChoicesReadHalves) {
  machine.Set(1, [](int lane) { return static_cast<uint32_t>(lane % 2 == 0 ? 0x4001 : 0x3fff) | 0x7777u << 16; });
  machine.Run({0x7c720380});              // v_cmp_lt_u16_e32 vcc_lo, v0.h, v1.l
  machine.Run({0xd65d4802, 0x01aa0300});  // v_cndmask_b16 v2.h, v0.h, v1.l, vcc_lo
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(machine.Get(2, lane), (lane % 2 == 0 ? 0x4001u : 0x4000u) << 16 | 0x5555u);
  machine.Run({0xd65d1002, 0x01aa0300});  // v_cndmask_b16 v2.l, v0.l, v1.h, vcc_lo
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(machine.Get(2, lane) & 0xffff, lane % 2 == 0 ? 0x7777u : First(lane) & 0xffff);
}

INSTANTIATE_TEST_SUITE_P(Archs, HalvesTest, testing::Values("gfx1100", "gfx1201"), [](const auto& info) { return std::string(info.param); });

}  // namespace
