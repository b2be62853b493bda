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

static_assert(aotriton::kUnknown == 0 && aotriton::kFloat32 == 1 && aotriton::kFloat16 == 2 && aotriton::kBFloat16 == 3);
static_assert(aotriton::kInt8 == 10 && aotriton::kInt64 == 13 && aotriton::kUInt8 == 20 && aotriton::kUInt64 == 23);
static_assert(aotriton::GPU_AMD_ARCH_GFX942_MOD1 == 0x100209420001 && aotriton::GPU_AMD_ARCH_GFX1100_MOD0 == 0x100211000000);
static_assert(aotriton::v3::flash::WindowValue::TopLeftAligned == static_cast<int32_t>(0x80000001));
static_assert(aotriton::v3::flash::WindowValue::BottomRightAligned == static_cast<int32_t>(0x80000002));
static_assert(AOTRITON_VERSION_MAJOR * 100 + AOTRITON_VERSION_MINOR >= 11u);

// The symbol that a caller built against upstream's headers imports.
extern "C" void OldConstructor(void* self) __asm__("_ZN8aotriton2v35flash15attn_fwd_paramsC1Ev");
extern "C" void OldBaseConstructor(void* self) __asm__("_ZN8aotriton2v35flash15attn_fwd_paramsC2Ev");

TEST(LayoutTest, TheExportedConstructorFills768Bytes) {
  for (void (*construct)(void*) : {OldConstructor, OldBaseConstructor}) {
    alignas(16) unsigned char object[832];
    memset(object, 0xA5, sizeof(object));
    construct(object);
    for (size_t i = 0; i < sizeof(object); ++i) ASSERT_EQ(object[i], i < 768 ? 0 : 0xA5) << i;
  }
}

TEST(LayoutTest, OurConstructorFillsAll) {
  alignas(attn_fwd_params) unsigned char memory[sizeof(attn_fwd_params)];
  memset(memory, 0xA5, sizeof(memory));
  const auto* params = new (memory) attn_fwd_params;
  EXPECT_FALSE(params->Q || params->L || params->seq_strides_k || params->encoded_softmax || params->persistent_atomic_counter);
  EXPECT_EQ(params->causal_type, 0);
  EXPECT_EQ(params->window_right, 0);
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
