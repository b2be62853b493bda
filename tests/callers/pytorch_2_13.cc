// As PyTorch 2.13 calls AOTriton 0.12 and 0.13: without the v2 functions but two, workspaces by callbacks
// that take the tensor itself, logsumexp compact, options for determinism.
#define AOTRITON_V2_API_FLASH_ATTN_H  // the guard of the header that this PyTorch does without
#include "tests/callers/caller.h"

namespace {

using namespace caller;
using namespace aotriton::v3::flash;

static_assert(AOTRITON_VERSION_MAJOR * 100 + AOTRITON_VERSION_MINOR >= 12);
static_assert(attn_fwd_params::kVersion == 3 && attn_bwd_params::kVersion == 6);

struct Context {
  int acquired = 0;
};

aotriton::TensorView<2> Acquire(LT2* self) {
  ++static_cast<Context*>(self->cookie)->acquired;
  return Contiguous<2>(0x51000, {kHeads, kTotalQ}, DType::kFloat32);
}

void Dispose(LT2*) {}

class PyTorch213 : public CallerTest {
 protected:
  static attn_fwd_params Forward() {
    attn_fwd_params params;
    params.Q = Bshd(0x10000, 1, kHeads, kTotalQ, kDim);
    params.K = Bshd(0x20000, 1, kHeads / 2, kTotalK, kDim);  // GQA
    params.V = Bshd(0x30000, 1, kHeads / 2, kTotalK, kDim);
    params.Sm_scale = 0.125f;
    params.L = Contiguous<2>(0x50000, {kHeads, kTotalQ}, DType::kFloat32);
    params.Out = Bshd(0x40000, 1, kHeads, kTotalQ, kDim);
    params.cu_seqlens_q = Contiguous<1>(0xD0000, {kSequences + 1}, DType::kInt32);
    params.cu_seqlens_k = Contiguous<1>(0xD1000, {kSequences + 1}, DType::kInt32);
    params.Max_seqlen_q = kMaxQ;
    params.Max_seqlen_k = kMaxK;
    params.dropout_p = 0;
    params.philox_seed_ptr = Scalar(0xE0000);
    params.philox_offset1 = Scalar(0xE0008);
    params.philox_offset2 = 0;
    params.philox_seed_output = T0::get_null_tensor(DType::kInt64);
    params.philox_offset_output = T0::get_null_tensor(DType::kInt64);
    params.encoded_softmax = T4::get_null_tensor(DType::kBFloat16);
    params.persistent_atomic_counter = T0::get_null_tensor(DType::kInt32);
    params.causal_type = CausalType::WindowedAttention;
    params.varlen_type = VarlenType::CompactVarlen;
    params.window_left = kMaxQ;  // the caller's word for "no bound"
    params.window_right = WindowValue::BottomRightAligned;
    return params;
  }
};

TEST_F(PyTorch213, CompactVarlenForwardAndBackward) {
  ASSERT_EQ(aotriton::v2::flash::check_gpu(stream_), hipSuccess);
  const attn_fwd_params forward = Forward();
  ASSERT_EQ(attn_fwd(forward, attn_fwd_params::kVersion, stream_, nullptr), hipSuccess) << aotriton_last_error();
  Context context;
  attn_bwd_params params;
  params.Q = params.DQ = forward.Q;
  params.K = params.DK = forward.K;
  params.V = params.DV = forward.V;
  params.Sm_scale = forward.Sm_scale;
  params.Out = params.DO = forward.Out;
  params.L = forward.L;
  params.D.cookie = &context;
  params.D.acquire = Acquire;
  params.D.dispose = Dispose;
  params.cu_seqlens_q = forward.cu_seqlens_q;
  params.cu_seqlens_k = forward.cu_seqlens_k;
  params.Max_seqlen_q = kMaxQ;
  params.Max_seqlen_k = kMaxK;
  params.dropout_p = 0;
  params.philox_seed_ptr = forward.philox_seed_ptr;
  params.philox_offset1 = forward.philox_offset1;
  params.philox_offset2 = 0;
  params.causal_type = forward.causal_type;
  params.varlen_type = forward.varlen_type;
  params.window_left = forward.window_left;
  params.window_right = forward.window_right;
  attn_options options;
  options.deterministic = true;
  ASSERT_EQ(attn_bwd(params, attn_bwd_params::kVersion, stream_, &options), hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), (std::vector<std::string>{"attn_fwd", "bwd_preprocess", "bwd_dkdv", "bwd_dq"}));
  EXPECT_EQ(context.acquired, 1);
  EXPECT_EQ(params.D.cookie, nullptr);  // disposed of
  for (const fake_hip::Launch& launch : fake_hip::Launches()) {
    EXPECT_EQ(launch.arguments.at("lse_compact").integer(), 1);
    EXPECT_EQ(launch.arguments.at("stride_lh").integer(), static_cast<int64_t>(kTotalQ));
  }
  ExpectBase(kNatural);
}

