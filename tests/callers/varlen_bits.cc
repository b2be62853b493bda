// As callers of AOTriton 0.14 say how sequences lie: a word in place of a type.
#define AOTRITON_V2_API_FLASH_ATTN_H
#include <cstring>

#include "tests/callers/caller.h"

namespace {

using namespace caller;
using namespace aotriton::v3::flash;

static_assert(AOTRITON_VERSION_MAJOR * 100 + AOTRITON_VERSION_MINOR == 14);
static_assert(attn_fwd_params::kVersion == 4 && attn_bwd_params::kVersion == 7);

constexpr VarlenMode kCompact = {VarlenStacked::THD, VarlenLength::CUMULATIVE, VarlenPosition::REUSE, 0};
constexpr VarlenMode kPadded = {VarlenStacked::BHSD, VarlenLength::CUMULATIVE, VarlenPosition::IMPLIED, 0};
constexpr VarlenMode kStrided = {VarlenStacked::THD, VarlenLength::CUMULATIVE, VarlenPosition::ARRAY, 0};
constexpr VarlenMode kUsed = {VarlenStacked::THD, VarlenLength::INDIVIDUAL, VarlenPosition::ARRAY, 0};
constexpr VarlenMode kDense = {VarlenStacked::BHSD, VarlenLength::MAX, VarlenPosition::IMPLIED, 0};

uint32_t Word(const VarlenBits& bits) {
  uint32_t word;
  memcpy(&word, &bits, sizeof(word));
  return word;
}

class VarlenBitsTest : public CallerTest {
 protected:
  static attn_fwd_params Dense() {
    attn_fwd_params params;
    params.Q = params.Out = Bshd(0x10000, kBatch, kHeads, kQueries, kDim);
    params.K = params.V = Bshd(0x20000, kBatch, kHeads, kKeys, kDim);
    params.L = Contiguous<2>(0x50000, {kBatch * kHeads, kQueries}, DType::kFloat32);
    return params;
  }

  static attn_fwd_params Compact() {
    attn_fwd_params params;
    params.Q = params.Out = Bshd(0x10000, 1, kHeads, kTotalQ, kDim);
    params.K = params.V = Bshd(0x20000, 1, kHeads, kTotalK, kDim);
    params.L = Contiguous<2>(0x50000, {kHeads, kTotalQ}, DType::kFloat32);
    params.seqinfo_q0 = Contiguous<1>(0xD0000, {kSequences + 1}, DType::kInt32);
    params.seqinfo_k0 = Contiguous<1>(0xD1000, {kSequences + 1}, DType::kInt32);
    params.Max_seqlen_q = kMaxQ;
    params.Max_seqlen_k = kMaxK;
    params.varlen_bits.qmode = params.varlen_bits.kmode = kCompact;
    return params;
  }

  static attn_bwd_params BackwardOf(const attn_fwd_params& forward) {
    attn_bwd_params params;
    params.Q = params.DQ = forward.Q;
    params.K = params.DK = forward.K;
    params.V = params.DV = forward.V;
    params.Out = params.DO = forward.Out;
    params.L = params.D.eager = forward.L;
    params.seqinfo_q0 = forward.seqinfo_q0;
    params.seqinfo_k0 = forward.seqinfo_k0;
    params.seqinfo_q1 = forward.seqinfo_q1;
    params.seqinfo_k1 = forward.seqinfo_k1;
    params.Max_seqlen_q = forward.Max_seqlen_q;
    params.Max_seqlen_k = forward.Max_seqlen_k;
    params.varlen_bits = forward.varlen_bits;
    return params;
  }

  // The forward's launch, and that the backward says the same.
  fake_hip::Launch Launch(const attn_fwd_params& params) {
    fake_hip::Clear();
    EXPECT_EQ(attn_fwd(params, attn_fwd_params::kVersion, stream_), hipSuccess) << aotriton_last_error();
    EXPECT_EQ(attn_bwd(BackwardOf(params), attn_bwd_params::kVersion, stream_), hipSuccess) << aotriton_last_error();
    EXPECT_EQ(Symbols(), (std::vector<std::string>{"attn_fwd", "bwd_preprocess", "bwd_dkdv", "bwd_dq"}));
    const fake_hip::Launch forward = fake_hip::Launches().at(0), dkdv = fake_hip::Launches().at(2);
    for (const char* name : {"varlen_type", "cu_seqlens_q", "cu_seqlens_k", "seq_starts_q", "seq_starts_k", "max_seqlen_q", "max_seqlen_k"}) {
      EXPECT_EQ(forward.arguments.at(name).bits, dkdv.arguments.at(name).bits) << name;
    }
    ExpectBase(kNatural);
    return forward;
  }

