// What hardware forbids or leaves undefined stops a program, and what it allows does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulator/machine.h"

namespace {

using testing::HasSubstr;

const std::vector<uint32_t> kGlobalLoad = {0xdc508000, 0x017f0002};   // global_load_dword v1, v[2:3], off
const std::vector<uint32_t> kGlobalStore = {0xdc708000, 0x00040100};  // global_store_dword v0, v1, s[4:5]
const std::vector<uint32_t> kMoveFromV1 = {0x7e0a0301};               // v_mov_b32_e32 v5, v1
const std::vector<uint32_t> kLdsWrite = {0xd81a0000, 0x00000100};     // ds_write_b32 v0, v1
const std::vector<uint32_t> kLdsRead = {0xd86c0000, 0x01000000};      // ds_read_b32 v1, v0
const std::vector<uint32_t> kLdsReadNext = {0xd86c0004, 0x02000000};  // ds_read_b32 v2, v0 offset:4
const std::vector<uint32_t> kWaitVm0 = {0xbf8c0f70}, kWaitVm1 = {0xbf8c0f71}, kWaitLgkm0 = {0xbf8cc07f};

class Faults : public testing::Test {
 protected:
  Faults() : machine("gfx942", 2) {
    address = machine.memory.Allocate(512);
    machine.memory.SetDefined(address, 512);
    SetAddress(2, address);
    machine.wave().SetSgpr(4, static_cast<uint32_t>(address));
    machine.wave().SetSgpr(5, static_cast<uint32_t>(address >> 32));
  }
  void SetAddress(int vgpr, uintptr_t to) {
    machine.Set(vgpr, [to](int lane) { return static_cast<uint32_t>(to + 4 * static_cast<uintptr_t>(lane)); });
    machine.Set(vgpr + 1, [to](int lane) { return static_cast<uint32_t>((to + 4 * static_cast<uintptr_t>(lane)) >> 32); });
  }
  void SetLanes(int vgpr, uint32_t wave = 0) {
    machine.Set(vgpr, [](int lane) { return static_cast<uint32_t>(4 * lane); }, wave);
  }