// seqused_k: fewer keys of each sequence than its rows; lengths summed into a temporary.
TEST_F(PyTorch213, UsedKeysAreStrided) {
  attn_fwd_params params = Forward();
  params.varlen_type = VarlenType::StridedVarlen;
  params.cu_seqlens_k = Contiguous<1>(0xD2000, {kSequences + 1}, DType::kInt32);
  params.seq_strides_q = params.cu_seqlens_q;
  params.seq_strides_k = Contiguous<1>(0xD1000, {kSequences + 1}, DType::kInt32);
  ASSERT_EQ(attn_fwd(params, 3, stream_), hipSuccess) << aotriton_last_error();
  const fake_hip::Launch launch = fake_hip::Launches().at(0);
  EXPECT_EQ(launch.arguments.at("varlen_type").integer(), 3);
  EXPECT_EQ(launch.arguments.at("cu_seqlens_k").pointer(), reinterpret_cast<void*>(0xD2000));
  EXPECT_EQ(launch.arguments.at("seq_starts_k").pointer(), reinterpret_cast<void*>(0xD1000));
  EXPECT_EQ(launch.arguments.at("seq_starts_q").pointer(), reinterpret_cast<void*>(0xD0000));
}

// Memory-efficient attention with head dims of its own for V, and without logsumexp.
TEST_F(PyTorch213, TwoHeadDims) {
  attn_fwd_params params = Forward();
  params.Q = Bshd(0x10000, kBatch, kHeads, kQueries, 96);
  params.K = Bshd(0x20000, kBatch, kHeads, kKeys, 96);
  params.V = Bshd(0x30000, kBatch, kHeads, kKeys, 64);
  params.Out = Bshd(0x40000, kBatch, kHeads, kQueries, 64);
  params.L = T2::get_null_tensor(DType::kFloat32);
  params.cu_seqlens_q = params.cu_seqlens_k = T1();
  params.varlen_type = VarlenType::None;
  ASSERT_EQ(attn_fwd(params, 3, stream_), hipSuccess) << aotriton_last_error();
  const fake_hip::Launch launch = fake_hip::Launches().at(0);
  EXPECT_EQ(launch.id, "bf16.128.1.any.1.1.m64");
  EXPECT_EQ(launch.arguments.at("head_dim_qk").integer(), 96);
  EXPECT_EQ(launch.arguments.at("head_dim_vo").integer(), 64);
  EXPECT_EQ(launch.arguments.at("store_lse").integer(), 0);
}

TEST_F(PyTorch213, FillsTheMask) {
  ASSERT_EQ(aotriton::v2::flash::debug_simulate_encoded_softmax(Contiguous<4>(0xF0000, {1, 2, 3, 4}, DType::kFloat32), 0.1f, Scalar(0xE0000),
                                                                Scalar(0xE0008), 0, stream_),
            hipSuccess) << aotriton_last_error();
  EXPECT_EQ(Symbols(), (std::vector<std::string>{"debug_simulate_encoded_softmax"}));
}

}  // namespace
