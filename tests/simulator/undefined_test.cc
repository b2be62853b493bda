// Which bits of a result have no value, when bits of what it is made of have none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/machine.h"

namespace {

using testing::HasSubstr;

const std::vector<uint32_t> kWaitVm0 = {0xbf8c0f70}, kWaitLgkm0 = {0xbf8cc07f};

class Undefined : public testing::Test {
 protected:
  Undefined() : machine("gfx942") {
    address = machine.memory.Allocate(256);
    machine.wave().SetSgpr(4, static_cast<uint32_t>(address));
    machine.wave().SetSgpr(5, static_cast<uint32_t>(address >> 32));
    machine.Set(0, [](int lane) { return static_cast<uint32_t>(4 * lane); });
  }
  // A word of v1 in all lanes, some of whose bits have no value.
  void SetV1(uint32_t value, uint32_t unset) {
    machine.Set(1, [value](int) { return value; });
    const std::vector<uint32_t> bits(64, unset);
    machine.wave().SetUnset(1, bits.data(), ~uint64_t{0});
  }
  void SetPair(int sgpr, uint64_t value, uint64_t unset) {
    machine.wave().SetSgpr(sgpr, static_cast<uint32_t>(value), static_cast<uint32_t>(unset));
    machine.wave().SetSgpr(sgpr + 1, static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(unset >> 32));
  }
  uint64_t UnsetPair(int sgpr) {
    simulator::Operand operand;
    operand.kind = simulator::Operand::Kind::kSgpr;
    operand.index = static_cast<uint16_t>(sgpr);
    return machine.wave().Scalar64Unset(operand);
  }
  uint32_t UnsetV5(int lane = 7) { return machine.wave().VgprUnset(5, lane); }

