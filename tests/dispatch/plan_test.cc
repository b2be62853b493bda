// What is accepted, which code object is chosen, and what it is launched with: no GPU, no runtime.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "dispatcher/attn_bwd.h"
#include "dispatcher/attn_fwd.h"
#include "dispatcher/backends.h"
#include "dispatcher/kernel_pack.h"
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

// The last dimensions of a tensor as one of `rank`.
Tensor Lower(Tensor t, int32_t rank) {
  for (int i = 0; i < rank; ++i) {
    t.sizes[i] = t.sizes[i + 4 - rank];
    t.strides[i] = t.strides[i + 4 - rank];
  }
  t.rank = rank;
  return t;
}

Tensor Array(int64_t size, uintptr_t address) { return Lower(Make(kInt32, {1, 1, 1, size}, address), 1); }

Dropout SomeDropout() {
  Dropout dropout;
  dropout.p = 0.25f;
  dropout.seed = {reinterpret_cast<void*>(0xE0000), kInt64};
  dropout.offset1 = {reinterpret_cast<void*>(0xE0008), kUInt64};
  dropout.offset2 = 1234567890123;
  return dropout;
}

AttnBwd Backward(const AttnFwd& forward) {
  AttnBwd op;
  static_cast<Attention&>(op) = forward;
  op.dout = forward.out;
  op.dq = forward.q;
  op.dk = forward.k;
  op.dv = forward.v;
  op.dout.data = reinterpret_cast<void*>(0x60000);
  op.dq.data = reinterpret_cast<void*>(0x70000);
  op.dk.data = reinterpret_cast<void*>(0x80000);
  op.dv.data = reinterpret_cast<void*>(0x90000);
  const int64_t* q = forward.q.sizes;
  op.logsumexp = Lower(Make(kFloat32, {1, q[0], q[1], q[2]}, 0x50000), 3);
  op.delta = op.logsumexp;
  op.delta.data = reinterpret_cast<void*>(0xA0000);
  return op;
}

// Three sequences in the rows of one entry.
AttnFwd CompactOp() {
  AttnFwd op = Op(kBFloat16, {1, 8, 1000, 64}, 2, 700, 64);
  op.varlen.type = kVarlenCompact;
  op.varlen.cu_seqlens_q = Array(4, 0xD0000);
  op.varlen.cu_seqlens_k = Array(4, 0xD1000);
  op.varlen.max_seqlen_q = 600;
  op.varlen.max_seqlen_k = 500;
  return op;
}

class PlanTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int kernel = 0; kernel < kKernelCount; ++kernel) {
      const auto id = static_cast<KernelId>(kernel);
      if (kKernels[id].only_arch != nullptr) continue;  // hopper_test.cc
      const Status status = Bind(support::PackOf("gfx942", kKernels[id].name), id);
      ASSERT_TRUE(status.ok()) << status.text();
    }
  }

  Status Bind(const std::string& path, KernelId kernel = kAttnFwd) {
    std::shared_ptr<const Pack> pack;
    if (Status status = Pack::Open(path, &pack); !status.ok()) return status;
    return KernelPack::Bind(pack, kernel, "amd", "gfx942", &kernels_[kernel]);
  }

  Status MakePlan(const AttnFwd& op) {
    plan_.launch_count = 0;
    if (Status status = Validate(op); !status.ok()) return status;
    if (IsEmpty(op)) return Status();
    return PlanAttnFwd(op, *kernels_[kAttnFwd], WantsPersistent(op) ? kernels_[kAttnFwdPersistent].get() : nullptr, &plan_);
  }

  Status MakePlan(const AttnBwd& op) {
    plan_.launch_count = 0;
    if (Status status = Validate(op); !status.ok()) return status;
    if (IsEmpty(op)) return Status();
    if (BackendOf(op) == BwdBackend::kFused) return PlanBwdFused(op, *kernels_[kBwdFused], &plan_);
    return PlanBwdSplit(op, *kernels_[kBwdPreprocess], *kernels_[kBwdDkdv], *kernels_[kBwdDq], &plan_);
  }

  Status MakePlan(const EncodedSoftmax& op) {
    plan_.launch_count = 0;
    if (Status status = Validate(op); !status.ok()) return status;
    return IsEmpty(op) ? Status() : PlanEncodedSoftmax(op, *kernels_[kDebugSimulateEncodedSoftmax], &plan_);
  }

  // What the chosen code object of a launch calls itself, "bf16.64.0.aligned.0.0.m128".
  std::string IdOf(const Launch& launch) {
    Bytes code;
    EXPECT_TRUE(launch.pack->LoadCode(launch.pack->functional(launch.functional), launch.variant, &code).ok());
    const std::string text(reinterpret_cast<const char*>(code.data.get()), code.size);
    const size_t begin = text.find("gfx942\n") + 7;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  // That of the first launch, or the refusal.
  template <typename Op>
  std::string Chosen(const Op& op) {
    if (Status status = MakePlan(op); !status.ok()) return status.text();
    return plan_.launch_count > 0 ? IdOf(plan_.launches[0]) : "";
  }

  // Of all launches, with their kernels and grids: "bwd_dq bf16.64.0.aligned.0.0.m128 x128".
  template <typename Op>
  std::vector<std::string> Launches(const Op& op) {
    if (Status status = MakePlan(op); !status.ok()) return {status.text()};
    std::vector<std::string> out;
    for (int i = 0; i < plan_.launch_count; ++i) {
      const Launch& launch = plan_.launches[i];
      out.push_back(std::string(launch.pack->Meta("kernel")) + " " + IdOf(launch) + " x" + std::to_string(launch.grid));
    }
    return out;
  }

  const Argument& Find(const std::string& name, int launch = 0) const {
    static const Argument none = {};
    for (int i = 0; i < plan_.launches[launch].argument_count; ++i) {
      if (name == plan_.launches[launch].arguments[i].name) return plan_.launches[launch].arguments[i];
    }
    ADD_FAILURE() << "no argument " << name;
    return none;
  }
  bool Has(const std::string& name, int launch = 0) const {
    for (int i = 0; i < plan_.launches[launch].argument_count; ++i) {
      if (name == plan_.launches[launch].arguments[i].name) return true;
    }
    return false;
  }

  std::shared_ptr<const KernelPack> kernels_[kKernelCount];
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
  ASSERT_EQ(Chosen(op), "fp16.64.1.any.1.1.m128");
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
      {"num_head_q", 6}, {"num_head_k", 2}, {"max_seqlen_q", 600}, {"max_seqlen_k", 77}, {"head_dim_qk", 48}, {"head_dim_vo", 40},
      {"window_left", 12}, {"window_right", kWindowBottomRight}, {"store_lse", 1}};
  for (const auto& [name, value] : numbers) EXPECT_EQ(Find(name).value.i32, value) << name;
  EXPECT_EQ(Find("lse_scale").value.fp32, 0.6931471805599453f);
  EXPECT_EQ(Find("global_scratch").value.pointer, nullptr);
  EXPECT_EQ(Find("profile_scratch").value.pointer, nullptr);
}

