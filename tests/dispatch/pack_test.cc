// The pack reader on intact, truncated, damaged and hostile files.
#include "dispatcher/pack.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/dispatch/pack_bytes.h"
#include "tests/dispatch/support.h"

namespace aotriton::dispatcher {
namespace {

using pack_bytes::kIndexOffset;
using pack_bytes::Seal;
using pack_bytes::SetWord;
using pack_bytes::Word;
using support::Folder;

// The offset of record `record` of a section.
size_t Record(const std::string& bytes, const char* tag, uint32_t record) {
  for (uint32_t i = 0; i < Word(bytes, 28); ++i) {
    const size_t entry = kIndexOffset + 16 * i;
    if (bytes.compare(entry, 4, tag) == 0) return Word(bytes, entry + 12) + Word(bytes, entry + 4) * record;
  }
  ADD_FAILURE() << "no section " << tag;
  return 0;
}

// Reads everything that can be read; a reader that trusts its file leaves its memory here.
size_t Walk(const Pack& pack) {
  size_t sum = strlen(pack.Meta("arch"));
  for (uint32_t i = 0; i < pack.axis_count(); ++i) {
    sum += strlen(pack.axis_name(i));
    for (uint32_t v = 0; v < pack.axis_value_count(i); ++v) sum += strlen(pack.axis_value(i, v));
  }
  for (uint32_t i = 0; i < pack.argument_count(); ++i) sum += strlen(pack.argument(i).name) + strlen(pack.argument(i).type);
  for (uint32_t i = 0; i < pack.functional_count(); ++i) {
    const Pack::Functional functional = pack.functional(i);
    EXPECT_EQ(pack.FindFunctional(functional.number), i);
    for (uint32_t row = 0; row < functional.choice_count; ++row) sum += pack.choice(functional, row).variant;
    sum += pack.DescribeFunctional(i).size();
  }
  for (uint32_t i = 0; i < pack.variant_count(); ++i) {
    int32_t value = 0;
    sum += strlen(pack.variant(i).symbol) + strlen(pack.variant(i).hash) + pack.Constant(i, "BLOCK_M", &value);
  }
  if (pack.functional_count() > 0) {
    Bytes code;
    const Pack::Functional functional = pack.functional(pack.functional_count() / 2);
    if (pack.LoadCode(functional, functional.first_variant, &code).ok()) sum += code.data[code.size - 1];
  }
  return sum;
}

class PackTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/attn_fwd.pack"; }
  // Opens `bytes` as a file.
  Status Open(const std::string& bytes) {
    support::WriteFile(path(), bytes);
    return Pack::Open(path(), &pack_);
  }
  // The text of a refusal, which must name the file.
  std::string Refusal(const std::string& bytes) {
    const Status status = Open(bytes);
    EXPECT_EQ(status.code(), kInvalidImage) << status.text();
    EXPECT_NE(status.text().find(path()), std::string::npos) << status.text();
    return status.text();
  }

