// What is accepted, which code object is chosen, and what it is launched with: no GPU, no runtime.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "dispatcher/attn_fwd.h"
#include "dispatcher/attn_fwd_triton.h"
#include "dispatcher/pack.h"
#include "tests/dispatch/support.h"

namespace aotriton::dispatcher {
namespace {

Tensor Make(int32_t dtype, support::Shape sizes, uintptr_t address) {
  const aotriton_tensor t = support::Tensor(dtype, sizes, address);
  Tensor out;
  out.data = t.data;
  out.dtype = t.dtype;
  out.rank = t.rank;
  for (int i = 0; i < 4; ++i) {
    out.sizes[i] = t.sizes[i];
    out.strides[i] = t.strides[i];
  }
  return out;
}

AttnFwd Op(int32_t dtype, support::Shape q, int64_t num_head_k, int64_t seqlen_k, int64_t head_dim_vo) {
  AttnFwd op;
  op.q = Make(dtype, q, 0x10000);
  op.k = Make(dtype, {q[0], num_head_k, seqlen_k, q[3]}, 0x20000);
  op.v = Make(dtype, {q[0], num_head_k, seqlen_k, head_dim_vo}, 0x30000);
  op.out = Make(dtype, {q[0], q[1], q[2], head_dim_vo}, 0x40000);
  op.sm_scale = 0.5f;
  return op;
}

AttnFwd Op(int64_t head_dim_qk = 64, int64_t head_dim_vo = 64) {
  return Op(kBFloat16, {2, 8, 1000, head_dim_qk}, 2, 700, head_dim_vo);
}

class PlanTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Bind(support::PackOf("gfx942")).ok()); }

  Status Bind(const std::string& path) {
    std::shared_ptr<const Pack> pack;
    if (Status status = Pack::Open(path, &pack); !status.ok()) return status;
    return AttnFwdTriton::Bind(pack, "amd", "gfx942", &backend_);
  }

  Status MakePlan(const AttnFwd& op) {
    if (Status status = Validate(op); !status.ok()) return status;
    return backend_->Make(op, &plan_);
  }

  // What the chosen code object calls itself, "bf16.64.0.aligned.m128", or the refusal.
  std::string Chosen(const AttnFwd& op) {
    if (Status status = MakePlan(op); !status.ok()) return status.text();
    if (plan_.launch_count == 0) return "";
    const Launch& launch = plan_.launches[0];
    Bytes code;
    EXPECT_TRUE(launch.pack->LoadCode(launch.pack->functional(launch.functional), launch.variant, &code).ok());
    const std::string text(reinterpret_cast<const char*>(code.data.get()), code.size);
    const size_t begin = text.find("gfx942\n") + 7;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  const Argument& Find(const std::string& name) const {
    static const Argument none;
    for (int i = 0; i < plan_.launches[0].argument_count; ++i) {
      if (name == plan_.launches[0].arguments[i].name) return plan_.launches[0].arguments[i];
    }
    ADD_FAILURE() << "no argument " << name;
    return none;
  }
  bool Has(const std::string& name) const {
    for (int i = 0; i < plan_.launches[0].argument_count; ++i) {
      if (name == plan_.launches[0].arguments[i].name) return true;
    }
    return false;
  }

  std::shared_ptr<const AttnFwdTriton> backend_;
  Plan plan_;
};