TEST_F(PlanTest, OmitsWhatTheKernelCompiledIn) {
  ASSERT_EQ(Chosen(Op()), "bf16.64.0.aligned.0.0.m128");
  EXPECT_FALSE(Has("head_dim_qk"));
  EXPECT_FALSE(Has("window_left"));
  EXPECT_EQ(Find("store_lse").value.i32, 0);
  EXPECT_EQ(Find("L").value.pointer, nullptr);
}

TEST_F(PlanTest, RoundsHeadDimsUp) {
  EXPECT_EQ(Chosen(Op(1, 1)), "bf16.16.1.any.1.1.m128");
  EXPECT_EQ(Chosen(Op(16, 16)), "bf16.16.0.aligned.0.0.m128");
  EXPECT_EQ(Chosen(Op(17, 17)), "bf16.32.1.any.1.1.m128");
  EXPECT_EQ(Chosen(Op(128, 64)), "bf16.128.1.any.1.1.m128");
  EXPECT_EQ(Chosen(Op(64, 128)), "bf16.128.1.any.1.1.m128");
  EXPECT_EQ(Chosen(Op(128, 128)), "bf16.128.0.aligned.0.0.m128");
  EXPECT_NE(Chosen(Op(129, 8)).find("head_dim is 129 (129 of q and k, 8 of v and out)"), std::string::npos);
  EXPECT_NE(Chosen(Op(64, 512)).find("holds up to 128"), std::string::npos);
  EXPECT_EQ(MakePlan(Op(64, 512)).code(), kNotSupported);
}

TEST_F(PlanTest, ServesHolesByTheNextTile) {
  // There is no aligned kernel for fp16 of 32 with both bias and dropout; that of layout any serves all.
  AttnFwd both = Op(kFloat16, {1, 1, 10, 32}, 1, 16, 32);
  both.bias = Make(kFloat16, {1, 1, 10, 16}, 0xB0000);
  EXPECT_EQ(Chosen(both), "fp16.32.0.aligned.1.0.m64");
  both.dropout = SomeDropout();
  EXPECT_EQ(Chosen(both), "fp16.32.1.any.1.1.m64");
  // fp32 of 16 has no kernel at all, of 32 no aligned one.
  EXPECT_EQ(Chosen(Op(kFloat32, {1, 1, 10, 16}, 1, 10, 16)), "fp32.32.1.any.1.1.m64");
  EXPECT_EQ(Chosen(Op(kFloat32, {1, 1, 10, 32}, 1, 10, 32)), "fp32.32.1.any.1.1.m64");
  // fp32 of 128 has aligned ones only.
  AttnFwd op = Op(kFloat32, {1, 1, 10, 128}, 1, 10, 128);
  op.is_windowed = true;
  EXPECT_EQ(Chosen(op), "fp32.128.1.aligned.0.0.m64");
  op.q.data = reinterpret_cast<void*>(0x10004);
  op.dropout = SomeDropout();
  EXPECT_EQ(MakePlan(op).code(), kNotBuilt);
  EXPECT_EQ(Chosen(op), "the pack " + support::PackOf("gfx942") +
                            " was built without a kernel for dtype fp32, head_dim 128, windowed, with dropout, unaligned, "
                            "nor one of layout any; it was built with \"--//:profile=test\"; --//:profile=full without a filter has every kernel");
}

TEST_F(PlanTest, PromisesAlignmentOnlyWhereItIs) {
  for (Tensor AttnFwd::*tensor : {&AttnFwd::q, &AttnFwd::k, &AttnFwd::v, &AttnFwd::out}) {
    for (int dimension = 0; dimension < 3; ++dimension) {
      AttnFwd op = Op();
      (op.*tensor).strides[dimension] += 4;
      EXPECT_EQ(Chosen(op), "bf16.64.1.any.1.1.m128");
      (op.*tensor).strides[dimension] += 4;
      EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.0.0.m128");
    }
    AttnFwd op = Op();
    (op.*tensor).data = static_cast<char*>((op.*tensor).data) + 8;
    EXPECT_EQ(Chosen(op), "bf16.64.1.any.1.1.m128");
  }
  // Expanded inputs.
  AttnFwd op = Op();
  op.k.strides[0] = op.k.strides[1] = 0;
  EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.0.0.m128");
}

TEST_F(PlanTest, IgnoresStridesOfSize1) {
  AttnFwd op = Op(kBFloat16, {1, 1, 1, 64}, 1, 1, 64);
  for (Tensor* t : {&op.q, &op.k, &op.v, &op.out}) {
    for (int i = 0; i < 3; ++i) t->strides[i] = -12345;
  }
  EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.0.0.m64");
  for (const char* name : {"stride_qz", "stride_qh", "stride_qm", "stride_kn", "stride_vh", "stride_oz"}) {
    EXPECT_EQ(Find(name).value.i64, 0) << name;
  }
  op = Op(kBFloat16, {1, 1, 2, 1}, 1, 2, 1);
  for (Tensor* t : {&op.q, &op.k, &op.v, &op.out}) t->strides[3] = 777;
  EXPECT_EQ(Chosen(op), "bf16.16.1.any.1.1.m64");
}

TEST_F(PlanTest, ChoosesByLength) {
  for (const auto& [seqlen_q, id, grid] : {std::tuple<int64_t, const char*, uint32_t>{1, "bf16.64.0.aligned.0.0.m64", 16},
                                           {64, "bf16.64.0.aligned.0.0.m64", 16},
                                           {65, "bf16.64.0.aligned.0.0.m64", 32},
                                           {512, "bf16.64.0.aligned.0.0.m64", 128},
                                           {513, "bf16.64.0.aligned.0.0.m128", 80},
                                           {1 << 20, "bf16.64.0.aligned.0.0.m128", 16 * (1 << 13)}}) {
    const AttnFwd op = Op(kBFloat16, {2, 8, seqlen_q, 64}, 8, 5, 64);
    EXPECT_EQ(Chosen(op), id) << seqlen_q;
    EXPECT_EQ(plan_.launches[0].grid, grid) << seqlen_q;
  }
}