  Machine machine;
  uintptr_t address;
};

TEST_F(Faults, LoadsOutsideEveryAllocation) {
  EXPECT_EQ(machine.FaultOf(kGlobalLoad), "");
  machine.Run(kWaitVm0);
  SetAddress(2, address + 260);  // the last lane ends 4 bytes behind
  EXPECT_THAT(machine.FaultOf(kGlobalLoad), HasSubstr("byte 512 of an allocation of 512 bytes"));
  machine.memory.Free(address);
  SetAddress(2, address);
  EXPECT_NE(machine.FaultOf(kGlobalLoad), "");
}

TEST_F(Faults, AnInactiveLaneAccessesNothing) {
  SetAddress(2, address + 260);
  machine.wave().SetExec(~uint64_t{0} >> 1);
  EXPECT_EQ(machine.FaultOf(kGlobalLoad), "");
}

TEST_F(Faults, AResultIsUsedBeforeItsWait) {
  machine.Run(kGlobalLoad);
  EXPECT_THAT(machine.FaultOf(kMoveFromV1), HasSubstr("v1 is used while a load into it is outstanding"));
  EXPECT_THAT(machine.FaultOf({0x7e020305}), HasSubstr("v1"));  // v_mov_b32_e32 v1, v5: overwritten
  machine.Run(kWaitVm1);
  EXPECT_NE(machine.FaultOf(kMoveFromV1), "");
  machine.Run(kWaitLgkm0);
  EXPECT_NE(machine.FaultOf(kMoveFromV1), "");
  machine.Run(kWaitVm0);
  EXPECT_EQ(machine.FaultOf(kMoveFromV1), "");
}

TEST_F(Faults, AnEarlierLoadIsBackOnceOnlyTheLaterIsOutstanding) {
  SetLanes(0);
  machine.Run(kGlobalLoad);
  machine.Run({0xdc508000, 0x06040000});  // global_load_dword v6, v0, s[4:5]
  machine.Run(kWaitVm1);
  EXPECT_EQ(machine.FaultOf(kMoveFromV1), "");
  EXPECT_THAT(machine.FaultOf({0x7e0a0306}), HasSubstr("v6"));  // v_mov_b32_e32 v5, v6
}

TEST_F(Faults, LoadsMayFollowEachOtherIntoOneRegister) {
  SetLanes(1);
  machine.Run({0xdc704008, 0x007f0100});  // scratch_store_dword off, v1, off offset:8
  for (const std::vector<uint32_t>& load : {std::vector<uint32_t>{0xdc504008, 0x027f0000}, {0xdc504008, 0x027f0000}}) {
    EXPECT_EQ(machine.FaultOf(load), "");  // scratch_load_dword v2, off, off offset:8
  }
  machine.Run(kWaitVm1);
  EXPECT_THAT(machine.FaultOf({0x7e0a0302}), HasSubstr("v2"));  // v_mov_b32_e32 v5, v2
}

TEST_F(Faults, LoadsOfTwoKindsMayNot) {
  SetLanes(0);
  machine.Run(kGlobalLoad);
  EXPECT_THAT(machine.FaultOf({0xd86c0000, 0x01000000}), HasSubstr("v1"));  // ds_read_b32 v1, v0
  machine.Run(kWaitVm0);
  EXPECT_EQ(machine.FaultOf({0xd86c0000, 0x01000000}), "");
  EXPECT_THAT(machine.FaultOf(kGlobalLoad), HasSubstr("v1"));
}

TEST_F(Faults, ScalarLoadsNeedAWaitForAll) {
  machine.Run({0xc0020202, 0x00000000});  // s_load_dword s8, s[4:5], 0x0
  EXPECT_THAT(machine.FaultOf({0xbe890008}), HasSubstr("s8 is read while a load into it is outstanding"));
  machine.Run({0xbf8cc17f});  // s_waitcnt lgkmcnt(1): they return in any order
  EXPECT_NE(machine.FaultOf({0xbe890008}), "");
  machine.Run(kWaitLgkm0);
  EXPECT_EQ(machine.FaultOf({0xbe890008}), "");
}

TEST_F(Faults, UndefinedValues) {
  SetLanes(0);
  EXPECT_THAT(machine.FaultOf(kGlobalStore), HasSubstr("undefined value as what a store writes"));
  // Moving it about is allowed; so is not to choose it.
  EXPECT_EQ(machine.FaultOf(kMoveFromV1), "");
  machine.Run({0x7d920100});  // v_cmp_lt_u32_e32 vcc, v0, v0: false
  machine.Run({0x000a0300});  // v_cndmask_b32_e32 v5, v0, v1, vcc
  EXPECT_EQ(machine.FaultOf({0xdc708000, 0x00040500}), "");  // global_store_dword v0, v5, s[4:5]
  EXPECT_THAT(machine.FaultOf({0xdc508000, 0x017f0008}), HasSubstr("undefined value as a global address"));
  EXPECT_THAT(machine.FaultOf({0xd81a0000, 0x00000009}), HasSubstr("undefined value as an LDS address"));
  Machine fresh("gfx942");
  EXPECT_THAT(fresh.FaultOf({0xbf860004}), HasSubstr("undefined scalar register decides a branch"));  // s_cbranch_vccz
}

TEST_F(Faults, MemoryThatNobodyWroteIsUndefined) {
  const uintptr_t fresh = machine.memory.Allocate(256);
  SetAddress(2, fresh);
  machine.Run(kGlobalLoad);
  machine.Run(kWaitVm0);
  SetLanes(0);
  EXPECT_THAT(machine.FaultOf(kGlobalStore), HasSubstr("undefined"));
  machine.memory.SetDefined(fresh, 256);
  machine.Run(kGlobalLoad);
  machine.Run(kWaitVm0);
  EXPECT_EQ(machine.FaultOf(kGlobalStore), "");
}

TEST_F(Faults, EachWordOfAPairThatIsSpilledHasItsOwnValue) {
  SetLanes(10);  // v11 has none
  machine.Run({0xdc744008, 0x007f0a00});  // scratch_store_dwordx2 off, v[10:11], off offset:8
  machine.Run({0xdc544008, 0x047f0000});  // scratch_load_dwordx2 v[4:5], off, off offset:8
  machine.Run(kWaitVm0);
  EXPECT_EQ(machine.wave().VgprDefined(4), ~uint64_t{0});
  EXPECT_EQ(machine.wave().VgprDefined(5), 0u);
}

TEST_F(Faults, ScratchAndLdsAreUndefinedAtFirstAndHaveAnEnd) {
  machine.Run({0xdc504008, 0x027f0000});  // scratch_load_dword v2, off, off offset:8
  machine.Run(kWaitVm0);
  EXPECT_EQ(machine.wave().VgprDefined(2), 0u);
  SetLanes(1);
  machine.Run({0xdc704008, 0x007f0100});  // scratch_store_dword off, v1, off offset:8
  machine.Run({0xdc504008, 0x027f0000});
  machine.Run(kWaitVm0);
  EXPECT_EQ(machine.wave().VgprDefined(2), ~uint64_t{0});
  EXPECT_EQ(machine.Get(2, 5), 20u);
  EXPECT_THAT(machine.FaultOf({0xdc504040, 0x027f0000}), HasSubstr("of 64 bytes of scratch"));  // offset:64

  machine.Set(0, [](int lane) { return 4096u - 4 * static_cast<uint32_t>(lane); });
  EXPECT_THAT(machine.FaultOf(kLdsWrite), HasSubstr("outside the workgroup's 4096 bytes"));
}

TEST_F(Faults, WavesRaceInLdsWithoutABarrier) {
  for (uint32_t wave : {0u, 1u}) {
    SetLanes(0, wave);
    SetLanes(1, wave);
  }
  machine.Run(kLdsWrite, 0);
  EXPECT_THAT(machine.FaultOf(kLdsRead, 1), HasSubstr("wave 1 reads byte 0x0 that wave 0 wrote with no barrier between"));
  machine.lds.NextInterval();
  EXPECT_EQ(machine.FaultOf(kLdsRead, 1), "");
  EXPECT_THAT(machine.FaultOf(kLdsWrite, 0), HasSubstr("another wave read"));
  machine.lds.NextInterval();
  EXPECT_EQ(machine.FaultOf(kLdsWrite, 0), "");
  machine.Run(kWaitLgkm0, 0);
  EXPECT_EQ(machine.FaultOf(kLdsRead, 0), "");  // one's own
}

TEST_F(Faults, AStoreToLdsMustArriveBeforeABarrier) {
  SetLanes(0);
  SetLanes(1);
  machine.Run(kLdsWrite);
  EXPECT_THAT(machine.FaultOf({0xbf8a0000}), HasSubstr("while a store to LDS is outstanding"));  // s_barrier
  machine.Run(kWaitLgkm0);
  EXPECT_EQ(machine.FaultOf({0xbf8a0000}), "");
}

TEST_F(Faults, AnUnknownEncodingSaysItsBytes) {
  EXPECT_THAT(machine.FaultOf({0xd3ff0000, 0x12345678}), HasSubstr("0xd3ff0000 0x12345678"));
  EXPECT_THAT(machine.FaultOf({0x7e01fe00}), HasSubstr("VOP1 opcode 255"));
}

}  // namespace