TEST_F(PlanTest, BindsArgumentsByName) {
  AttnFwd op = Op(kFloat16, {3, 6, 600, 48}, 2, 77, 40);
  op.is_windowed = true;
  op.window_left = 12;
  op.window_right = kWindowBottomRight;
  op.logsumexp = Make(kFloat32, {1, 1, 18, 600}, 0x50000);
  op.logsumexp.rank = 2;
  for (int i = 0; i < 2; ++i) {
    op.logsumexp.sizes[i] = op.logsumexp.sizes[i + 2];
    op.logsumexp.strides[i] = op.logsumexp.strides[i + 2];
  }
  op.v.strides[0] = 1 << 20;
  op.v.strides[1] = 40;
  op.v.strides[2] = int64_t{5} << 32;
  ASSERT_EQ(Chosen(op), "fp16.64.1.any.m128");
  const Launch& launch = plan_.launches[0];
  EXPECT_EQ(launch.grid, 5u * 6 * 3);  // cdiv(600, 128) tiles
  EXPECT_EQ(launch.threads, 256u);
  EXPECT_EQ(launch.shared, 64u * 128);
  EXPECT_EQ(Find("Q").value.pointer, op.q.data);
  EXPECT_EQ(Find("K").value.pointer, op.k.data);
  EXPECT_EQ(Find("V").value.pointer, op.v.data);
  EXPECT_EQ(Find("Out").value.pointer, op.out.data);
  EXPECT_EQ(Find("L").value.pointer, op.logsumexp.data);
  EXPECT_EQ(Find("sm_scale").value.fp32, 0.5f);
  const std::map<std::string, int64_t> strides = {
      {"stride_qz", 6 * 600 * 48}, {"stride_qh", 600 * 48}, {"stride_qm", 48}, {"stride_kz", 2 * 77 * 48},
      {"stride_kh", 77 * 48},      {"stride_kn", 48},       {"stride_vz", 1 << 20}, {"stride_vh", 40},
      {"stride_vn", int64_t{5} << 32}, {"stride_oz", 6 * 600 * 40}, {"stride_oh", 600 * 40}, {"stride_om", 40}};
  for (const auto& [name, value] : strides) EXPECT_EQ(Find(name).value.i64, value) << name;
  const std::map<std::string, int32_t> numbers = {
      {"num_head_q", 6}, {"num_head_k", 2}, {"seqlen_q", 600}, {"seqlen_k", 77}, {"head_dim_qk", 48}, {"head_dim_vo", 40},
      {"window_left", 12}, {"window_right", kWindowBottomRight}, {"store_lse", 1}};
  for (const auto& [name, value] : numbers) EXPECT_EQ(Find(name).value.i32, value) << name;
  EXPECT_EQ(Find("lse_scale").value.fp32, 0.6931471805599453f);
  EXPECT_EQ(Find("global_scratch").value.pointer, nullptr);
  EXPECT_EQ(Find("profile_scratch").value.pointer, nullptr);
}

TEST_F(PlanTest, OmitsWhatTheKernelCompiledIn) {
  ASSERT_EQ(Chosen(Op()), "bf16.64.0.aligned.m128");
  EXPECT_FALSE(Has("head_dim_qk"));
  EXPECT_FALSE(Has("window_left"));
  EXPECT_EQ(Find("store_lse").value.i32, 0);
  EXPECT_EQ(Find("L").value.pointer, nullptr);
}

TEST_F(PlanTest, RoundsHeadDimsUp) {
  EXPECT_EQ(Chosen(Op(1, 1)), "bf16.16.0.any.m128");
  EXPECT_EQ(Chosen(Op(16, 16)), "bf16.16.0.aligned.m128");
  EXPECT_EQ(Chosen(Op(17, 17)), "bf16.32.0.any.m128");
  EXPECT_EQ(Chosen(Op(128, 64)), "bf16.128.0.any.m128");
  EXPECT_EQ(Chosen(Op(64, 128)), "bf16.128.0.any.m128");
  EXPECT_EQ(Chosen(Op(128, 128)), "bf16.128.0.aligned.m128");
  EXPECT_NE(Chosen(Op(129, 8)).find("head_dim is 129 (129 of q and k, 8 of v and out)"), std::string::npos);
  EXPECT_NE(Chosen(Op(64, 512)).find("holds up to 128"), std::string::npos);
  EXPECT_EQ(MakePlan(Op(64, 512)).code(), kNotSupported);
}

TEST_F(PlanTest, ServesHolesByTheNextTile) {
  // fp32 has no kernel of 16.
  EXPECT_EQ(Chosen(Op(kFloat32, {1, 1, 10, 16}, 1, 10, 16)), "fp32.32.0.any.m64");
  // Windowed fp32 of 128 has an aligned one only.
  AttnFwd op = Op(kFloat32, {1, 1, 10, 128}, 1, 10, 128);
  op.is_windowed = true;
  EXPECT_EQ(Chosen(op), "fp32.128.1.aligned.m64");
  op.q.data = reinterpret_cast<void*>(0x10004);
  EXPECT_EQ(MakePlan(op).code(), kNotBuilt);
  EXPECT_NE(Chosen(op).find("was built without a kernel for dtype fp32, head_dim 128, windowed, unaligned"), std::string::npos);
}