// The tuning table of make_test_pack.py: m128 up to (64, 128); m64 up to (64, any); m128 if it fills all
// multiprocessors; m64 up to (any, 256) if it fills half of them; else m128.
TEST_F(PlanTest, ChoosesByLengthsAndByHowFullTheGpuGets) {
  ASSERT_TRUE(Bind(support::BadPack("tuned")).ok());
  struct Case {
    int multiprocessors;
    int64_t batch, seqlen_q, seqlen_k;
    uint32_t row;
    const char* config;
  };
  for (const Case& c : {
           Case{304, 2, 64, 128, 0, "m128"}, {304, 2, 64, 129, 1, "m64"}, {304, 2, 1, 1 << 30, 1, "m64"},
           {304, 2, 65, 128, 4, "m128"},     // 2 * 8 * 1 work groups of m128, 2 * 8 * 2 of m64
           {16, 2, 65, 128, 2, "m128"},      // all 16 of them
           {17, 2, 65, 128, 3, "m64"},       // 32 are more than half
           {64, 2, 65, 256, 3, "m64"},       // just half
           {66, 2, 65, 256, 4, "m128"},      // less than half
           {17, 2, 65, 257, 4, "m128"},
           {17, 1, 65, 128, 3, "m64"},
           {0, 1, 65, 128, 2, "m128"},       // not known
           {2147483647, 1 << 30, 65, 257, 2, "m128"},
       }) {
    AttnFwd op = Op(kBFloat16, {c.batch, 8, c.seqlen_q, 64}, 8, c.seqlen_k, 64);
    for (Tensor* t : {&op.q, &op.k, &op.v, &op.out}) t->strides[0] = 64;
    plan_.multiprocessors = c.multiprocessors;
    if (c.batch < 1000) {
      EXPECT_EQ(Chosen(op), std::string("bf16.64.0.aligned.0.0.") + c.config);
    } else {
      EXPECT_EQ(MakePlan(op).code(), kNotSupported);  // chosen with no overflow, and then refused for its grid
    }
    EXPECT_EQ(plan_.launches[0].choice, c.row) << c.multiprocessors << " " << c.seqlen_q << " " << c.seqlen_k;
  }
}

TEST_F(PlanTest, RefusesTooLargeAGrid) {
  AttnFwd op = Op(kBFloat16, {1 << 30, 1, 1, 64}, 1, 1, 64);
  for (Tensor* t : {&op.q, &op.k, &op.v, &op.out}) t->strides[0] = 64;
  // HIP: grid * 128 threads must stay under 2^32.
  EXPECT_NE(Chosen(op).find("attn_fwd would take 1 * 1073741824 work groups; the GPU can be given 33554431 at once"), std::string::npos) << Chosen(op);
  op.q.sizes[0] = op.k.sizes[0] = op.v.sizes[0] = op.out.sizes[0] = 33554431;
  EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.0.0.m64");
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
  EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.0.0.m64");
  EXPECT_EQ(Find("max_seqlen_k").value.i32, 0);
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
      {[](AttnFwd* op) { op->out.strides[1] = 0; }, kInvalidValue, "out has stride 0 in dimension 1 of size 8; an output cannot be expanded, its elements would overwrite each other"},
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

TEST_F(PlanTest, BiasIsServedByItsOwnKernels) {
  AttnFwd op = Op(kBFloat16, {2, 8, 1000, 64}, 2, 704, 64);
  op.bias = Make(kBFloat16, {2, 8, 1000, 704}, 0xB0000);
  ASSERT_EQ(Chosen(op), "bf16.64.0.aligned.1.0.m128");
  EXPECT_EQ(Find("B").value.pointer, op.bias.data);
  EXPECT_EQ(Find("stride_bz").value.i64, 8 * 1000 * 704);
  EXPECT_EQ(Find("stride_bm").value.i64, 704);
  EXPECT_FALSE(Has("stride_bn"));
  EXPECT_FALSE(Has("has_bias"));
  // Broadcast: dimensions of stride 0.
  op.bias.strides[0] = op.bias.strides[1] = op.bias.strides[2] = 0;
  ASSERT_EQ(Chosen(op), "bf16.64.0.aligned.1.0.m128");
  EXPECT_EQ(Find("stride_bh").value.i64, 0);
  op.bias.strides[3] = 0;
  ASSERT_EQ(Chosen(op), "bf16.64.1.any.1.1.m128");
  EXPECT_EQ(Find("stride_bn").value.i64, 0);
  EXPECT_EQ(Find("has_bias").value.i32, 1);
  EXPECT_EQ(Find("has_dropout").value.i32, 0);
  for (int i = 0; i < 3; ++i) {
    op.bias = Make(kBFloat16, {2, 8, 1000, 704}, 0xB0000);
    op.bias.strides[i] += 4;
    EXPECT_EQ(Chosen(op), "bf16.64.1.any.1.1.m128") << i;
  }
  op.bias = Make(kBFloat16, {2, 8, 1000, 704}, 0xB0008);
  EXPECT_EQ(Chosen(op), "bf16.64.1.any.1.1.m128");
}

TEST_F(PlanTest, LayoutAnyHasEverythingSwitchedOff) {
  AttnFwd op = Op(40, 40);
  ASSERT_EQ(Chosen(op), "bf16.64.1.any.1.1.m128");
  const std::map<std::string, int32_t> numbers = {{"window_left", 2147483647}, {"window_right", 2147483647}, {"has_bias", 0},
                                                  {"has_dropout", 0}, {"varlen_type", 0}, {"lse_compact", 0}};
  for (const auto& [name, value] : numbers) EXPECT_EQ(Find(name).value.i32, value) << name;
  for (const char* name : {"B", "philox_seed", "philox_offset1", "philox_seed_output", "cu_seqlens_q", "seq_starts_k"}) {
    EXPECT_EQ(Find(name).value.pointer, nullptr) << name;
  }
  EXPECT_EQ(Find("dropout_p").value.fp32, 0.0f);
  op.is_windowed = true;
  op.window_left = 0;
  op.window_right = -3;
  ASSERT_EQ(Chosen(op), "bf16.64.1.any.1.1.m128");
  EXPECT_EQ(Find("window_left").value.i32, 0);
  EXPECT_EQ(Find("window_right").value.i32, -3);
}

TEST_F(PlanTest, DropoutTakesPointersAndAnOffset) {
  AttnFwd op = Op();
  op.dropout = SomeDropout();
  op.dropout.seed_output = {reinterpret_cast<void*>(0xE0010), kUInt64};
  op.dropout.offset_output = {reinterpret_cast<void*>(0xE0018), kInt64};
  for (const char* id : {"bf16.64.0.aligned.0.1.m128", "bf16.64.1.any.1.1.m128"}) {
    ASSERT_EQ(Chosen(op), id);
    EXPECT_EQ(Find("dropout_p").value.fp32, 0.25f);
    EXPECT_EQ(Find("philox_seed").value.pointer, reinterpret_cast<void*>(0xE0000));
    EXPECT_EQ(Find("philox_offset1").value.pointer, reinterpret_cast<void*>(0xE0008));
    EXPECT_EQ(Find("philox_offset2").value.i64, 1234567890123);
    EXPECT_EQ(Find("philox_seed_output").value.pointer, reinterpret_cast<void*>(0xE0010));
    EXPECT_EQ(Find("philox_offset_output").value.pointer, reinterpret_cast<void*>(0xE0018));
    op.q.data = reinterpret_cast<void*>(0x10004);
  }
  EXPECT_EQ(Find("has_dropout").value.i32, 1);
  op.dropout.p = 1;
  op.dropout.offset2 = ~uint64_t{0};
  EXPECT_EQ(Chosen(op), "bf16.64.1.any.1.1.m128");
  EXPECT_EQ(Find("philox_offset2").value.i64, -1);  // the bits
  // Without dropout nothing of it is looked at.
  op.dropout.p = 0;
  op.dropout.seed = {reinterpret_cast<void*>(1), 77};
  ASSERT_EQ(Chosen(op), "bf16.64.1.any.1.1.m128");
  EXPECT_EQ(Find("philox_seed").value.pointer, nullptr);
  EXPECT_EQ(Find("philox_seed_output").value.pointer, nullptr);
}

TEST_F(PlanTest, VariableLengths) {
  AttnFwd op = CompactOp();
  op.logsumexp = Lower(Make(kFloat32, {1, 1, 8, 1000}, 0x50000), 2);
  ASSERT_EQ(Chosen(op), "bf16.64.0.aligned.0.0.m128");
  EXPECT_EQ(plan_.launches[0].grid, 5u * 8 * 3);  // cdiv(600, 128) tiles of 3 sequences
  EXPECT_EQ(Find("cu_seqlens_q").value.pointer, op.varlen.cu_seqlens_q.data);
  EXPECT_EQ(Find("cu_seqlens_k").value.pointer, op.varlen.cu_seqlens_k.data);
  EXPECT_EQ(Find("seq_starts_q").value.pointer, nullptr);
  EXPECT_EQ(Find("varlen_type").value.i32, 1);
  EXPECT_EQ(Find("max_seqlen_q").value.i32, 600);
  EXPECT_EQ(Find("max_seqlen_k").value.i32, 500);

  // Not known: the rows of the tensors.
  op.varlen.max_seqlen_q = op.varlen.max_seqlen_k = 0;
  ASSERT_EQ(Chosen(op), "bf16.64.0.aligned.0.0.m128");
  EXPECT_EQ(plan_.launches[0].grid, 8u * 8 * 3);
  EXPECT_EQ(Find("max_seqlen_q").value.i32, 1000);
  EXPECT_EQ(Find("max_seqlen_k").value.i32, 700);

  op.varlen.type = kVarlenStrided;
  op.varlen.seq_starts_q = Array(3, 0xD2000);
  op.varlen.seq_starts_k = Array(4, 0xD3000);
  ASSERT_EQ(Chosen(op), "bf16.64.0.aligned.0.0.m128");
  EXPECT_EQ(Find("seq_starts_q").value.pointer, op.varlen.seq_starts_q.data);
  EXPECT_EQ(Find("seq_starts_k").value.pointer, op.varlen.seq_starts_k.data);
  EXPECT_EQ(Find("varlen_type").value.i32, 3);

  AttnFwd padded = Op(kBFloat16, {3, 8, 1000, 64}, 2, 700, 64);
  padded.varlen = CompactOp().varlen;
  padded.varlen.type = kVarlenPadded;
  ASSERT_EQ(Chosen(padded), "bf16.64.0.aligned.0.0.m128");
  EXPECT_EQ(plan_.launches[0].grid, 5u * 8 * 3);
  EXPECT_EQ(Find("varlen_type").value.i32, 2);

  AttnFwd none = CompactOp();  // no sequence
  none.varlen.cu_seqlens_q = none.varlen.cu_seqlens_k = Array(1, 0xD0000);
  EXPECT_EQ(Chosen(none), "");
}

TEST_F(PlanTest, LayoutsOfLogsumexp) {
  struct Case {
    Tensor logsumexp;
    int64_t stride_lz, stride_lh;
    int32_t lse_compact;
  };
  const auto expect = [&](AttnFwd op, const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      op.logsumexp = c.logsumexp;
      ASSERT_TRUE(MakePlan(op).ok()) << MakePlan(op).text();
      EXPECT_EQ(Find("stride_lz").value.i64, c.stride_lz);
      EXPECT_EQ(Find("stride_lh").value.i64, c.stride_lh);
      EXPECT_EQ(Find("lse_compact").value.i32, c.lse_compact);
    }
  };
  const auto two = [](int64_t a, int64_t b) { return Lower(Make(kFloat32, {1, 1, a, b}, 0x50000), 2); };
  const auto three = [](int64_t a, int64_t b, int64_t c) { return Lower(Make(kFloat32, {1, a, b, c}, 0x50000), 3); };
  expect(Op(), {{three(2, 8, 1000), 8000, 1000, 0}, {two(16, 1000), 8000, 1000, 0}});
  expect(CompactOp(), {{two(8, 1000), 0, 1000, 1}, {three(3, 8, 600), 4800, 600, 0}, {two(24, 600), 4800, 600, 0}});
  AttnFwd padded = Op(kBFloat16, {3, 8, 1000, 64}, 2, 700, 64);
  padded.varlen = CompactOp().varlen;
  padded.varlen.type = kVarlenPadded;
  expect(padded, {{three(3, 8, 600), 4800, 600, 0}, {two(24, 600), 4800, 600, 0}});
  padded.logsumexp = two(8, 1000);
  EXPECT_EQ(Chosen(padded), "logsumexp has sizes (8, 1000); it must be (3, 8, 600) or (24, 600): sequences, num_head_q, max_seqlen_q");
}