  Machine machine;
  uintptr_t address;
};

TEST_F(Undefined, BitsOfScalarLogic) {
  SetPair(8, 0xff00, 0x0ff0);
  SetPair(10, 0x0f0f, 0);
  machine.Run({0x868c0a08});  // s_and_b64 s[12:13], s[8:9], s[10:11]: 0 with anything is 0
  EXPECT_EQ(UnsetPair(12), 0x0ff0u & 0x0f0fu);
  machine.Run({0x878c0a08});  // s_or_b64: 1 with anything is 1
  EXPECT_EQ(UnsetPair(12), 0x0ff0u & ~uint64_t{0x0f0f});
  machine.Run({0x888c0a08});  // s_xor_b64: always both
  EXPECT_EQ(UnsetPair(12), 0x0ff0u);
  machine.Run({0x8e0c8408});  // s_lshl_b32 s12, s8, 4
  EXPECT_EQ(UnsetPair(12) & 0xffffffff, 0xff00u);
  SetPair(14, 4, 1);
  machine.Run({0x8e0c0e08});  // s_lshl_b32 s12, s8, s14: by what has no value
  EXPECT_EQ(UnsetPair(12) & 0xffffffff, 0xffffffffu);
  machine.Run({0x800c0a08});  // s_add_u32 s12, s8, s10
  EXPECT_EQ(UnsetPair(12) & 0xffffffff, 0xffffffffu);
}

TEST_F(Undefined, XorOfTwoDoesNotCancel) {
  SetPair(8, 1, 1);
  SetPair(10, 1, 1);
  machine.Run({0x888c0a08});  // s_xor_b64 s[12:13], s[8:9], s[10:11]
  EXPECT_EQ(UnsetPair(12), 1u);
}

TEST_F(Undefined, SccOfLogicNeedsOneBitThatIsSet) {
  const std::vector<uint32_t> branch = {0xbf850000};  // s_cbranch_scc1 0
  SetPair(10, ~uint64_t{0}, 0);
  SetPair(8, 0x100, 0xf);
  machine.Run({0x868c0a08});  // s_and_b64 s[12:13], s[8:9], s[10:11]
  EXPECT_EQ(machine.FaultOf(branch), "");
  SetPair(8, 0x10f, 0x1ff);
  machine.Run({0x868c0a08});
  EXPECT_THAT(machine.FaultOf(branch), HasSubstr("decides a branch"));
}

TEST_F(Undefined, ScalarComparisons) {
  const std::vector<uint32_t> branch = {0xbf850000};
  SetPair(8, 0x100, 0xf);
  machine.Run({0xbf138008});  // s_cmp_lg_u64 s[8:9], 0: differs whatever the others are
  EXPECT_EQ(machine.FaultOf(branch), "");
  machine.Run({0xbf0d8808});  // s_bitcmp1_b32 s8, 8
  EXPECT_EQ(machine.FaultOf(branch), "");
  machine.Run({0xbf0d8308});  // s_bitcmp1_b32 s8, 3
  EXPECT_NE(machine.FaultOf(branch), "");
  SetPair(8, 0, 0xf);
  machine.Run({0xbf138008});
  EXPECT_NE(machine.FaultOf(branch), "");
  machine.Run({0x850c0a08});  // s_cselect_b32 s12, s8, s10: which?
  EXPECT_EQ(UnsetPair(12) & 0xffffffff, 0xffffffffu);
}

TEST_F(Undefined, AComparisonIsOfEachLane) {
  machine.wave().SetExec(0xff);
  machine.Set(1, [](int) { return 0u; });
  machine.wave().SetExec(0xffff);
  machine.Run({0xd0c90008, 0x00020300});  // v_cmp_lt_u32_e64 s[8:9], v0, v1
  EXPECT_EQ(UnsetPair(8), 0xff00u);       // v1 has no value there; inactive lanes give 0
  machine.Run({0xd1000005, 0x00220100});  // v_cndmask_b32_e64 v5, v0, v0, s[8:9]
  EXPECT_EQ(machine.wave().VgprDefined(5) & 0xffff, 0xffu);
}

TEST_F(Undefined, ExecOnlyInLanesThatMatter) {
  SetPair(8, 0xf0, 0xff00);
  machine.wave().SetExec(0xff);
  EXPECT_EQ(machine.FaultOf({0xbe8e2008}), "");  // s_and_saveexec_b64 s[14:15], s[8:9]
  EXPECT_EQ(machine.wave().exec(), 0xf0u);
  EXPECT_THAT(machine.FaultOf({0xbe8e2108}), HasSubstr("decides lane 8 of exec"));  // s_or_saveexec_b64 s[14:15], s[8:9]
  machine.wave().SetExec(0xfff);
  EXPECT_THAT(machine.FaultOf({0xbe8e2008}), HasSubstr("decides lane 8 of exec"));
  EXPECT_THAT(machine.FaultOf({0xbefe0108}), HasSubstr("exec"));  // s_mov_b64 exec, s[8:9]
}

TEST_F(Undefined, ABranchNeedsOneLaneThatIsSet) {
  SetPair(simulator::kVccLo, 1, ~uint64_t{1});
  EXPECT_EQ(machine.FaultOf({0xbf860004}), "");  // s_cbranch_vccz
  SetPair(simulator::kVccLo, 2, ~uint64_t{1});
  EXPECT_NE(machine.FaultOf({0xbf860004}), "");
}

TEST_F(Undefined, SpilledScalarsKeepTheirBits) {
  SetPair(8, 0x1234, 0xff);
  machine.Run({0xd28a0007, 0x00010608});  // v_writelane_b32 v7, s8, 3
  machine.Run({0xdc704008, 0x007f0700});  // scratch_store_dword off, v7, off offset:8
  machine.Run({0xdc504008, 0x027f0000});  // scratch_load_dword v2, off, off offset:8
  machine.Run(kWaitVm0);
  machine.Run({0xd2890014, 0x00010702});  // v_readlane_b32 s20, v2, 3
  EXPECT_EQ(UnsetPair(20) & 0xffffffff, 0xffu);
  EXPECT_EQ(machine.wave().Sgpr(20), 0x1234u);
}

TEST_F(Undefined, BitsOfVectors) {
  SetV1(0x12345678, 0x0000ff00);
  machine.Run({0x240a0290});  // v_lshlrev_b32_e32 v5, 16, v1
  EXPECT_EQ(UnsetV5(), 0xff000000u);
  machine.Run({0x260a02ff, 0x000000ff});  // v_and_b32_e32 v5, 0xff, v1
  EXPECT_EQ(UnsetV5(), 0u);
  machine.Run({0x680a0101});  // v_add_u32_e32 v5, v1, v0: from there upwards
  EXPECT_EQ(UnsetV5(), 0xffffff00u);
  machine.Run({0x0a0a0301});  // v_mul_f32_e32 v5, v1, v1
  EXPECT_EQ(UnsetV5(), 0xffffffffu);
  machine.wave().SetSgpr(8, 0x0c0c0302);  // bytes 0, 0, 3, 2 of v0
  machine.Run({0xd1ed0005, 0x00220300});  // v_perm_b32 v5, v0, v1, s8: of v1 bytes 3 and 2
  EXPECT_EQ(UnsetV5(), 0u);
  machine.Run({0x7e0a02fa, 0xff011101});  // v_mov_b32_dpp v5, v1 row_shr:1
  EXPECT_EQ(UnsetV5(), 0x0000ff00u);
}

TEST_F(Undefined, HalvesHaveValuesOfTheirOwn) {
  SetV1(0x3c003c00, 0xffff0000);
  machine.Run({0x7e0a1701});  // v_cvt_f32_f16_e32 v5, v1
  EXPECT_EQ(UnsetV5(), 0u);
  machine.Run({0x7e0a16f9, 0x00050601});  // v_cvt_f32_f16_sdwa v5, v1 src0_sel:WORD_1
  EXPECT_EQ(UnsetV5(), 0xffffffffu);
  machine.Run({0xd38f4005, 0x18020301});  // v_pk_add_f16 v5, v1, v1
  EXPECT_EQ(UnsetV5(), 0xffff0000u);
  machine.Run({0xd38f4005, 0x00020301});  // v_pk_add_f16 v5, v1, v1 op_sel_hi:[0,0]
  EXPECT_EQ(UnsetV5(), 0u);
}

TEST_F(Undefined, AShortLoadGivesItsHalfOnly) {
  machine.memory.SetDefined(address, 256);
  machine.Run({0xdc908000, 0x01040000});  // global_load_short_d16 v1, v0, s[4:5]
  machine.Run(kWaitVm0);
  EXPECT_EQ(machine.wave().VgprUnset(1, 9), 0xffff0000u);
  EXPECT_EQ(machine.FaultOf({0xdc688000, 0x00040100}), "");  // global_store_short v0, v1, s[4:5]
  EXPECT_THAT(machine.FaultOf({0xdc708000, 0x00040100}), HasSubstr("undefined"));  // global_store_dword
  EXPECT_THAT(machine.FaultOf({0xdc6c8000, 0x00040100}), HasSubstr("undefined"));  // global_store_short_d16_hi
  machine.Run({0xdc948000, 0x01040000});  // global_load_short_d16_hi v1, v0, s[4:5]
  machine.Run(kWaitVm0);
  EXPECT_EQ(machine.FaultOf({0xdc708000, 0x00040100}), "");
}

TEST_F(Undefined, BytesOfMemory) {
  machine.memory.SetDefined(address + 4, 2);  // of lane 1
  machine.Run({0xdc508000, 0x05040000});      // global_load_dword v5, v0, s[4:5]
  machine.Run(kWaitVm0);
  EXPECT_EQ(UnsetV5(1), 0xffff0000u);
  EXPECT_EQ(UnsetV5(2), 0xffffffffu);
  SetV1(0, 0xfff0);
  machine.Run({0xd83e0000, 0x00000100});  // ds_write_b16 v0, v1
  machine.Run({0xd86c0000, 0x05000000});  // ds_read_b32 v5, v0
  machine.Run(kWaitLgkm0);
  EXPECT_EQ(UnsetV5(), 0xfffffff0u);      // the other half was never written
  machine.Run({0xd8720000, 0x05000000});  // ds_read_i8 v5, v0: an extended sign
  machine.Run(kWaitLgkm0);
  EXPECT_EQ(UnsetV5(), 0xfffffff0u);
  machine.Run({0xd8780000, 0x05000000});  // ds_read_u16 v5, v0
  machine.Run(kWaitLgkm0);
  EXPECT_EQ(UnsetV5(), 0xfff0u);
}

TEST(UndefinedOfGfx11, A16BitResultKeepsTheOtherHalf) {
  Machine machine("gfx1100");
  machine.Set(0, [](int) { return 0x3c00u; });
  machine.Run({0x64020100});  // v_add_f16_e32 v1.l, v0.l, v0.l
  EXPECT_EQ(machine.wave().VgprUnset(1, 3), 0xffff0000u);
}

}  // namespace