TEST_F(PlanTest, PromisesAlignmentOnlyWhereItIs) {
  for (Tensor AttnFwd::*tensor : {&AttnFwd::q, &AttnFwd::k, &AttnFwd::v, &AttnFwd::out}) {
    for (int dimension = 0; dimension < 3; ++dimension) {
      AttnFwd op = Op();
      (op.*tensor).strides[dimension] += 4;
      EXPECT_EQ(Chosen(op), "bf16.64.0.any.m128");
      (op.*tensor).strides[dimension] += 4;
      EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.m128");
    }
    AttnFwd op = Op();
    (op.*tensor).data = static_cast<char*>((op.*tensor).data) + 8;
    EXPECT_EQ(Chosen(op), "bf16.64.0.any.m128");
  }
  // Expanded inputs.
  AttnFwd op = Op();
  op.k.strides[0] = op.k.strides[1] = 0;
  EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.m128");
}

TEST_F(PlanTest, IgnoresStridesOfSize1) {
  AttnFwd op = Op(kBFloat16, {1, 1, 1, 64}, 1, 1, 64);
  for (Tensor* t : {&op.q, &op.k, &op.v, &op.out}) {
    for (int i = 0; i < 3; ++i) t->strides[i] = -12345;
  }
  EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.m64");
  for (const char* name : {"stride_qz", "stride_qh", "stride_qm", "stride_kn", "stride_vh", "stride_oz"}) {
    EXPECT_EQ(Find(name).value.i64, 0) << name;
  }
  op = Op(kBFloat16, {1, 1, 2, 1}, 1, 2, 1);
  for (Tensor* t : {&op.q, &op.k, &op.v, &op.out}) t->strides[3] = 777;
  EXPECT_EQ(Chosen(op), "bf16.16.0.any.m64");
}

TEST_F(PlanTest, ChoosesByLength) {
  for (const auto& [seqlen_q, id, grid] : {std::tuple<int64_t, const char*, uint32_t>{1, "bf16.64.0.aligned.m64", 16},
                                           {64, "bf16.64.0.aligned.m64", 16},
                                           {65, "bf16.64.0.aligned.m64", 32},
                                           {512, "bf16.64.0.aligned.m64", 128},
                                           {513, "bf16.64.0.aligned.m128", 80},
                                           {1 << 20, "bf16.64.0.aligned.m128", 16 * (1 << 13)}}) {
    const AttnFwd op = Op(kBFloat16, {2, 8, seqlen_q, 64}, 8, 5, 64);
    EXPECT_EQ(Chosen(op), id) << seqlen_q;
    EXPECT_EQ(plan_.launches[0].grid, grid) << seqlen_q;
  }
}

TEST_F(PlanTest, RefusesTooLargeAGrid) {
  AttnFwd op = Op(kBFloat16, {1 << 30, 1, 1, 64}, 1, 1, 64);
  for (Tensor* t : {&op.q, &op.k, &op.v, &op.out}) t->strides[0] = 64;
  // HIP: grid * 128 threads must stay under 2^32.
  EXPECT_NE(Chosen(op).find("take 1 * 1 * 1073741824 work groups; the GPU can be given 33554431 at once"), std::string::npos) << Chosen(op);
  op.q.sizes[0] = op.k.sizes[0] = op.v.sizes[0] = op.out.sizes[0] = 33554431;
  EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.m64");
  EXPECT_EQ(plan_.launches[0].grid, 33554431u);
  op = Op(kBFloat16, {1 << 30, 1 << 30, 1 << 30, 64}, 1 << 30, 1, 64);
  for (Tensor* t : {&op.q, &op.k, &op.v, &op.out}) t->strides[0] = t->strides[1] = t->strides[2] = 64;
  op.logsumexp = Make(kFloat32, {1 << 30, 1 << 30, 1 << 30, 1}, 0x50000);
  op.logsumexp.rank = 3;
  EXPECT_EQ(MakePlan(op).code(), kNotSupported);  // and no overflow on the way
}