TEST_F(PlanTest, RefusalsOfBiasDropoutAndVariableLengths) {
  struct Case {
    void (*spoil)(AttnFwd*);
    int code;
    const char* text;
  };
  const auto run = [](const AttnFwd& good, const std::vector<Case>& cases) {
    ASSERT_TRUE(Validate(good).ok()) << Validate(good).text();
    for (const Case& c : cases) {
      AttnFwd op = good;
      c.spoil(&op);
      const Status status = Validate(op);
      EXPECT_EQ(status.code(), c.code) << c.text;
      EXPECT_EQ(status.text(), c.text);
    }
  };
  AttnFwd with_bias = Op();
  with_bias.bias = Make(kBFloat16, {2, 8, 1000, 700}, 0xB0000);
  with_bias.dropout = SomeDropout();
  run(with_bias, {
      {[](AttnFwd* op) { op->bias.rank = 3; }, kInvalidValue, "bias has rank 3; 4 is required: (batch, head, sequence, sequence)"},
      {[](AttnFwd* op) { op->bias.dtype = kFloat16; }, kInvalidValue, "bias has dtype fp16; it must be bf16, that of q"},
      {[](AttnFwd* op) { op->bias.dtype = 20; }, kNotSupported, "bias has dtype 20; supported are fp32 (1), fp16 (2) and bf16 (3)"},
      {[](AttnFwd* op) { op->bias.sizes[1] = 1; }, kInvalidValue, "bias has sizes (2, 1, 1000, 700); dimension 1 must be 8, that of q"},
      {[](AttnFwd* op) { op->bias.sizes[3] = 704; }, kInvalidValue, "bias has sizes (2, 8, 1000, 704); dimension 3 must be 700, that of k's dimension 2"},
      {[](AttnFwd* op) { op->bias.strides[3] = -1; }, kInvalidValue, "bias has strides (5600000, 700000, 700, -1); they must not be negative"},
      {[](AttnFwd* op) { op->bias.data = reinterpret_cast<void*>(0xB0001); }, kInvalidValue, "bias is at address 720897; it must be a multiple of 2, the size of its elements"},
      {[](AttnFwd* op) { op->dropout.p = 1.5f; }, kInvalidValue, "dropout_p is 1.5; it must be from 0 to 1"},
      {[](AttnFwd* op) { op->dropout.p = -0.5f; }, kInvalidValue, "dropout_p is -0.5; it must be from 0 to 1"},
      {[](AttnFwd* op) { op->dropout.p = NAN; }, kInvalidValue, "dropout_p is nan; it must be from 0 to 1"},
      {[](AttnFwd* op) { op->dropout.seed = {}; }, kInvalidValue, "philox_seed is null; dropout_p is 0.25 and requires a device pointer"},
      {[](AttnFwd* op) { op->dropout.offset1 = {}; }, kInvalidValue, "philox_offset1 is null; dropout_p is 0.25 and requires a device pointer"},
      {[](AttnFwd* op) { op->dropout.offset1.dtype = kInt32; }, kInvalidValue, "philox_offset1 has dtype 12; it must be int64 (13) or uint64 (23)"},
      {[](AttnFwd* op) { op->dropout.seed_output = {reinterpret_cast<void*>(0xE0004), kInt64}; }, kInvalidValue, "philox_seed_output is at address 917508; it must be a multiple of 8, the size of its elements"},
      {[](AttnFwd* op) { op->encoded_softmax = Make(kFloat32, {2, 8, 1000, 701}, 0xF0000); }, kInvalidValue, "encoded_softmax has sizes (2, 8, 1000, 701); it must be (2, 8, 1000, 700): sequences, num_head_q, max_seqlen_q, max_seqlen_k"},
      {[](AttnFwd* op) { op->encoded_softmax = Make(kInt32, {2, 8, 1000, 700}, 0xF0000); }, kNotSupported, "encoded_softmax has dtype 12; supported are fp32 (1), fp16 (2) and bf16 (3)"},
      {[](AttnFwd* op) { op->encoded_softmax = Make(kFloat32, {2, 8, 1000, 700}, 0xF0000); op->encoded_softmax.strides[3] = 0; }, kInvalidValue, "encoded_softmax has stride 0 in dimension 3 of size 700; an output cannot be expanded, its elements would overwrite each other"},
      {[](AttnFwd* op) { op->varlen.cu_seqlens_k = Array(3, 0xD0000); }, kInvalidValue, "cu_seqlens_k is given, and varlen_type is 0 (none), which does not use it: pass null"},
      {[](AttnFwd* op) { op->varlen.seq_starts_q = Array(3, 0xD0000); }, kInvalidValue, "seq_starts_q is given, and varlen_type is 0 (none), which does not use it: pass null"},
  });
  run(CompactOp(), {
      {[](AttnFwd* op) { op->varlen.type = 4; }, kNotSupported, "varlen_type is 4; it must be 0 (none), 1 (compact), 2 (padded) or 3 (strided)"},
      {[](AttnFwd* op) { op->varlen.type = -1; }, kNotSupported, "varlen_type is -1; it must be 0 (none), 1 (compact), 2 (padded) or 3 (strided)"},
      {[](AttnFwd* op) { op->varlen.cu_seqlens_k = {}; }, kInvalidValue, "cu_seqlens_k is null; varlen_type 1 (compact) requires it"},
      {[](AttnFwd* op) { op->varlen.cu_seqlens_q.dtype = kInt64; }, kInvalidValue, "cu_seqlens_q has dtype 13; it must be int32 (12)"},
      {[](AttnFwd* op) { op->varlen.cu_seqlens_q.rank = 2; }, kInvalidValue, "cu_seqlens_q has rank 2; it must be 1"},
      {[](AttnFwd* op) { op->varlen.cu_seqlens_q.strides[0] = 2; }, kInvalidValue, "cu_seqlens_q has stride 2; it must be 1"},
      {[](AttnFwd* op) { op->varlen.cu_seqlens_q.sizes[0] = 0; }, kInvalidValue, "cu_seqlens_q has 0 elements; it must have from 1 to 1073741824"},
      {[](AttnFwd* op) { op->varlen.cu_seqlens_k.sizes[0] = 3; }, kInvalidValue, "cu_seqlens_k has 3 elements; it must have 4, as many as cu_seqlens_q"},
      {[](AttnFwd* op) { op->varlen.cu_seqlens_k.data = reinterpret_cast<void*>(0xD0002); }, kInvalidValue, "cu_seqlens_k is at address 851970; it must be a multiple of 4, the size of its elements"},
      {[](AttnFwd* op) { op->varlen.type = kVarlenPadded; }, kInvalidValue, "q has sizes (1, 8, 1000, 64); with varlen_type 2 (padded) dimension 0 must be 3, the number of sequences"},
      {[](AttnFwd* op) { for (Tensor* t : {&op->q, &op->k, &op->v, &op->out}) t->sizes[0] = 3; }, kInvalidValue, "q has sizes (3, 8, 1000, 64); with varlen_type 1 (compact) dimension 0 must be 1"},
      {[](AttnFwd* op) { op->varlen.type = kVarlenStrided; }, kInvalidValue, "seq_starts_q is null; varlen_type 3 (strided) requires it"},
      {[](AttnFwd* op) { op->varlen.type = kVarlenStrided; op->varlen.seq_starts_q = Array(2, 0xD2000); }, kInvalidValue, "seq_starts_q has 2 elements; it must have 3, the number of sequences, or 4"},
      {[](AttnFwd* op) { op->varlen.seq_starts_k = Array(4, 0xD2000); }, kInvalidValue, "seq_starts_k is given, and varlen_type is 1 (compact), which does not use it: pass null"},
      {[](AttnFwd* op) { op->varlen.max_seqlen_q = -1; }, kInvalidValue, "max_seqlen_q is -1; it must be from 0 to 1073741824"},
      {[](AttnFwd* op) { op->varlen.max_seqlen_k = (1 << 30) + 1; }, kInvalidValue, "max_seqlen_k is 1073741825; it must be from 0 to 1073741824"},
      {[](AttnFwd* op) { op->bias = Make(kBFloat16, {1, 8, 1000, 700}, 0xB0000); }, kNotSupported, "bias is given, and varlen_type is 1 (compact); a bias is supported with equal lengths only: pass null"},
      {[](AttnFwd* op) { op->logsumexp = Lower(Make(kFloat32, {1, 1, 8, 600}, 0x50000), 2); }, kInvalidValue, "logsumexp has sizes (8, 600); it must be (8, 1000): num_head_q, rows of q; or (3, 8, 600) or (24, 600): sequences, num_head_q, max_seqlen_q"},
  });
  AttnFwd padded = Op(kBFloat16, {3, 8, 1000, 64}, 2, 700, 64);
  padded.varlen = CompactOp().varlen;
  padded.varlen.type = kVarlenPadded;
  run(padded, {{[](AttnFwd* op) { op->varlen.max_seqlen_k = 701; }, kInvalidValue, "max_seqlen_k is 701; it must be at most 700, the rows of k"}});
}

