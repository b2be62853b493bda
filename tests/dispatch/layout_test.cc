// What built callers rely on beside layouts (tests/callers): numbers, and how much the constructors write.
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

static_assert(std::is_trivially_copyable_v<TensorView<4>> && std::is_trivially_copyable_v<TensorView<0>>);
static_assert(sizeof(aotriton::Stream) == sizeof(void*));

static_assert(aotriton::kUnknown == 0 && aotriton::kFloat32 == 1 && aotriton::kFloat16 == 2 && aotriton::kBFloat16 == 3);
static_assert(aotriton::kInt8 == 10 && aotriton::kInt64 == 13 && aotriton::kUInt8 == 20 && aotriton::kUInt64 == 23);
static_assert(aotriton::GPU_AMD_ARCH_GFX942_MOD1 == 0x100209420001 && aotriton::GPU_AMD_ARCH_GFX1100_MOD0 == 0x100211000000);
static_assert(aotriton::v3::flash::WindowValue::TopLeftAligned == static_cast<int32_t>(0x80000001));
static_assert(aotriton::v3::flash::WindowValue::BottomRightAligned == static_cast<int32_t>(0x80000002));

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