TEST_F(PlanTest, EmptyOutputTakesNoLaunch) {
  for (const support::Shape& q : {support::Shape{0, 8, 10, 64}, {2, 0, 10, 64}, {2, 8, 0, 64}}) {
    EXPECT_EQ(Chosen(Op(kBFloat16, q, q[1] / 4, 10, 64)), "");
  }
  EXPECT_EQ(Chosen(Op(64, 0)), "");
  AttnFwd op = Op(kBFloat16, {2, 8, 0, 64}, 8, 10, 64);
  op.q.data = op.out.data = nullptr;  // what PyTorch gives an empty tensor
  op.logsumexp = Make(kFloat32, {1, 2, 8, 0}, 0x50000);
  op.logsumexp.rank = 3;
  for (int i = 0; i < 3; ++i) {
    op.logsumexp.sizes[i] = op.q.sizes[i];
    op.logsumexp.strides[i] = 7;  // mean nothing
  }
  EXPECT_EQ(Chosen(op), "");
}

TEST_F(PlanTest, NoKeysIsAnOrdinaryLaunch) {
  AttnFwd op = Op(kBFloat16, {2, 8, 10, 64}, 8, 0, 64);
  op.k.data = op.v.data = nullptr;
  EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.m64");
  EXPECT_EQ(Find("seqlen_k").value.i32, 0);
}