TEST_F(PlanTest, TheMaskIsALaunch) {
  EncodedSoftmax op{Make(kFloat32, {2, 8, 1000, 700}, 0xF0000), SomeDropout()};
  op.tensor.strides[3] = 3;
  EXPECT_EQ(Launches(op), (std::vector<std::string>{"debug_simulate_encoded_softmax fp32.m128 x128"}));
  EXPECT_EQ(Find("R").value.pointer, op.tensor.data);
  EXPECT_EQ(Find("stride_rz").value.i64, 8 * 1000 * 700);
  EXPECT_EQ(Find("stride_rn").value.i64, 3);
  EXPECT_EQ(Find("num_head_q").value.i32, 8);
  EXPECT_EQ(Find("max_seqlen_q").value.i32, 1000);
  EXPECT_EQ(Find("max_seqlen_k").value.i32, 700);
  EXPECT_EQ(Find("dropout_p").value.fp32, 0.25f);
  EXPECT_EQ(Find("philox_seed").value.pointer, op.dropout.seed.data);
  EXPECT_EQ(Find("philox_offset2").value.i64, 1234567890123);
  op.tensor = Make(kFloat16, {2, 0, 1000, 700}, 0xF0000);
  EXPECT_EQ(Launches(op), (std::vector<std::string>{}));
}

