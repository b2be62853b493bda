// Sizes and offsets of what the headers of a claim declare, against layouts.txt. Upstream's structs were
// never versioned by size: a built caller reads and writes at these offsets.
#include <aotriton/flash.h>
#include <aotriton/util.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace aotriton;
using namespace aotriton::v3::flash;

using Layout = std::map<std::string, size_t>;

// Struct, member; lists that differ by claim are put together from these.
#define SIZE(type) {#type, sizeof(type)}
#define FIELD(type, field) {#type "." #field, offsetof(type, field)}

Layout Compiled() {
  Layout layout = {
      SIZE(TensorView<0>), SIZE(TensorView<1>), SIZE(TensorView<2>), SIZE(TensorView<3>), SIZE(TensorView<4>),
      SIZE(attn_options),
      SIZE(attn_fwd_params),
      FIELD(attn_fwd_params, Q), FIELD(attn_fwd_params, K), FIELD(attn_fwd_params, V), FIELD(attn_fwd_params, B),
      FIELD(attn_fwd_params, A), FIELD(attn_fwd_params, Sm_scale), FIELD(attn_fwd_params, L), FIELD(attn_fwd_params, Out),
      FIELD(attn_fwd_params, Max_seqlen_q), FIELD(attn_fwd_params, Max_seqlen_k), FIELD(attn_fwd_params, dropout_p),
      FIELD(attn_fwd_params, philox_seed_ptr), FIELD(attn_fwd_params, philox_offset1), FIELD(attn_fwd_params, philox_offset2),
      FIELD(attn_fwd_params, philox_seed_output), FIELD(attn_fwd_params, philox_offset_output),
      FIELD(attn_fwd_params, encoded_softmax), FIELD(attn_fwd_params, persistent_atomic_counter),
      FIELD(attn_fwd_params, causal_type), FIELD(attn_fwd_params, window_left), FIELD(attn_fwd_params, window_right),
      SIZE(attn_bwd_params),
      FIELD(attn_bwd_params, Q), FIELD(attn_bwd_params, K), FIELD(attn_bwd_params, V), FIELD(attn_bwd_params, B),
      FIELD(attn_bwd_params, Sm_scale), FIELD(attn_bwd_params, Out), FIELD(attn_bwd_params, DO), FIELD(attn_bwd_params, DK),
      FIELD(attn_bwd_params, DV), FIELD(attn_bwd_params, DQ), FIELD(attn_bwd_params, DB), FIELD(attn_bwd_params, L),
      FIELD(attn_bwd_params, D), FIELD(attn_bwd_params, Max_seqlen_q), FIELD(attn_bwd_params, Max_seqlen_k),
      FIELD(attn_bwd_params, dropout_p), FIELD(attn_bwd_params, philox_seed_ptr), FIELD(attn_bwd_params, philox_offset1),
      FIELD(attn_bwd_params, philox_offset2), FIELD(attn_bwd_params, causal_type), FIELD(attn_bwd_params, window_left),
      FIELD(attn_bwd_params, window_right),
      {"attn_fwd_params::kVersion", attn_fwd_params::kVersion},
      {"attn_bwd_params::kVersion", attn_bwd_params::kVersion},
  };
#if AOTRITON_VERSION_MINOR >= 14
  layout.insert({
      SIZE(VarlenMode), SIZE(VarlenBits), FIELD(VarlenBits, qmode), FIELD(VarlenBits, kmode),
      FIELD(attn_fwd_params, seqinfo_q0), FIELD(attn_fwd_params, seqinfo_k0), FIELD(attn_fwd_params, seqinfo_q1),
      FIELD(attn_fwd_params, seqinfo_k1), FIELD(attn_fwd_params, varlen_bits),
      FIELD(attn_bwd_params, seqinfo_q0), FIELD(attn_bwd_params, seqinfo_k0), FIELD(attn_bwd_params, seqinfo_q1),
      FIELD(attn_bwd_params, seqinfo_k1), FIELD(attn_bwd_params, varlen_bits),
  });
#else
  layout.insert({
      FIELD(attn_fwd_params, cu_seqlens_q), FIELD(attn_fwd_params, cu_seqlens_k), FIELD(attn_fwd_params, varlen_type),
      FIELD(attn_bwd_params, cu_seqlens_q), FIELD(attn_bwd_params, cu_seqlens_k), FIELD(attn_bwd_params, varlen_type),
  });
#endif
#if AOTRITON_VERSION_MINOR == 12 || AOTRITON_VERSION_MINOR == 13
  layout.insert({
      FIELD(attn_fwd_params, seq_strides_q), FIELD(attn_fwd_params, seq_strides_k),
      FIELD(attn_bwd_params, seq_strides_q), FIELD(attn_bwd_params, seq_strides_k),
  });
#endif
#if AOTRITON_VERSION_MINOR >= 12
  layout.insert({
      FIELD(LazyTensor<2>, eager), FIELD(LazyTensor<4>, eager), FIELD(attn_options, deterministic),
  });
#endif
#if AOTRITON_VERSION_MINOR >= 11
  layout.insert({
      SIZE(LazyTensor<2>), FIELD(LazyTensor<2>, cookie), FIELD(LazyTensor<2>, acquire), FIELD(LazyTensor<2>, dispose),
      SIZE(LazyTensor<4>), FIELD(LazyTensor<4>, cookie), FIELD(LazyTensor<4>, acquire), FIELD(LazyTensor<4>, dispose),
      FIELD(attn_options, force_backend_index), FIELD(attn_bwd_params, DQ_ACC),
  });
#endif
  return layout;
}

// A line is a name and a number for each claim, "-" where the claim has no such thing.
Layout Expected() {
  std::ifstream table("tests/callers/layouts.txt");
  Layout layout;
  std::vector<std::string> claims;
  for (std::string line; std::getline(table, line);) {
    std::istringstream words(line);
    std::string name, word;
    words >> name;
    std::vector<std::string> numbers;
    while (words >> word) numbers.push_back(word);
    if (claims.empty()) {
      claims = numbers;
      continue;
    }
    EXPECT_EQ(numbers.size(), claims.size()) << line;
    for (size_t i = 0; i < numbers.size() && i < claims.size(); ++i) {
      if (claims[i] == "0." + std::to_string(AOTRITON_VERSION_MINOR) && numbers[i] != "-") layout[name] = std::stoul(numbers[i]);
    }
  }
  return layout;
}

TEST(LayoutsTest, AreThoseOfTheTable) {
  const Layout compiled = Compiled(), expected = Expected();
  ASSERT_GT(expected.size(), 50u);
  for (const auto& [name, number] : compiled) {
    const auto found = expected.find(name);
    ASSERT_NE(found, expected.end()) << name;
    EXPECT_EQ(number, found->second) << name;
  }
  EXPECT_EQ(compiled.size(), expected.size());
}

}  // namespace