TEST_F(PlanTest, RefusalsNameArgumentValueAndWhatIsAccepted) {
  struct Case {
    void (*spoil)(AttnFwd*);
    int code;
    const char* text;
  };
  const Case cases[] = {
      {[](AttnFwd* op) { op->q.data = nullptr; }, kInvalidValue, "q is null; a device pointer is required"},
      {[](AttnFwd* op) { op->v = Tensor(); }, kInvalidValue, "v is null; a device pointer is required"},
      {[](AttnFwd* op) { op->k.rank = 3; }, kInvalidValue, "k has rank 3; 4 is required: (batch, head, sequence, head_dim)"},
      {[](AttnFwd* op) { op->out.rank = 4000; }, kInvalidValue, "out has rank 4000; 4 is required: (batch, head, sequence, head_dim)"},
      {[](AttnFwd* op) { op->q.dtype = 12; }, kNotSupported, "q has dtype 12; supported are fp32 (1), fp16 (2) and bf16 (3)"},
      {[](AttnFwd* op) { op->v.dtype = kFloat16; }, kInvalidValue, "v has dtype fp16; it must be bf16, that of q"},
      {[](AttnFwd* op) { op->out.dtype = kFloat32; }, kInvalidValue, "out has dtype fp32; it must be bf16, that of q"},
      {[](AttnFwd* op) { op->q.sizes[2] = -1; }, kInvalidValue, "q has sizes (2, 8, -1, 64); each must be from 0 to 1073741824"},
      {[](AttnFwd* op) { op->k.sizes[2] = int64_t{1} << 31; }, kInvalidValue, "k has sizes (2, 2, 2147483648, 64); each must be from 0 to 1073741824"},
      {[](AttnFwd* op) { op->v.strides[3] = 2; }, kInvalidValue, "v has last stride 2; it must be 1"},
      {[](AttnFwd* op) { op->q.strides[1] = -64; }, kInvalidValue, "q has strides (512000, -64, 64, 1); they must not be negative"},
      {[](AttnFwd* op) { op->out.strides[1] = 0; }, kInvalidValue, "out has stride 0 in dimension 1 of size 8; an output cannot be expanded, its rows would overwrite each other"},
      {[](AttnFwd* op) { op->q.data = reinterpret_cast<void*>(0x10001); }, kInvalidValue, "q is at address 65537; it must be a multiple of 2, the size of its elements"},
      {[](AttnFwd* op) { op->k.sizes[0] = 3; }, kInvalidValue, "k has sizes (3, 2, 700, 64); dimension 0 must be 2, that of q"},
      {[](AttnFwd* op) { op->k.sizes[3] = 32; }, kInvalidValue, "k has sizes (2, 2, 700, 32); dimension 3 must be 64, that of q"},
      {[](AttnFwd* op) { op->v.sizes[2] = 699; }, kInvalidValue, "v has sizes (2, 2, 699, 64); dimension 2 must be 700, that of k"},
      {[](AttnFwd* op) { op->out.sizes[3] = 63; }, kInvalidValue, "out has sizes (2, 8, 1000, 63); dimension 3 must be 64, that of v"},
      {[](AttnFwd* op) { op->k.sizes[1] = op->v.sizes[1] = 3; }, kInvalidValue, "q has 8 heads and k has 3; the heads of q must be a multiple of the heads of k"},
      {[](AttnFwd* op) { op->k.sizes[1] = op->v.sizes[1] = 0; }, kInvalidValue, "q has 8 heads and k has 0; the heads of q must be a multiple of the heads of k"},
      {[](AttnFwd* op) { op->q.sizes[3] = op->k.sizes[3] = 0; }, kInvalidValue, "q has head_dim 0; it must be at least 1"},
      {[](AttnFwd* op) { op->sm_scale = NAN; }, kInvalidValue, "sm_scale is nan; it must be finite"},
      {[](AttnFwd* op) { op->sm_scale = -INFINITY; }, kInvalidValue, "sm_scale is -inf; it must be finite"},
      {[](AttnFwd* op) { op->logsumexp = Make(kBFloat16, {2, 8, 1000, 1}, 0x50000); }, kInvalidValue, "logsumexp has dtype 3; it must be fp32 (1)"},
      {[](AttnFwd* op) { op->logsumexp = Make(kFloat32, {2, 8, 1000, 1}, 0x50000); }, kInvalidValue, "logsumexp has sizes (2, 8, 1000, 1); it must be (2, 8, 1000) or (16, 1000): batch, num_head_q, seqlen_q"},
      {[](AttnFwd* op) { op->logsumexp = Make(kFloat32, {2, 8, 999, 1}, 0x50000); op->logsumexp.rank = 3; }, kInvalidValue, "logsumexp has sizes (2, 8, 999); it must be (2, 8, 1000) or (16, 1000): batch, num_head_q, seqlen_q"},
      {[](AttnFwd* op) { op->logsumexp = Make(kFloat32, {2, 8, 1000, 2}, 0x50000); op->logsumexp.rank = 3; }, kInvalidValue, "logsumexp has strides (16000, 2000, 2) for sizes (2, 8, 1000); it must be contiguous"},
      {[](AttnFwd* op) { op->logsumexp = Make(kFloat32, {2, 8, 1000, 1}, 0x50002); op->logsumexp.rank = 3; }, kInvalidValue, "logsumexp is at address 327682; it must be a multiple of 4, the size of its elements"},
  };
  for (const Case& c : cases) {
    AttnFwd op = Op();
    c.spoil(&op);
    const Status status = Validate(op);
    EXPECT_EQ(status.code(), c.code) << c.text;
    EXPECT_EQ(status.text(), c.text);
  }
  for (float sm_scale : {0.0f, -1.5f, std::numeric_limits<float>::max()}) {
    AttnFwd op = Op();
    op.sm_scale = sm_scale;
    EXPECT_TRUE(Validate(op).ok());
  }
}

TEST_F(PlanTest, RefusesPacksOfAnotherLibrary) {
  const std::pair<const char*, const char*> cases[] = {
      {"other_abi", "its abi is \"999\", expected is \"1\""},
      {"other_arch", "its arch is \"gfx1100\", expected is \"gfx942\""},
      {"unknown_argument", "the library does not know the kernel argument sink"},
      {"wrong_type", "the kernel argument seqlen_q has type \"i16\""},
      {"unknown_axis", "the library does not know the axis dropout"},
      {"no_block_m", "variant 0 (attn_fwd) does not say its BLOCK_M"},
  };
  for (const auto& [defect, text] : cases) {
    const Status status = Bind(support::BadPack(defect));
    EXPECT_EQ(status.code(), kInvalidImage);
    EXPECT_EQ(status.text(), "the pack " + support::BadPack(defect) + " and this library do not belong together: " + text +
                                 ". Take both from one build");
  }
}

}  // namespace
}  // namespace aotriton::dispatcher
