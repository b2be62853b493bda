// The host's dropout mask: the generator against its published vectors, and the rule by its terms.
#include <gtest/gtest.h>

#include <vector>

#include "dispatcher/philox.h"

namespace aotriton::dispatcher {
namespace {

using Words = std::array<uint32_t, 4>;

// kat_vectors of Random123, philox4x32 with 10 rounds.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0}, {0, 0, 0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, AWordDecidesAColumn) {
  // Seed and offset 0: the words of the first vector, as int32 positive, negative, negative, negative.
  std::vector<uint8_t> keep(4, 7);
  KeepRow(0, 0, 0.5f, 0, 4, keep.data());
  EXPECT_EQ(keep, (std::vector<uint8_t>{1, 0, 0, 0}));
  KeepRow(0, 0, 0, 0, 4, keep.data());
  EXPECT_EQ(keep, (std::vector<uint8_t>{1, 1, 1, 1}));
  KeepRow(0, 0, 1, 0, 4, keep.data());
  EXPECT_EQ(keep, (std::vector<uint8_t>{0, 0, 0, 0}));
}

TEST(PhiloxTest, RowsAreCountedInGroupsOfFourColumns) {
  // Row 3 of 10 columns begins 3 * cdiv(10, 4) counters on, across 2^32 too, and writes 10 columns.
  const uint64_t offset = 0xFFFFFFFFFFu - 4;
  std::vector<uint8_t> row(12, 7), expected(12, 7);
  KeepRow(0x123456789abcdef0, offset, 0.3f, 3, 10, row.data());
  for (int n = 0; n < 10; ++n) {
    const uint64_t counter = offset + 3 * 3 + n / 4;
    const Words words = Philox4x32({0x9abcdef0, 0x12345678}, {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0});
    expected[n] = static_cast<int32_t>(words[n % 4]) > static_cast<int32_t>((0.3f - 0.5f) * 4294967296.0f);
  }
  EXPECT_EQ(row, expected);
}

TEST(PhiloxTest, DropsAboutAsMuchAsIsAsked) {
  std::vector<uint8_t> keep(100000);
  KeepRow(42, 7, 0.3f, 0, static_cast<int64_t>(keep.size()), keep.data());
  int kept = 0;
  for (uint8_t k : keep) kept += k;
  EXPECT_NEAR(kept, 70000, 700);
}

}  // namespace
}  // namespace aotriton::dispatcher