TEST_F(PlanTest, TheSplitBackwardIsThreeLaunches) {
  AttnFwd forward = Op(kFloat16, {3, 6, 600, 64}, 2, 77, 64);
  forward.is_windowed = true;
  forward.window_left = kWindowTopLeft;
  forward.window_right = -4;
  AttnBwd op = Backward(forward);
  op.sm_scale = 0.75f;
  // cdiv(600, 128) * 6 * 3; cdiv(77, 32) * 2 * 3.
  EXPECT_EQ(Launches(op), (std::vector<std::string>{"bwd_preprocess fp16.64.aligned.m128 x90", "bwd_dkdv fp16.64.1.aligned.0.0.m128 x18",
                                                    "bwd_dq fp16.64.1.aligned.0.0.m128 x90"}));
  EXPECT_EQ(Find("Out", 0).value.pointer, op.out.data);
  EXPECT_EQ(Find("DO", 0).value.pointer, op.dout.data);
  EXPECT_EQ(Find("stride_doz", 0).value.i64, 6 * 600 * 64);
  for (int launch : {0, 1, 2}) {
    EXPECT_EQ(Find("Delta", launch).value.pointer, op.delta.data);
    EXPECT_EQ(Find("stride_lz", launch).value.i64, 3600);
    EXPECT_EQ(Find("stride_lh", launch).value.i64, 600);
    EXPECT_EQ(Find("lse_compact", launch).value.i32, 0);
    EXPECT_EQ(Find("max_seqlen_q", launch).value.i32, 600);
    EXPECT_EQ(Find("num_head_q", launch).value.i32, 6);
  }
  for (int launch : {1, 2}) {
    EXPECT_EQ(Find("Q", launch).value.pointer, op.q.data);
    EXPECT_EQ(Find("L", launch).value.pointer, op.logsumexp.data);
    EXPECT_EQ(Find("sm_scale", launch).value.fp32, 0.75f);
    EXPECT_EQ(Find("lse_scale", launch).value.fp32, 0.6931471805599453f);
    EXPECT_EQ(Find("num_head_k", launch).value.i32, 2);
    EXPECT_EQ(Find("max_seqlen_k", launch).value.i32, 77);
    EXPECT_EQ(Find("window_left", launch).value.i32, kWindowTopLeft);
    EXPECT_EQ(Find("window_right", launch).value.i32, -4);
  }
  EXPECT_EQ(Find("DK", 1).value.pointer, op.dk.data);
  EXPECT_EQ(Find("DV", 1).value.pointer, op.dv.data);
  EXPECT_EQ(Find("stride_dkz", 1).value.i64, 2 * 77 * 64);
  EXPECT_EQ(Find("stride_dvn", 1).value.i64, 64);
  EXPECT_EQ(Find("DQ", 2).value.pointer, op.dq.data);
  EXPECT_EQ(Find("stride_dqm", 2).value.i64, 64);
}

TEST_F(PlanTest, TheFusedBackwardIsOneLaunch) {
  AttnBwd op = Backward(Op(kFloat16, {3, 6, 600, 64}, 2, 77, 64));
  op.delta = {};
  // (cdiv(77, 32) + cdiv(600, 128) * 3) * 2 * 3
  const std::vector<std::string> fused = {"bwd_fused fp16.64.0.aligned.0.0.m128 x108"};
  EXPECT_EQ(Launches(op), fused);  // what is left without a delta
  for (const auto& [name, tensor] : std::map<std::string, const Tensor*>{
           {"Q", &op.q}, {"Out", &op.out}, {"DO", &op.dout}, {"DQ", &op.dq}, {"DK", &op.dk}, {"DV", &op.dv}, {"L", &op.logsumexp}}) {
    EXPECT_EQ(Find(name).value.pointer, tensor->data) << name;
  }
  op.delta = Backward(Op(kFloat16, {3, 6, 600, 64}, 2, 77, 64)).delta;
  op.backend = BwdBackend::kFused;
  EXPECT_EQ(Launches(op), fused);
  op.backend = BwdBackend::kSplit;
  EXPECT_EQ(Launches(op).size(), 3u);

  AttnBwd wide = Backward(Op(128, 128));
  wide.backend = BwdBackend::kFused;
  EXPECT_EQ(MakePlan(wide).code(), kNotSupported);
  EXPECT_NE(MakePlan(wide).text().find("bwd_fused.pack holds up to 64"), std::string::npos) << MakePlan(wide).text();
}

TEST_F(PlanTest, EachKernelOfTheBackwardTakesItsOwnLayout) {
  const auto spoil = [&](Tensor AttnBwd::*tensor) {
    AttnBwd op = Backward(Op());
    (op.*tensor).strides[0] += 4;
    std::string layouts;
    for (const std::string& launch : Launches(op)) layouts += launch.find(".any.") != std::string::npos ? 'u' : 'a';
    op.backend = BwdBackend::kFused;
    for (const std::string& launch : Launches(op)) layouts += launch.find(".any.") != std::string::npos ? 'u' : 'a';
    return layouts;
  };
  EXPECT_EQ(spoil(&AttnBwd::q), "auuu");
  EXPECT_EQ(spoil(&AttnBwd::k), "auuu");
  EXPECT_EQ(spoil(&AttnBwd::v), "auuu");
  EXPECT_EQ(spoil(&AttnBwd::out), "uaau");
  EXPECT_EQ(spoil(&AttnBwd::dout), "uuuu");
  EXPECT_EQ(spoil(&AttnBwd::dq), "aauu");
  EXPECT_EQ(spoil(&AttnBwd::dk), "auau");
  EXPECT_EQ(spoil(&AttnBwd::dv), "auau");
  // The first kernel knows only the head dim of out.
  EXPECT_EQ(Launches(Backward(Op(128, 64)))[0], "bwd_preprocess bf16.64.aligned.m128 x128");
  EXPECT_EQ(Launches(Backward(Op(128, 64)))[1], "bwd_dkdv bf16.128.1.any.1.1.m128 x88");
}

