// What hardware does not wait for is refused, and the same with the wait states that the manuals ask for is not.
#include "simulator/hazards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/fault.h"

namespace {

using testing::HasSubstr;
using Words = std::vector<uint32_t>;

constexpr uint32_t kNop = 0xbf800000;  // s_nop 0; its low bits are how many more
const Words kEnd = {0xbf810000};       // s_endpgm

std::vector<simulator::Instruction> Decoded(const simulator::Arch& arch, const std::vector<Words>& code) {
  Words all;
  for (const Words& words : code) all.insert(all.end(), words.begin(), words.end());
  const size_t size = all.size();
  all.resize(size + 4);
  std::vector<simulator::Instruction> instructions;
  for (size_t at = 0; at < size;) {
    simulator::Instruction instruction;
    simulator::Decode(arch, &all[at], 4 * at, &instruction);
    at += static_cast<size_t>(instruction.size) / 4;
    instructions.push_back(instruction);
  }
  return instructions;
}

std::string WaitFault(const std::string& arch_name, const std::vector<Words>& code) {
  const simulator::Arch arch = simulator::FindArch(arch_name);
  try {
    simulator::CheckWaitStates(arch, Decoded(arch, code));
  } catch (const simulator::Fault& fault) {
    return fault.what();
  }
  return "";
}

std::string JoinFault(const std::vector<Words>& code) {
  try {
    simulator::CheckJoins(Decoded(simulator::FindArch("gfx942"), code));
  } catch (const simulator::Fault& fault) {
    return fault.what();
  }
  return "";
}

const Words kBig = {0xd3cc0010, 0x02020500};       // v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[2:3], 0
const Words kSmall = {0xd3cd0020, 0x02020500};     // v_mfma_f32_16x16x16_f16 v[32:35], v[0:1], v[2:3], 0
const Words kAdding = {0xd3cd0020, 0x04a20500};    // the same, + v[40:43]
const Words kReadBig = {0x7e500314};               // v_mov_b32_e32 v40, v20
const Words kWriteBig = {0x7e280328};              // v_mov_b32_e32 v20, v40
const Words kMultiplies = {0xd3cd0024, 0x02020520};  // v_mfma_f32_16x16x16_f16 v[36:39], v[32:33], v[2:3], 0
const Words kAddsPart = {0xd3cd0024, 0x048a0500};    // v_mfma_f32_16x16x16_f16 v[36:39], v[0:1], v[2:3], v[34:37]
const Words kCompare = {0xd0c90008, 0x00020300};     // v_cmp_lt_u32_e64 s[8:9], v0, v1
const Words kMoveToV5 = {0x7e0a0301};                // v_mov_b32_e32 v5, v1
const Words kCrossV5 = {0x7e0c02fa, 0xff011105};     // v_mov_b32_dpp v6, v5 row_shr:1

struct Rule {
  const char* arch;
  Words first, second;
  int needed;
};

TEST(Hazards, WaitStatesOfTheManuals) {
  const Rule rules[] = {
      // 16 passes on gfx90a, 8 on the others; gfx950 takes one more.
      {"gfx90a", kBig, kReadBig, 19},
      {"gfx942", kBig, kReadBig, 11},
      {"gfx950", kBig, kReadBig, 12},
      {"gfx942", kBig, kWriteBig, 11},
      {"gfx90a", kSmall, kMultiplies, 11},
      {"gfx942", kSmall, kMultiplies, 7},
      {"gfx950", kSmall, kMultiplies, 8},
      {"gfx90a", kSmall, kAddsPart, 8},
      {"gfx942", kSmall, kAddsPart, 5},
      {"gfx90a", kAdding, {0x7e520300}, 7},  // v_mov_b32_e32 v41, v0: what is added is read late
      {"gfx942", kAdding, {0x7e520300}, 3},
      {"gfx942", {0x7e000309}, kSmall, 2},                                // v_mov_b32_e32 v0, v9
      {"gfx942", kCompare, {0xdc508000, 0x05080000}, 5},                  // global_load_dword v5, v0, s[8:9]
      {"gfx90a", {0x7e100500}, {0xd2890009, 0x00001101}, 4},              // v_readfirstlane_b32 s8, v0; v_readlane_b32 s9, v1, s8
      {"gfx90a", {0x7d920300}, {0xd1e20005, 0x040e0501}, 4},              // v_cmp_lt_u32_e32 vcc, v0, v1; v_div_fmas_f32 v5, v1, v2, v3
      {"gfx942", kCompare, {0xd1000005, 0x00220300}, 2},                  // v_cndmask_b32_e64 v5, v0, v1, s[8:9]
      {"gfx90a", kMoveToV5, kCrossV5, 2},
      {"gfx942", {0x7db20300}, kCrossV5, 5},                              // v_cmpx_lt_u32_e32 v0, v1
      {"gfx942", {0x7db20300}, kSmall, 4},
      {"gfx942", {0x7e0a4101}, {0x0a0c0b05}, 1},                          // v_exp_f32_e32 v5, v1; v_mul_f32_e32 v6, v5, v5
      {"gfx942", kMoveToV5, {0xd2890009, 0x00010705}, 1},                 // v_readlane_b32 s9, v5, 3
      {"gfx90a", {0xdc7c8000, 0x00040200}, {0x7e080301}, 1},              // global_store_dwordx4 v0, v[2:5], s[4:5]; v_mov_b32_e32 v4, v1
      {"gfx942", {0xdc7c8000, 0x00040200}, {0x7e080301}, 2},
      {"gfx950", kMoveToV5, {0x7e0ab506}, 2},                             // v_permlane32_swap_b32_e32 v5, v6
  };
  for (const Rule& rule : rules) {
    SCOPED_TRACE(rule.arch + std::string(", ") + std::to_string(rule.second[0]));
    const auto with = [&](int states) {
      std::vector<Words> code = {rule.first};
      for (; states > 0; states -= std::min(states, 16)) code.push_back({kNop + static_cast<uint32_t>(std::min(states, 16)) - 1});
      code.insert(code.end(), {rule.second, kEnd});
      return WaitFault(rule.arch, code);
    };
    EXPECT_EQ(with(rule.needed), "");
    EXPECT_THAT(with(rule.needed - 1), HasSubstr(std::to_string(rule.needed - 1) + " wait states after it, and needs " + std::to_string(rule.needed)));
  }
}

TEST(Hazards, WhatHardwareDoesWaitFor) {
  EXPECT_EQ(WaitFault("gfx942", {kSmall, {0xd3cd0024, 0x04820500}, kEnd}), "");  // adds all of the result: v[32:35]
  EXPECT_EQ(WaitFault("gfx942", {kSmall, kReadBig, kEnd}), "");                  // another register
  EXPECT_EQ(WaitFault("gfx90a", {kCompare, {0xd1000005, 0x00220300}, kEnd}), "");
  EXPECT_EQ(WaitFault("gfx90a", {{0x7e0a4101}, {0x0a0c0b05}, kEnd}), "");
  EXPECT_EQ(WaitFault("gfx942", {kCompare, {0xdc508000, 0x05040000}, kEnd}), "");  // global_load_dword v5, v0, s[4:5]
}

TEST(Hazards, OnEveryPath) {
  // By a jump over the wait; a jump that is taken is as long as four wait states.
  const std::vector<Words> code = {kBig, {0xbf880001}, {kNop + 15}, kReadBig, kEnd};  // s_cbranch_execz 1
  EXPECT_THAT(WaitFault("gfx942", code), HasSubstr("4 wait states after it, and needs 11"));
  // From the end of a loop to its beginning.
  const std::vector<Words> loop = {kReadBig, kBig, {0xbf88fffc}, kEnd};  // s_cbranch_execz -4
  EXPECT_THAT(WaitFault("gfx942", loop), HasSubstr("4 wait states after it"));
  EXPECT_EQ(WaitFault("gfx942", {kBig, kEnd, kReadBig}), "");
}

TEST(Hazards, AMatrixOfRdnaIsMultipliedAfterAVectorInstruction) {
  const Words first = {0xcc404010, 0x1c421100};   // v_wmma_f32_16x16x16_f16 v[16:23], v[0:7], v[8:15], v[16:23]
  const Words second = {0xcc404018, 0x1c621110};  // v_wmma_f32_16x16x16_f16 v[24:31], v[16:23], v[8:15], v[24:31]
  EXPECT_THAT(WaitFault("gfx1100", {first, second}), HasSubstr("multiplies the result of v_wmma"));
  EXPECT_THAT(WaitFault("gfx1100", {first, {kNop}, second}), HasSubstr("needs a vector instruction"));
  EXPECT_EQ(WaitFault("gfx1100", {first, {0x7e500329}, second}), "");  // v_mov_b32_e32 v40, v41
  EXPECT_EQ(WaitFault("gfx1100", {first, first}), "");
}

TEST(Hazards, NoVectorRegisterIsWrittenWhereABranchEndsUntilExecIsWhole) {
  const Words save = {0xbe80206a};     // s_and_saveexec_b64 s[0:1], vcc
  const Words skip = {0xbf880001};     // s_cbranch_execz 1
  const Words restore = {0x87fe007e};  // s_or_b64 exec, exec, s[0:1]
  EXPECT_EQ(JoinFault({save, skip, kReadBig, restore, kMoveToV5, kEnd}), "");
  EXPECT_THAT(JoinFault({save, skip, kReadBig, kMoveToV5, restore, kEnd}),
              HasSubstr("v_mov_b32_e32 v5, v1 at 0xc is behind the end of the branch at 0x4, but before exec has all lanes again at 0x10"));
  EXPECT_EQ(JoinFault({save, skip, kReadBig, {0xd28a0007, 0x00010608}, restore, kEnd}), "");  // v_writelane_b32 v7, s8, 3
}

}  // namespace