  Folder folder_;
  const std::string intact_ = support::ReadFile(support::PackOf("gfx942"));
  std::shared_ptr<const Pack> pack_;
};

TEST_F(PackTest, ReadsWhatWasWritten) {
  ASSERT_TRUE(Pack::Open(support::PackOf("gfx942"), &pack_).ok());
  EXPECT_STREQ(pack_->Meta("arch"), "gfx942");
  EXPECT_STREQ(pack_->Meta("nothing"), "");
  EXPECT_EQ(pack_->axis_count(), 6u);
  EXPECT_STREQ(pack_->axis_name(1), "head_dim");
  EXPECT_STREQ(pack_->axis_value(1, 3), "128");
  EXPECT_EQ(pack_->functional_count(), 74u);
  EXPECT_EQ(pack_->FindFunctional(1000000), -1);
  // dtype bf16 (1), head_dim 64 (2), causal, any, bias, dropout
  const int64_t index = pack_->FindFunctional(1 * 64 + 2 * 16 + 15);
  ASSERT_GE(index, 0);
  const Pack::Functional functional = pack_->functional(static_cast<uint32_t>(index));
  EXPECT_EQ(pack_->DescribeFunctional(static_cast<uint32_t>(index)), "dtype=bf16 head_dim=64 causal=1 layout=any bias=1 dropout=1");
  ASSERT_EQ(functional.choice_count, 2u);
  EXPECT_EQ(pack_->choice(functional, 0).max_seqlen_q, 512u);
  EXPECT_EQ(pack_->choice(functional, 1).max_seqlen_q, Pack::kUnbounded);
  for (const auto& [row, block_m] : {std::pair<uint32_t, int>{0, 64}, {1, 128}}) {
    const Pack::Choice choice = pack_->choice(functional, row);
    EXPECT_EQ(choice.max_seqlen_k, Pack::kUnbounded);
    EXPECT_EQ(choice.min_fill, 0u);
    const uint32_t variant = choice.variant;
    int32_t found = 0;
    ASSERT_TRUE(pack_->Constant(variant, "BLOCK_M", &found));
    EXPECT_EQ(found, block_m);
    EXPECT_EQ(pack_->DescribeConfig(variant), "BLOCK_M=" + std::to_string(block_m) + " BLOCK_N=32 num_stages=1");
    Bytes code;
    ASSERT_TRUE(pack_->LoadCode(functional, variant, &code).ok());
    const std::string id = "\nbf16.64.1.any.1.1.m" + std::to_string(block_m) + "\n";
    const std::string text(reinterpret_cast<const char*>(code.data.get()), code.size);
    EXPECT_NE(text.find(id), std::string::npos) << text;
  }
}

TEST_F(PackTest, NamesWhatIsWrongWithTheFile) {
  const Status missing = Pack::Open(folder_.path() + "/nothing.pack", &pack_);
  EXPECT_EQ(missing.code(), kFileNotFound);
  EXPECT_NE(missing.text().find("/nothing.pack cannot be opened: No such file"), std::string::npos) << missing.text();
  const Status folder = Pack::Open(folder_.path(), &pack_);
  EXPECT_EQ(folder.code(), kInvalidImage);
  EXPECT_NE(folder.text().find("is not a regular file"), std::string::npos) << folder.text();

  EXPECT_NE(Refusal("").find("has 0 bytes"), std::string::npos);
  std::string other_format = intact_;
  other_format[7] = '1';
  EXPECT_NE(Refusal(other_format).find("has format AOTPACK1; this library, version "), std::string::npos);
  EXPECT_NE(Refusal(other_format).find(", reads AOTPACK2"), std::string::npos);
  for (const char no_digit : {'\0', '\n', 'x'}) {  // in a message it would do harm
    other_format[7] = no_digit;
    EXPECT_NE(Refusal(other_format).find("is not a pack: it does not start with AOTPACK2"), std::string::npos);
  }
  EXPECT_NE(Refusal(std::string(1000, 'x')).find("is not a pack"), std::string::npos);
  EXPECT_NE(Refusal(intact_.substr(0, 1000)).find("has 1000 bytes, its header says"), std::string::npos);
  EXPECT_NE(Refusal(intact_ + "x").find("its header says"), std::string::npos);
  std::string flipped = intact_;
  flipped[200] ^= 1;
  EXPECT_NE(Refusal(flipped).find("CRC-32"), std::string::npos);
}

TEST_F(PackTest, RefusesEveryTruncation) {
  for (size_t length = 0; length < intact_.size(); length += length < 200 ? 1 : 89) {
    EXPECT_EQ(Open(intact_.substr(0, length)).code(), kInvalidImage) << length;
    // A truncation whose header was adapted.
    std::string adapted = intact_.substr(0, length);
    if (length < kIndexOffset) continue;
    const uint64_t size = length;
    memcpy(adapted.data() + 8, &size, 8);
    Seal(&adapted);
    EXPECT_EQ(Open(adapted).code(), kInvalidImage) << length;
  }
}

TEST_F(PackTest, ChecksEveryReference) {
  struct Lie {
    const char* tag;
    uint32_t record;
    uint32_t word;
    uint32_t value;
  };
  for (const Lie& lie : {
           Lie{"META", 0, 0, 0xFFFFFFFF}, {"META", 0, 1, 0x7FFFFFFF}, {"AXES", 0, 0, 0xFFFFFFFF}, {"AXES", 0, 1, 0xFFFFFFFF},
           {"AXES", 1, 2, 0},             {"AXES", 1, 2, 0xFFFFFFFF}, {"AVAL", 0, 0, 0x00FFFFFF}, {"FUNC", 0, 0, 0xFFFFFFFF},
           {"FUNC", 0, 1, 0xFFFFFFFF},    {"FUNC", 0, 2, 0xFFFFFFFF}, {"FUNC", 0, 3, 0xFFFFFFFF}, {"FUNC", 0, 4, 0xFFFFFFFF},
           {"FUNC", 0, 5, 0xFFFFFFFF},    {"FUNC", 0, 5, 0},          {"FUNC", 0, 6, 0xFFFFFFFF}, {"FUNC", 0, 7, 0xFFFFFFFF},
           {"FUNC", 0, 7, 0},             {"ARGS", 3, 0, 0xFFFFFFFF}, {"ARGS", 3, 1, 0xFFFFFFFF}, {"VARI", 0, 0, 0xFFFFFFFF},
           {"VARI", 0, 1, 0xFFFFFFFF},    {"VARI", 0, 2, 0xFFFFFFFF}, {"VARI", 0, 2, 0},          {"VARI", 0, 3, 0},
           {"VARI", 0, 3, 4096},          {"VARI", 0, 5, 0xFFFFFFFF}, {"VARI", 0, 6, 0xFFFFFFFF}, {"VARI", 0, 7, 0xFFFFFFFF},
           {"CONS", 0, 0, 0xFFFFFFFF},    {"CHOI", 0, 3, 2},          {"CHOI", 0, 3, 0xFFFFFFFF}, {"CHOI", 1, 0, 1000},
           {"CHOI", 1, 1, 0xFFFFFFFE},    {"CHOI", 1, 2, 1},
           {"BLOB", 0, 0, 0},             {"BLOB", 0, 0, 0xFFFFFFFF}, {"BLOB", 0, 1, 0xFFFFFFFF}, {"BLOB", 0, 2, 0xFFFFFFFF},
           {"BLOB", 0, 3, 0xFFFFFFFF},    {"BLOB", 0, 3, 0},
       }) {
    std::string bytes = intact_;
    SetWord(&bytes, Record(bytes, lie.tag, lie.record) + 4 * lie.word, lie.value);
    Seal(&bytes);
    const Status status = Open(bytes);
    EXPECT_EQ(status.code(), kInvalidImage) << lie.tag << " " << lie.record << " word " << lie.word << " = " << lie.value;
  }
}

TEST_F(PackTest, ChecksTheSectionTable) {
  for (uint32_t section = 0; section < 10; ++section) {
    for (const auto& [word, value] : {std::pair<uint32_t, uint32_t>{0, 0x41414141}, {1, 0}, {1, 64}, {2, 0xFFFFFFFF}, {3, 0},
                                      {3, 0xFFFFFFF8}, {3, 65}}) {
      std::string bytes = intact_;
      SetWord(&bytes, kIndexOffset + 16 * section + 4 * word, value);
      Seal(&bytes);
      EXPECT_EQ(Open(bytes).code(), kInvalidImage) << section << " word " << word << " = " << value;
    }
  }
  std::string bytes = intact_;
  SetWord(&bytes, 28, 0xFFFFFFFF);
  EXPECT_NE(Refusal(bytes).find("do not fit into its index"), std::string::npos);
}

TEST_F(PackTest, ADamagedBlobIsAnErrorOfItsLoad) {
  std::string bytes = intact_;
  const size_t blob = Record(bytes, "BLOB", 0);
  const uint32_t offset = Word(bytes, blob), stored = Word(bytes, blob + 8);
  ASSERT_TRUE(Open(bytes).ok());
  const Pack::Functional functional = pack_->functional(0);
  ASSERT_EQ(functional.blob, 0u);
  for (uint32_t i = 0; i < stored; i += 7) {
    std::string damaged = bytes;
    damaged[offset + i] ^= 0x10;
    ASSERT_TRUE(Open(damaged).ok());
    Bytes code;
    const Status status = pack_->LoadCode(functional, functional.first_variant, &code);
    ASSERT_EQ(status.code(), kInvalidImage) << i;
    ASSERT_NE(status.text().find("blob 0 of the pack " + path()), std::string::npos) << status.text();
  }
  // Another unpacked length than announced.
  for (int difference : {-1, 1, 1000}) {
    std::string lying = bytes;
    SetWord(&lying, blob + 12, Word(bytes, blob + 12) + difference);
    Seal(&lying);
    if (!Open(lying).ok()) continue;
    Bytes code;
    EXPECT_EQ(pack_->LoadCode(functional, functional.first_variant, &code).code(), kInvalidImage) << difference;
  }
}

TEST_F(PackTest, AFileThatShrinksLaterIsAnErrorOfItsLoad) {
  ASSERT_TRUE(Open(intact_).ok());
  support::WriteFile(path(), intact_.substr(0, 100));  // in place, as a bad installer does
  Bytes code;
  const Pack::Functional functional = pack_->functional(0);
  const Status status = pack_->LoadCode(functional, functional.first_variant, &code);
  EXPECT_EQ(status.code(), kInvalidImage);
  EXPECT_NE(status.text().find("truncated"), std::string::npos) << status.text();
}

TEST_F(PackTest, APackInMemoryIsReadLikeAFile) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(intact_.data());
  ASSERT_TRUE(Pack::Open("embedded:x.pack", bytes, intact_.size(), &pack_).ok());
  EXPECT_EQ(pack_->path(), "embedded:x.pack");
  const size_t sum = Walk(*pack_);
  ASSERT_TRUE(Open(intact_).ok());
  EXPECT_EQ(Walk(*pack_), sum);
  for (size_t size : {size_t{0}, size_t{63}, size_t{1000}, intact_.size() - 1}) {
    const Status status = Pack::Open("embedded:x.pack", bytes, size, &pack_);
    EXPECT_EQ(status.code(), kInvalidImage);
    EXPECT_EQ(status.text().find("the pack embedded:x.pack has " + std::to_string(size) + " bytes"), 0u) << status.text();
  }
}

}  // namespace
}  // namespace aotriton::dispatcher
