// Our decoder against LLVM's disassembler: every opcode of every table, with operands and modifiers at random.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "simulator/fault.h"
#include "simulator/program.h"
#include "tests/simulator/llvm.h"

namespace simulator {
namespace {

using Words = std::array<uint32_t, 8>;

// Where a format says that it is it, and where its opcode lies, in the first 32 bits.
struct Encoding {
  Format format;
  uint32_t prefix;
  int prefix_low, opcode_low, opcode_bits;
};

constexpr Encoding kCommon[] = {
    {Format::kSop1, 0b101111101, 23, 8, 8},  {Format::kSop2, 0b10, 30, 23, 7},       {Format::kSopk, 0b1011, 28, 23, 5},
    {Format::kSopc, 0b101111110, 23, 16, 7}, {Format::kSopp, 0b101111111, 23, 16, 7}, {Format::kVop1, 0b0111111, 25, 9, 8},
    {Format::kVop2, 0b0, 31, 25, 6},         {Format::kVopc, 0b0111110, 25, 17, 8},
};
constexpr Encoding kGfx9[] = {
    {Format::kSmem, 0b110000, 26, 18, 8},    {Format::kVop3, 0b110100, 26, 16, 10},   {Format::kVop3p, 0b110100111, 23, 16, 7},
    {Format::kDs, 0b110110, 26, 17, 8},      {Format::kBuffer, 0b111000, 26, 18, 7},
    {Format::kScratch, 0b110111, 26, 18, 7}, {Format::kGlobal, 0b110111, 26, 18, 7},
};
constexpr Encoding kGfx11[] = {
    {Format::kSmem, 0b111101, 26, 18, 8},    {Format::kVop3, 0b110101, 26, 16, 10},   {Format::kVop3p, 0b11001100, 24, 16, 7},
    {Format::kVopd, 0b110010, 26, 22, 4},    {Format::kDs, 0b110110, 26, 18, 8},      {Format::kBuffer, 0b111000, 26, 18, 8},
    {Format::kScratch, 0b110111, 26, 18, 7}, {Format::kGlobal, 0b110111, 26, 18, 7},
};
constexpr Encoding kGfx12[] = {
    {Format::kSmem, 0b111101, 26, 13, 6},    {Format::kVop3, 0b110101, 26, 16, 10},   {Format::kVop3p, 0b11001100, 24, 16, 7},
    {Format::kVopd, 0b110010, 26, 22, 4},    {Format::kDs, 0b110110, 26, 18, 8},
    {Format::kScratch, 0b111011, 26, 14, 8}, {Format::kGlobal, 0b111011, 26, 14, 8},
};

std::vector<Encoding> Encodings(Isa isa) {
  std::vector<Encoding> encodings(std::begin(kCommon), std::end(kCommon));
  const auto add = [&](const auto& more) { encodings.insert(encodings.end(), std::begin(more), std::end(more)); };
  if (isa == Isa::kGfx9) add(kGfx9);
  if (isa == Isa::kGfx11) add(kGfx11);
  if (isa == Isa::kGfx12) add(kGfx12);
  return encodings;
}

void SetBits(uint32_t* word, int low, int bits, uint32_t value) {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << bits) - 1) << low;
  *word = (*word & ~mask) | (value << low & mask);
}

class Generator {
 public:
  explicit Generator(Isa isa) : isa_(isa) {}

  // Bits at random, often few: most modifiers exclude one another.
  Words Next(const Encoding& encoding, uint32_t number, const std::string& name) {
    Words words = {};
    for (int i = 0; i < 4; ++i) {
      words[i] = Random();
      for (uint32_t bits = Random() % 4; bits > 0; --bits) words[i] &= Random();
      if (Random() % 2 == 0) SetBits(&words[i], 26, 6, 0);
      if (Random() % 2 == 0) SetBits(&words[i], 8, 8, 0);
    }
    uint32_t* word = &words[0];
    SetBits(word, encoding.prefix_low, 32 - encoding.prefix_low, encoding.prefix);
    SetBits(word, encoding.opcode_low, encoding.opcode_bits, number);
    if (encoding.format == Format::kScratch || encoding.format == Format::kGlobal) {
      SetBits(word, isa_ == Isa::kGfx9 ? 14 : isa_ == Isa::kGfx11 ? 16 : 24, 2, encoding.format == Format::kScratch ? 1 : 2);
    }
    // A long v_cmpx writes exec.
    if (encoding.format == Format::kVop3 && name.rfind("v_cmpx", 0) == 0) SetBits(word, 0, 8, 126);
    // WMMA's op_sel_hi is fixed.
    if (name.rfind("v_wmma", 0) == 0) words[0] |= 1 << 14, words[1] |= 3 << 27;
    // LLVM takes a small literal of these for the code of an inline constant.
    if (name.rfind("v_fmamk", 0) == 0 || name.rfind("v_fmaak", 0) == 0) words[1] |= 1 << 20;
    if (encoding.format == Format::kVopd) words[2] |= 1 << 20;
    return words;
  }

 private:
  uint32_t Random() { return static_cast<uint32_t>(random_()); }

  const Isa isa_;
  std::mt19937 random_{1};
};

class DecoderTest : public testing::TestWithParam<const char*> {};

TEST_P(DecoderTest, AgreesWithLlvm) {
  constexpr int kWanted = 40, kAttempts = 4000;
  const Arch arch = FindArch(GetParam());
  const Disassembler llvm(arch.name);
  Generator generator(arch.isa);
  std::string never_seen;
  int opcodes = 0, compared = 0;
  for (const Encoding& encoding : Encodings(arch.isa)) {
    for (uint32_t number = 0; number < 1u << encoding.opcode_bits; ++number) {
      const Semantics* semantics = arch.opcodes->Find(encoding.format, number).semantics;
      // Of hints for the scheduler only the values that the compiler gives have one spelling.
      if (semantics == nullptr || semantics->name == "s_waitcnt_depctr" || semantics->name == "s_wait_alu") continue;
      ++opcodes;
      int seen = 0;
      for (int attempt = 0; attempt < kAttempts && seen < kWanted; ++attempt) {
        const Words words = generator.Next(encoding, number, semantics->name);
        Instruction instruction;
        try {
          Decode(arch, words.data(), 0, &instruction);
        } catch (const Fault&) {
          continue;  // a modifier that is not modelled
        }
        const std::string got = Print(instruction);
        delete instruction.dual;
        const Disassembler::Result want = llvm.Disassemble(words.data(), 4 * sizeof(uint32_t));
        if (!want.is_legal) continue;
        ++seen;
        ++compared;
        if (got == want.text && instruction.size == want.size) continue;
        ADD_FAILURE() << std::hex << words[0] << " " << words[1] << " " << words[2] << std::dec << "\n  ours: " << got << " ("
                      << instruction.size << " bytes)\n  LLVM: " << want.text << " (" << want.size << " bytes)";
        break;
      }
      if (seen == 0) never_seen += " " + semantics->name;
    }
  }
  printf("%s: %d opcodes, %d instructions\n", arch.name.c_str(), opcodes, compared);
  EXPECT_EQ(never_seen, "");
}

INSTANTIATE_TEST_SUITE_P(Archs, DecoderTest, testing::Values("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1150", "gfx1201"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace simulator