TEST_F(PlanTest, BiasDropoutAndVariableLengthsOfTheBackward) {
  AttnFwd forward = Op(kBFloat16, {2, 8, 1000, 64}, 2, 704, 64);
  forward.bias = Make(kBFloat16, {2, 8, 1000, 704}, 0xB0000);
  forward.bias.strides[0] = forward.bias.strides[1] = 0;
  forward.dropout = SomeDropout();
  AttnBwd op = Backward(forward);
  ASSERT_EQ(Launches(op)[2], "bwd_dq bf16.64.0.aligned.1.1.m128 x128");
  EXPECT_EQ(Find("has_db", 2).value.i32, 0);
  EXPECT_EQ(Find("DB", 2).value.pointer, nullptr);
  op.dbias = Make(kBFloat16, {2, 8, 1000, 704}, 0xC0000);
  ASSERT_EQ(Launches(op)[1], "bwd_dkdv bf16.64.0.aligned.1.1.m128 x88");
  EXPECT_EQ(Find("has_db", 2).value.i32, 1);
  EXPECT_EQ(Find("DB", 2).value.pointer, op.dbias.data);
  EXPECT_EQ(Find("stride_dbm", 2).value.i64, 704);
  for (int launch : {1, 2}) {
    EXPECT_EQ(Find("stride_bh", launch).value.i64, 0);
    EXPECT_EQ(Find("philox_seed", launch).value.pointer, op.dropout.seed.data);
    EXPECT_EQ(Find("dropout_p", launch).value.fp32, 0.25f);
  }
  op.dbias.strides[3] = 2;
  EXPECT_EQ(Launches(op)[1], "bwd_dkdv bf16.64.0.aligned.1.1.m128 x88");
  EXPECT_EQ(Launches(op)[2], "bwd_dq bf16.64.1.any.1.1.m128 x128");
  EXPECT_EQ(Find("stride_dbn", 2).value.i64, 2);

  AttnBwd compact = Backward(CompactOp());
  compact.logsumexp = compact.delta = Lower(Make(kFloat32, {1, 1, 8, 1000}, 0x50000), 2);
  // cdiv(600, 128) * 8 * 3; cdiv(500, 32) * 2 * 3.
  EXPECT_EQ(Launches(compact),
            (std::vector<std::string>{"bwd_preprocess bf16.64.aligned.m128 x120", "bwd_dkdv bf16.64.0.aligned.0.0.m128 x96",
                                      "bwd_dq bf16.64.0.aligned.0.0.m128 x120"}));
  for (int launch : {0, 1, 2}) {
    EXPECT_EQ(Find("cu_seqlens_q", launch).value.pointer, compact.varlen.cu_seqlens_q.data);
    EXPECT_EQ(Find("lse_compact", launch).value.i32, 1);
    EXPECT_EQ(Find("stride_lz", launch).value.i64, 0);
    EXPECT_EQ(Find("stride_lh", launch).value.i64, 1000);
  }
}

TEST_F(PlanTest, ABackwardWithoutQueriesOrKeysStillWritesZeros) {
  AttnBwd no_queries = Backward(Op(kBFloat16, {2, 8, 0, 64}, 2, 700, 64));
  no_queries.logsumexp.data = no_queries.q.data = no_queries.out.data = nullptr;
  EXPECT_EQ(Launches(no_queries), (std::vector<std::string>{"bwd_dkdv bf16.64.0.aligned.0.0.m64 x88"}));
  const AttnBwd no_keys = Backward(Op(kBFloat16, {2, 8, 1000, 64}, 2, 0, 64));
  EXPECT_EQ(Launches(no_keys),
            (std::vector<std::string>{"bwd_preprocess bf16.64.aligned.m128 x128", "bwd_dq bf16.64.0.aligned.0.0.m128 x128"}));
  EXPECT_EQ(Launches(Backward(Op(kBFloat16, {0, 8, 1000, 64}, 2, 700, 64))), (std::vector<std::string>{}));
}