  void ExpectRefused(const attn_fwd_params& params, const std::string& text) {
    EXPECT_EQ(attn_fwd(params, 4, stream_), hipErrorNotSupported);
    EXPECT_EQ(aotriton_last_error(), text);
    EXPECT_EQ(attn_bwd(BackwardOf(params), 7, stream_), hipErrorNotSupported);
    EXPECT_EQ(aotriton_last_error(), text);
  }
};

TEST_F(VarlenBitsTest, WordsAreUpstreams) {
  EXPECT_EQ(Word({kDense, kDense, VarlenLseLayout::HT, 0}), 0u);
  EXPECT_EQ(Word({kCompact, kCompact, VarlenLseLayout::HT, 0}), 0x0B0Bu);
  EXPECT_EQ(Word({kPadded, kPadded, VarlenLseLayout::HT, 0}), 0x0202u);
  EXPECT_EQ(Word({kStrided, kStrided, VarlenLseLayout::TH, 0}), 0x11313u);
}

TEST_F(VarlenBitsTest, Compact) {
  const fake_hip::Launch launch = Launch(Compact());
  EXPECT_EQ(launch.arguments.at("varlen_type").integer(), 1);
  EXPECT_EQ(launch.arguments.at("cu_seqlens_k").pointer(), reinterpret_cast<void*>(0xD1000));
  EXPECT_EQ(launch.arguments.at("max_seqlen_k").integer(), kMaxK);
  EXPECT_EQ(launch.arguments.at("lse_compact").integer(), 1);
}

TEST_F(VarlenBitsTest, Padded) {
  attn_fwd_params params = Dense();
  params.seqinfo_q0 = Contiguous<1>(0xD0000, {kBatch + 1}, DType::kInt32);
  params.seqinfo_k0 = Contiguous<1>(0xD1000, {kBatch + 1}, DType::kInt32);
  params.varlen_bits.qmode = params.varlen_bits.kmode = kPadded;
  EXPECT_EQ(Launch(params).arguments.at("varlen_type").integer(), 2);
}

TEST_F(VarlenBitsTest, StridedOnEitherSide) {
  attn_fwd_params params = Compact();
  params.seqinfo_q1 = Contiguous<1>(0xD2000, {kSequences}, DType::kInt32);
  params.seqinfo_k1 = Contiguous<1>(0xD3000, {kSequences}, DType::kInt32);
  params.varlen_bits.qmode = params.varlen_bits.kmode = kStrided;
  fake_hip::Launch launch = Launch(params);
  EXPECT_EQ(launch.arguments.at("varlen_type").integer(), 3);
  EXPECT_EQ(launch.arguments.at("seq_starts_q").pointer(), reinterpret_cast<void*>(0xD2000));
  EXPECT_EQ(launch.arguments.at("seq_starts_k").pointer(), reinterpret_cast<void*>(0xD3000));
  // Queries one after another: they begin where their lengths add up to.
  params.seqinfo_q1 = T1();
  params.varlen_bits.qmode = kCompact;
  launch = Launch(params);
  EXPECT_EQ(launch.arguments.at("varlen_type").integer(), 3);
  EXPECT_EQ(launch.arguments.at("seq_starts_q").pointer(), reinterpret_cast<void*>(0xD0000));
  EXPECT_EQ(launch.arguments.at("seq_starts_k").pointer(), reinterpret_cast<void*>(0xD3000));
}

// The constructor that is imported by callers built against upstream's headers ends before the bits.
TEST_F(VarlenBitsTest, WithoutLengthsTheBitsAreNotRead) {
  attn_fwd_params params = Dense();
  memset(&params.varlen_bits, 0xA5, sizeof(params.varlen_bits));
  EXPECT_EQ(Launch(params).arguments.at("varlen_type").integer(), 0);
}

TEST_F(VarlenBitsTest, WhatIsNotSupportedIsRefused) {
  const std::string rest =
      "; supported are 0 and 0 (dense), 2 and 2 (padded), and each of 11 (compact) and 19 (strided) with each. Give lengths as cumulative sums";
  attn_fwd_params params = Compact();
  params.varlen_bits.kmode = kUsed;
  ExpectRefused(params, "varlen_bits has qmode 11 and kmode 21" + rest);
  params.varlen_bits.kmode = kPadded;
  ExpectRefused(params, "varlen_bits has qmode 11 and kmode 2" + rest);
  params = Compact();
  params.varlen_bits.lse_layout = VarlenLseLayout::TH;
  ExpectRefused(params, "varlen_bits has lse_layout 1; it must be 0 (HT), with reserved bits of 0");
  params = Compact();
  params.varlen_bits.qmode = params.varlen_bits.kmode = kDense;
  EXPECT_EQ(attn_fwd(params, 4, stream_), hipErrorInvalidValue);
  EXPECT_STREQ(aotriton_last_error(), "cu_seqlens_q is given, and varlen_type is 0 (none), which does not use it: pass null");
}

}  // namespace
