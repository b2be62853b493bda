// What the callers' programs share: a GPU that logs its launches, and tensors as PyTorch lays them out.
#ifndef AOTRITON_TESTS_CALLERS_CALLER_H_
#define AOTRITON_TESTS_CALLERS_CALLER_H_

#include <aotriton/aotriton.h>
#include <aotriton/flash.h>
#include <aotriton/runtime.h>
#include <aotriton/util.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/dispatch/fake_hip.h"
#include "tests/dispatch/images.h"

namespace caller {

using AOTRITON_NS::DType;
using AOTRITON_NS::TensorView;

inline constexpr float kNatural = 0.6931471805599453f;  // kernels' lse_scale: they hold base 2
inline constexpr float kBaseTwo = 1;

template <int Rank>
TensorView<Rank> Contiguous(uintptr_t address, std::array<uint64_t, Rank> sizes, DType dtype) {
  std::array<uint64_t, Rank> strides;
  uint64_t stride = 1;
  for (int i = Rank; i-- > 0; stride *= sizes[i]) strides[i] = stride;
  return TensorView<Rank>(static_cast<intptr_t>(address), sizes, strides, dtype);
}

// (batch, head, sequence, head_dim) over memory (batch, sequence, head, head_dim).
inline TensorView<4> Bshd(uintptr_t address, uint64_t b, uint64_t h, uint64_t s, uint64_t d, DType dtype = DType::kBFloat16) {
  return TensorView<4>(static_cast<intptr_t>(address), {b, h, s, d}, {s * h * d, d, h * d, 1}, dtype);
}

// A scalar of the device; what PyTorch makes of an int64 tensor.
inline TensorView<0> Scalar(uintptr_t address, DType dtype = DType::kInt64) {
  return TensorView<0>(static_cast<intptr_t>(address), dtype);
}

class CallerTest : public testing::Test {
 protected:
  void SetUp() override {
    images_.Install("gfx942");
    const int device = fake_hip::AddDevice("gfx942:sramecc+:xnack-");
    stream_ = fake_hip::AddStream(device);
    ASSERT_EQ(hipSetDevice(device), hipSuccess);
    fake_hip::Clear();
  }

  static std::vector<std::string> Symbols() {
    std::vector<std::string> symbols;
    for (const fake_hip::Launch& launch : fake_hip::Launches()) symbols.push_back(launch.symbol);
    return symbols;
  }

  // Every launch that reads or writes logsumexp takes it in that base.
  static void ExpectBase(float lse_scale) {
    int found = 0;
    for (const fake_hip::Launch& launch : fake_hip::Launches()) {
      const auto argument = launch.arguments.find("lse_scale");
      if (argument == launch.arguments.end()) continue;
      ++found;
      EXPECT_EQ(argument->second.real(), lse_scale) << launch.symbol;
    }
    EXPECT_GT(found, 0);
  }

  support::Images images_;
  hipStream_t stream_ = nullptr;
};

inline const std::vector<std::string> kSplit = {"bwd_preprocess", "bwd_dkdv", "bwd_dq"};

// What the attention of these programs is about: batch 2, 4 heads, 100 queries, 120 keys, head_dim 64;
// 3 sequences of 130 queries and 150 keys together, of at most 60 and 70.
inline constexpr uint64_t kBatch = 2, kHeads = 4, kQueries = 100, kKeys = 120, kDim = 64;
inline constexpr uint64_t kSequences = 3, kTotalQ = 130, kTotalK = 150;
inline constexpr int32_t kMaxQ = 60, kMaxK = 70;

}  // namespace caller

#endif  // AOTRITON_TESTS_CALLERS_CALLER_H_
