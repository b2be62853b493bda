// Calls that were right until a few of their numbers changed: each is carried out or refused with a text,
// and a refused one has launched nothing. Device memory is unmapped here, so nobody reads it.
#include <aotriton/aotriton.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "tests/dispatch/fake_hip.h"
#include "tests/dispatch/support.h"

namespace {

constexpr int kCalls = 20000;

// Changes 1 to 3 words of what follows struct_size.
template <typename Args>
void Spoil(std::mt19937* random, Args* args) {
  auto* bytes = reinterpret_cast<unsigned char*>(args);
  for (uint32_t changes = 1 + (*random)() % 3; changes > 0; --changes) {
    const size_t place = 4 + 4 * ((*random)() % (sizeof(Args) / 4 - 1));
    uint64_t old = 0;  // it may wrap around
    const size_t width = place % 8 == 0 ? 8 : 4;
    memcpy(&old, bytes + place, width);
    const uint64_t values[] = {0, 1, 2, 3, 7, 12, 13, 16, 64, 65, 255, 512, 1 << 30, INT32_MAX, UINT32_MAX, uint64_t{1} << 40, INT64_MAX,
                               uint64_t{1} << 63, UINT64_MAX, old + 1, old - 1, old * 2, old / 2, (*random)()};
    const uint64_t value = values[(*random)() % std::size(values)];
    memcpy(bytes + place, &value, width);
  }
}

class RefusalsTest : public testing::Test {
 protected:
  void SetUp() override {
    images_.Install("gfx942");
    stream_ = fake_hip::AddStream(fake_hip::AddDevice("gfx942"));
    fake_hip::Clear();
  }

  template <typename Args, typename Call>
  void Try(const Args& right, const Call& call) {
    const Args args = [&] {
      Args spoiled = right;
      Spoil(&random_, &spoiled);
      return spoiled;
    }();
    const Args before = args;
    const aotriton_status status = call(&args, stream_);
    const std::string text = aotriton_last_error();
    EXPECT_EQ(memcmp(&args, &before, sizeof(args)), 0);
    if (status == 0) {
      EXPECT_EQ(text, "");
      ++accepted_;
    } else {
      EXPECT_GT(text.size(), 15u) << status;
      EXPECT_TRUE(fake_hip::Launches().empty()) << text;
      ++refused_[status];
      ++texts_[text.substr(0, text.find(' '))];
    }
    fake_hip::Clear();
  }

  support::Images images_;
  hipStream_t stream_ = nullptr;
  std::mt19937 random_{20240229};
  int accepted_ = 0;
  std::map<int, int> refused_;
  std::map<std::string, int> texts_;  // by their first word
};

TEST_F(RefusalsTest, EveryCallIsCarriedOutOrRefusedWithAText) {
  aotriton_attn_fwd_args forward = support::Call(), compact_forward = support::Call();
  forward.bias = support::BackwardCall().bias;
  forward.dropout_p = 0.5f;
  forward.philox_seed = forward.philox_offset1 = reinterpret_cast<const uint64_t*>(0xE0000);
  aotriton_attn_bwd_args backward = support::BackwardCall(), compact_backward = support::BackwardCall();
  support::MakeCompact(&compact_forward);
  support::MakeCompact(&compact_backward);
  for (int i = 0; i < kCalls; ++i) {
    switch (i % 4) {
      case 0: Try(forward, aotriton_attn_fwd); break;
      case 1: Try(compact_forward, aotriton_attn_fwd); break;
      case 2: Try(backward, aotriton_attn_bwd); break;
      case 3: Try(compact_backward, aotriton_attn_bwd); break;
    }
  }
  int refused = 0;
  for (const auto& [status, count] : refused_) {
    printf("status %d: %d\n", status, count);
    refused += count;
  }
  printf("%d calls: %d carried out, %d refused, about %zu things\n", kCalls, accepted_, refused, texts_.size());
  EXPECT_EQ(accepted_ + refused, kCalls);
  EXPECT_GT(accepted_, kCalls / 10);
  EXPECT_GT(refused, kCalls / 4);
  EXPECT_GT(texts_.size(), 20u);
  // The library's own answers: none of the runtime's, and nothing unexpected.
  for (const auto& [status, count] : refused_) EXPECT_TRUE(status == hipErrorInvalidValue || status == hipErrorNotSupported || status == 6) << status;
}

}  // namespace
