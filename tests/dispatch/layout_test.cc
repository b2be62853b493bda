// What built callers rely on: numbers, sizes, offsets, and how much the constructor writes.
#include <aotriton/config.h>
#include <aotriton/flash.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <new>
#include <type_traits>

namespace {

using aotriton::LazyTensor;
using aotriton::TensorView;
using aotriton::v3::flash::attn_bwd_params;
using aotriton::v3::flash::attn_fwd_params;
using aotriton::v3::flash::attn_options;

static_assert(sizeof(TensorView<0>) == 16 && sizeof(TensorView<1>) == 32 && sizeof(TensorView<2>) == 48 && sizeof(TensorView<4>) == 80);
static_assert(std::is_trivially_copyable_v<TensorView<4>> && std::is_trivially_copyable_v<TensorView<0>>);
static_assert(sizeof(LazyTensor<2>) == 72 && sizeof(LazyTensor<4>) == 104);
static_assert(sizeof(attn_options) == 8 && offsetof(attn_options, deterministic) == 4);
static_assert(sizeof(aotriton::Stream) == sizeof(void*));

static_assert(attn_fwd_params::kVersion == 3 && sizeof(attn_fwd_params) == 832);
static_assert(offsetof(attn_fwd_params, Q) == 0 && offsetof(attn_fwd_params, K) == 80 && offsetof(attn_fwd_params, V) == 160);
static_assert(offsetof(attn_fwd_params, B) == 240 && offsetof(attn_fwd_params, A) == 320 && offsetof(attn_fwd_params, Sm_scale) == 368);
static_assert(offsetof(attn_fwd_params, L) == 376 && offsetof(attn_fwd_params, Out) == 424);
static_assert(offsetof(attn_fwd_params, cu_seqlens_q) == 504 && offsetof(attn_fwd_params, cu_seqlens_k) == 536);
static_assert(offsetof(attn_fwd_params, Max_seqlen_q) == 568 && offsetof(attn_fwd_params, Max_seqlen_k) == 572);
static_assert(offsetof(attn_fwd_params, seq_strides_q) == 576 && offsetof(attn_fwd_params, seq_strides_k) == 608);
static_assert(offsetof(attn_fwd_params, dropout_p) == 640 && offsetof(attn_fwd_params, philox_seed_ptr) == 648);
static_assert(offsetof(attn_fwd_params, philox_offset1) == 664 && offsetof(attn_fwd_params, philox_offset2) == 680);
static_assert(offsetof(attn_fwd_params, encoded_softmax) == 720 && offsetof(attn_fwd_params, persistent_atomic_counter) == 800);
static_assert(offsetof(attn_fwd_params, causal_type) == 816 && offsetof(attn_fwd_params, varlen_type) == 817);
static_assert(offsetof(attn_fwd_params, window_left) == 820 && offsetof(attn_fwd_params, window_right) == 824);

static_assert(attn_bwd_params::kVersion == 6 && sizeof(attn_bwd_params) == 1232);
static_assert(offsetof(attn_bwd_params, B) == 240 && offsetof(attn_bwd_params, Sm_scale) == 320 && offsetof(attn_bwd_params, Out) == 328);
static_assert(offsetof(attn_bwd_params, DO) == 408 && offsetof(attn_bwd_params, DK) == 488 && offsetof(attn_bwd_params, DV) == 568);
static_assert(offsetof(attn_bwd_params, DQ) == 648 && offsetof(attn_bwd_params, DB) == 728 && offsetof(attn_bwd_params, L) == 808);
static_assert(offsetof(attn_bwd_params, D) == 856 && offsetof(attn_bwd_params, cu_seqlens_q) == 928);
static_assert(offsetof(attn_bwd_params, cu_seqlens_k) == 960 && offsetof(attn_bwd_params, Max_seqlen_q) == 992);
static_assert(offsetof(attn_bwd_params, seq_strides_q) == 1000 && offsetof(attn_bwd_params, dropout_p) == 1064);
static_assert(offsetof(attn_bwd_params, philox_seed_ptr) == 1072 && offsetof(attn_bwd_params, philox_offset2) == 1104);
static_assert(offsetof(attn_bwd_params, causal_type) == 1112 && offsetof(attn_bwd_params, window_left) == 1116);
static_assert(offsetof(attn_bwd_params, window_right) == 1120 && offsetof(attn_bwd_params, DQ_ACC) == 1128);

static_assert(aotriton::kUnknown == 0 && aotriton::kFloat32 == 1 && aotriton::kFloat16 == 2 && aotriton::kBFloat16 == 3);
static_assert(aotriton::kInt8 == 10 && aotriton::kInt64 == 13 && aotriton::kUInt8 == 20 && aotriton::kUInt64 == 23);
static_assert(aotriton::GPU_AMD_ARCH_GFX942_MOD1 == 0x100209420001 && aotriton::GPU_AMD_ARCH_GFX1100_MOD0 == 0x100211000000);
static_assert(aotriton::v3::flash::WindowValue::TopLeftAligned == static_cast<int32_t>(0x80000001));
static_assert(aotriton::v3::flash::WindowValue::BottomRightAligned == static_cast<int32_t>(0x80000002));
static_assert(AOTRITON_VERSION_MAJOR * 100 + AOTRITON_VERSION_MINOR >= 11u);

// The symbols that a caller built against upstream's headers imports.
extern "C" void OldFwdConstructor(void* self) __asm__("_ZN8aotriton2v35flash15attn_fwd_paramsC1Ev");
extern "C" void OldFwdBaseConstructor(void* self) __asm__("_ZN8aotriton2v35flash15attn_fwd_paramsC2Ev");
extern "C" void OldBwdConstructor(void* self) __asm__("_ZN8aotriton2v35flash15attn_bwd_paramsC1Ev");
extern "C" void OldBwdBaseConstructor(void* self) __asm__("_ZN8aotriton2v35flash15attn_bwd_paramsC2Ev");

TEST(LayoutTest, TheExportedConstructorsFillWhatAllReleasesHave) {
  struct Constructor {
    void (*construct)(void*);
    size_t size;
  };
  for (const Constructor& c : {Constructor{OldFwdConstructor, 768}, Constructor{OldFwdBaseConstructor, 768},
                               Constructor{OldBwdConstructor, 1040}, Constructor{OldBwdBaseConstructor, 1040}}) {
    alignas(16) unsigned char object[1232];
    memset(object, 0xA5, sizeof(object));
    c.construct(object);
    for (size_t i = 0; i < sizeof(object); ++i) ASSERT_EQ(object[i], i < c.size ? 0 : 0xA5) << i;
  }
}

template <typename Params>
const Params* MakeOver(unsigned char* memory) {
  memset(memory, 0xA5, sizeof(Params));
  return new (memory) Params;
}

TEST(LayoutTest, OurConstructorsFillAll) {
  alignas(16) unsigned char memory[sizeof(attn_bwd_params)];
  const auto* fwd = MakeOver<attn_fwd_params>(memory);
  EXPECT_FALSE(fwd->Q || fwd->L || fwd->seq_strides_k || fwd->encoded_softmax || fwd->persistent_atomic_counter);
  EXPECT_EQ(fwd->causal_type, 0);
  EXPECT_EQ(fwd->window_right, 0);
  const auto* bwd = MakeOver<attn_bwd_params>(memory);
  EXPECT_FALSE(bwd->Q || bwd->L || bwd->D || bwd->seq_strides_k || bwd->DB || bwd->DQ_ACC);
  EXPECT_EQ(bwd->varlen_type, 0);
  EXPECT_EQ(bwd->window_right, 0);
}

TEST(LayoutTest, LazyTensorsAreGivenBackOnce) {
  static int disposed = 0;
  int cookie = 0;
  LazyTensor<2> lazy;
  EXPECT_FALSE(lazy);
  lazy.cookie = &cookie;
  lazy.acquire = [](LazyTensor<2>* self) { return TensorView<2>(reinterpret_cast<intptr_t>(self->cookie), {1, 1}, {1, 1}, aotriton::kFloat32); };
  lazy.dispose = [](LazyTensor<2>*) { ++disposed; };
  EXPECT_TRUE(lazy);
  EXPECT_EQ(lazy.acquire(&lazy).data_ptr(), &cookie);
  lazy.free();
  lazy.free();
  EXPECT_EQ(disposed, 1);
}

struct FrameworkTensor {
  void* data_ptr() const { return const_cast<FrameworkTensor*>(this); }
  int64_t size(int i) const { return i + 1; }
  int64_t stride(int i) const { return 10 * i; }
};

TEST(LayoutTest, ViewsOfFrameworkTensors) {
  const FrameworkTensor tensor;
  const std::function<aotriton::DType(const FrameworkTensor&)> dtype = [](const FrameworkTensor&) { return aotriton::kInt8; };
  const TensorView<4> view(tensor, dtype);
  EXPECT_EQ(view.data_ptr(), &tensor);
  EXPECT_EQ(view.size(3), 4u);
  EXPECT_EQ(view.stride_ptr()[2], 20u);
  EXPECT_EQ(view.dtype(), aotriton::kInt8);
}

}  // namespace
