// What AOTRITON_DEBUG_LEVEL makes the library tell. The level is read once: each test of a level is a run
// of this program with another environment (BUILD.bazel).
#include <aotriton/aotriton.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "tests/dispatch/fake_hip.h"
#include "tests/dispatch/support.h"

namespace {

// What `call` leaves on stderr.
template <typename Call>
std::string Told(const Call& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(LogTest, TellsWhatTheLevelAsksFor) {
  const char* const value = getenv("AOTRITON_DEBUG_LEVEL");
  const int level = value != nullptr && std::string(value) != "verbose" ? atoi(value) : 0;
  support::Images images;
  images.Install("gfx942");
  const std::string missing = images.PathOf("gfx942", "amd", "bwd_dkdv");
  ASSERT_EQ(unlink(missing.c_str()), 0);
  const hipStream_t stream = fake_hip::AddStream(fake_hip::AddDevice("gfx942:sramecc+:xnack-", 304));
  aotriton_attn_fwd_args args = support::Call();
  aotriton_attn_bwd_args backward = support::BackwardCall();
  const std::string told = Told([&] {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(aotriton_attn_fwd(&args, stream), 0) << aotriton_last_error();
    EXPECT_EQ(aotriton_attn_bwd(&backward, stream), 0) << aotriton_last_error();
    backward.delta = {};
    EXPECT_EQ(aotriton_attn_bwd(&backward, stream), 0) << aotriton_last_error();
    args.q.dtype = 77;
    EXPECT_NE(aotriton_attn_fwd(&args, stream), 0);
  });
  const std::string pack = images.PathOf("gfx942");
  struct Line {
    int level;
    int count;
    std::string text;
  };
  for (const Line& line : {
           Line{1, 1, "aotriton: q has dtype 77; supported are fp32 (1), fp16 (2) and bf16 (3)\n"},
           Line{1, 1, "aotriton: attn_bwd passes over the backend triton_split: there is no pack of bwd_dkdv for this GPU, gfx942: tried " + missing},
           Line{2, 1, "aotriton: the driver is that of amd\n"},
           Line{2, 1, "aotriton: device 0 of amd is gfx942:sramecc+:xnack- with 304 multiprocessors\n"},
           Line{2, 1, "aotriton: opened the pack " + pack + " (74 functionals, 148 code objects, of version 0.0.1) for gfx942\n"},
           Line{2, 1, "aotriton: loaded the code object attn_fwd ("},
           Line{2, 1, "aotriton: loaded the code object bwd_fused ("},
           Line{3, 2, "aotriton: attn_fwd: bf16, q sizes (2, 8, 1000, 64), k sizes (2, 2, 700, 64), head_dim of v 64\n"},
           Line{3, 1, "aotriton: attn_bwd passes over the backend triton_split: it needs a delta, the call has none\n"},
           Line{3, 2, "aotriton: attn_bwd: bf16, q sizes (2, 8, 1000, 64), k sizes (2, 2, 700, 64), head_dim of v 64, with bias\n"},
           Line{3, 2, "aotriton: launch of attn_fwd [dtype=bf16 head_dim=64 causal=0 layout=aligned bias=0 dropout=0] [BLOCK_M=128 BLOCK_N=32 "
                      "num_stages=1], row 2 of 2 of its tuning table: seqlen_q any, seqlen_k any, fill from 0%; grid 128, 256 threads, "
                      "8192 bytes shared; device 0, stream 0x"},
       }) {
    EXPECT_EQ(CountOf(told, line.text), level >= line.level ? line.count : 0) << line.text << "\nin\n" << told;
  }
  const int lines[] = {0, 2, 9, 18};
  EXPECT_EQ(CountOf(told, "\n"), lines[level] + (level == 0 && value != nullptr && std::string(value) == "verbose")) << told;
  if (value != nullptr && std::string(value) == "verbose") {
    EXPECT_EQ(told, "aotriton: AOTRITON_DEBUG_LEVEL is \"verbose\"; it must be 0, 1, 2 or 3: nothing is logged\n");
  }
}

}  // namespace