TEST_F(PlanTest, RefusalsOfTheBackward) {
  AttnFwd forward = Op(kBFloat16, {2, 8, 1000, 64}, 2, 700, 32);
  forward.bias = Make(kBFloat16, {2, 8, 1000, 700}, 0xB0000);
  AttnBwd good = Backward(forward);
  good.dbias = Make(kBFloat16, {2, 8, 1000, 700}, 0xC0000);
  ASSERT_TRUE(Validate(good).ok()) << Validate(good).text();
  struct Case {
    void (*spoil)(AttnBwd*);
    int code;
    const char* text;
  };
  const Case cases[] = {
      {[](AttnBwd* op) { op->q.dtype = 5; }, kNotSupported, "q has dtype 5; supported are fp32 (1), fp16 (2) and bf16 (3)"},
      {[](AttnBwd* op) { op->dout = {}; }, kInvalidValue, "dout is null; a device pointer is required"},
      {[](AttnBwd* op) { op->dout.sizes[3] = 64; }, kInvalidValue, "dout has sizes (2, 8, 1000, 64); dimension 3 must be 32, that of out"},
      {[](AttnBwd* op) { op->dout.dtype = kFloat32; }, kInvalidValue, "dout has dtype fp32; it must be bf16, that of out"},
      {[](AttnBwd* op) { op->dout.strides[3] = 0; }, kInvalidValue, "dout has last stride 0; it must be 1"},
      {[](AttnBwd* op) { op->dq.sizes[2] = 999; }, kInvalidValue, "dq has sizes (2, 8, 999, 64); dimension 2 must be 1000, that of q"},
      {[](AttnBwd* op) { op->dq.strides[3] = 2; }, kInvalidValue, "dq has last stride 2; it must be 1"},
      {[](AttnBwd* op) { op->dk = op->dq; }, kInvalidValue, "dk has sizes (2, 8, 1000, 64); dimension 1 must be 2, that of k"},
      {[](AttnBwd* op) { op->dk.strides[1] = 0; }, kInvalidValue, "dk has stride 0 in dimension 1 of size 2; an output cannot be expanded, its elements would overwrite each other"},
      {[](AttnBwd* op) { op->dv.dtype = kFloat16; }, kInvalidValue, "dv has dtype fp16; it must be bf16, that of v"},
      {[](AttnBwd* op) { op->dbias.strides[1] = 0; }, kInvalidValue, "dbias has stride 0 in dimension 1 of size 8; an output cannot be expanded, its elements would overwrite each other"},
      {[](AttnBwd* op) { op->dbias.sizes[0] = 1; }, kInvalidValue, "dbias has sizes (1, 8, 1000, 700); dimension 0 must be 2, that of q"},
      {[](AttnBwd* op) { op->bias = {}; }, kInvalidValue, "dbias is given, and bias is null; pass the bias of the forward, or a null dbias"},
      {[](AttnBwd* op) { op->logsumexp = {}; }, kInvalidValue, "logsumexp is null; a device pointer is required"},
      {[](AttnBwd* op) { op->delta.sizes[2] = 999; }, kInvalidValue, "delta has sizes (2, 8, 999); it must be (2, 8, 1000) or (16, 1000): batch, num_head_q, seqlen_q"},
      {[](AttnBwd* op) { op->delta.dtype = kBFloat16; }, kInvalidValue, "delta has dtype 3; it must be fp32 (1)"},
      {[](AttnBwd* op) { op->delta = {}; op->backend = BwdBackend::kSplit; }, kInvalidValue, "delta is null; a device pointer is required"},
      {[](AttnBwd* op) { op->backend = static_cast<BwdBackend>(3); }, kNotSupported, "backend is 3; it must be 0 (default), 1 (split) or 2 (fused)"},
      {[](AttnBwd* op) { op->dropout.p = 0.5f; }, kInvalidValue, "philox_seed is null; dropout_p is 0.5 and requires a device pointer"},
  };
  for (const Case& c : cases) {
    AttnBwd op = good;
    c.spoil(&op);
    const Status status = Validate(op);
    EXPECT_EQ(status.code(), c.code) << c.text;
    EXPECT_EQ(status.text(), c.text);
  }
  // What the forward may not write to, the backward may read.
  good.out.strides[0] = good.out.strides[1] = good.dout.strides[2] = 0;
  EXPECT_TRUE(Validate(good).ok()) << Validate(good).text();
  AttnBwd compact = Backward(CompactOp());
  compact.logsumexp = Lower(Make(kFloat32, {1, 1, 8, 1000}, 0x50000), 2);
  compact.delta = Lower(Make(kFloat32, {1, 3, 8, 600}, 0x60000), 3);
  EXPECT_EQ(Validate(compact).text(), "delta has sizes (3, 8, 600), logsumexp has sizes (8, 1000); both must be compact, or neither");
}

TEST_F(PlanTest, RefusesPacksOfAnotherLibrary) {
  const std::pair<const char*, const char*> cases[] = {
      {"other_abi", "its abi is \"999\", expected is \"1\""},
      {"other_arch", "its arch is \"gfx1100\", expected is \"gfx942\""},
      {"other_kernel", "its kernel is \"bwd_dq\", expected is \"attn_fwd\""},
      {"argument_of_another_op", "the library does not know the kernel argument DQ"},
      {"unknown_argument", "the library does not know the kernel argument sink"},
      {"wrong_type", "the kernel argument max_seqlen_q has type \"i16\""},
      {"unknown_axis", "the library does not know the axis sink"},
      {"no_block_m", "variant 0 (attn_fwd) does not say its BLOCK_M"},
  };
  for (const auto& [defect, text] : cases) {
    const Status status = Bind(support::BadPack(defect));
    EXPECT_EQ(status.code(), kInvalidImage);
    EXPECT_EQ(status.text(), "the pack " + support::BadPack(defect) + ", of version 0.0.1, and this library, of version " AOTRITON_RELEASE
                                 ", do not belong together: " + text + ". Take both from one build");
  }
}

TEST_F(PlanTest, PersistentSchedule) {
  AttnFwd op = Op();
  op.is_windowed = true;
  op.persistent_counter = {reinterpret_cast<void*>(0xF0000), kInt32};
  EXPECT_EQ(Launches(op), std::vector<std::string>{"attn_fwd_persistent bf16.64.m128 x128"});
  EXPECT_STREQ(plan_.launches[0].arguments[plan_.launches[0].num_programs_argument].name, "num_programs");
  EXPECT_EQ(Find("persistent_counter").value.pointer, reinterpret_cast<void*>(0xF0000));
  EXPECT_EQ(Find("num_sequences").value.i32, 2);
  AttnFwd varlen = CompactOp();
  varlen.is_windowed = true;
  varlen.persistent_counter = op.persistent_counter;
  EXPECT_EQ(Launches(varlen), std::vector<std::string>{"attn_fwd_persistent bf16.64.m128 x120"});
  EXPECT_EQ(Find("num_sequences").value.i32, 3);

  // What it does not serve takes the plain one.
  const auto plain = [&](void (*change)(AttnFwd*)) {
    AttnFwd changed = op;
    change(&changed);
    return Launches(changed).at(0);
  };
  EXPECT_EQ(plain([](AttnFwd* o) { o->persistent_counter = {}; }), "attn_fwd bf16.64.1.aligned.0.0.m128 x128");
  EXPECT_EQ(plain([](AttnFwd* o) { o->is_windowed = false; }), "attn_fwd bf16.64.0.aligned.0.0.m128 x128");
  EXPECT_EQ(plain([](AttnFwd* o) { o->dropout = SomeDropout(); }), "attn_fwd bf16.64.1.aligned.0.1.m128 x128");
  EXPECT_EQ(plain([](AttnFwd* o) { o->bias = Make(kBFloat16, {2, 8, 1000, 704}, 0xA0000), o->bias.sizes[3] = 700; }),
            "attn_fwd bf16.64.1.aligned.1.0.m128 x128");
  EXPECT_EQ(plain([](AttnFwd* o) { o->q.strides[2] += 1; }), "attn_fwd bf16.64.1.any.1.1.m128 x128");
  EXPECT_EQ(plain([](AttnFwd* o) { for (Tensor* t : {&o->q, &o->k, &o->v, &o->out}) t->dtype = kFloat32; }),
            "attn_fwd fp32.64.1.any.1.1.m128 x128");
  EXPECT_EQ(plain([](AttnFwd* o) { for (Tensor* t : {&o->q, &o->k, &o->v, &o->out}) t->sizes[3] = 32; }),
            "attn_fwd bf16.32.1.aligned.0.0.m128 x128");  // a tile that its pack lacks

  op.persistent_counter.dtype = kInt64;
  EXPECT_EQ(Chosen(op), "persistent_counter has dtype 13; it must be int32 (12)");
  op.persistent_counter = {reinterpret_cast<void*>(0xF0002), kInt32};
  EXPECT_NE(Chosen(op).find("persistent_counter"), std::string::npos);
  op.is_windowed = false;  // not used
  EXPECT_EQ(Chosen(op), "bf16.64.0.aligned.0.0.m128");
}

}  // namespace
}  // namespace aotriton::dispatcher
