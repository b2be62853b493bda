// Tensor views, and questions about GPUs.
#ifndef AOTRITON_UTIL_H_
#define AOTRITON_UTIL_H_

#include <aotriton/config.h>
#include <aotriton/dtypes.h>
#include <aotriton/runtime.h>

#include <array>
#include <cstdint>
#include <functional>

namespace AOTRITON_NS {

constexpr uint64_t CAT64(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }
constexpr uint32_t CAT32(uint16_t high, uint16_t low) { return uint32_t{high} << 16 | low; }
constexpr uint64_t TRICAT(uint16_t high, uint16_t mid, uint16_t low) { return CAT64(high, CAT32(mid, low)); }

template <typename T>
T cdiv(T numerator, T denominator) {
  return (numerator + (denominator - 1)) / denominator;
}

enum GpuVendor : uint16_t {
  kAMD = 0x1002,
  kNVIDIA = 0x10de,
  kINTEL = 0x8086,
};

// vendor << 32 | arch digits << 16 | product of the arch
enum Gpu : uint64_t {
  GPU_ARCH_UNKNOWN = 0,
  GPU_AMD_ARCH_GFX90A_MOD0 = TRICAT(kAMD, 0x90a, 0),
  GPU_AMD_ARCH_GFX942_MOD0 = TRICAT(kAMD, 0x942, 0),
  GPU_AMD_ARCH_GFX942_MOD1 = TRICAT(kAMD, 0x942, 1),
  GPU_AMD_ARCH_GFX942_MOD2 = TRICAT(kAMD, 0x942, 2),
  GPU_AMD_ARCH_GFX950_MOD0 = TRICAT(kAMD, 0x950, 0),
  GPU_AMD_ARCH_GFX1100_MOD0 = TRICAT(kAMD, 0x1100, 0),
  GPU_AMD_ARCH_GFX1101_MOD0 = TRICAT(kAMD, 0x1101, 0),
  GPU_AMD_ARCH_GFX1102_MOD0 = TRICAT(kAMD, 0x1102, 0),
  GPU_AMD_ARCH_GFX1103_MOD0 = TRICAT(kAMD, 0x1103, 0),
  GPU_AMD_ARCH_GFX1150_MOD0 = TRICAT(kAMD, 0x1150, 0),
  GPU_AMD_ARCH_GFX1151_MOD0 = TRICAT(kAMD, 0x1151, 0),
  GPU_AMD_ARCH_GFX1152_MOD0 = TRICAT(kAMD, 0x1152, 0),
  GPU_AMD_ARCH_GFX1153_MOD0 = TRICAT(kAMD, 0x1153, 0),
  GPU_AMD_ARCH_GFX1200_MOD0 = TRICAT(kAMD, 0x1200, 0),
  GPU_AMD_ARCH_GFX1201_MOD0 = TRICAT(kAMD, 0x1201, 0),
  GPU_AMD_ARCH_GFX1250_MOD0 = TRICAT(kAMD, 0x1250, 0),
};

inline uint32_t Gpu2VendorArch(uint64_t gpu) { return static_cast<uint32_t>((gpu & 0xFFFFFFFF0000) >> 16); }

// GPU_ARCH_UNKNOWN where there is no GPU, or none that the library knows.
AOTRITON_API Gpu getGpuFromStream(hipStream_t stream);

// Whether the GPU is served, but not to the quality of the others.
AOTRITON_API bool isArchExperimentallySupported(hipStream_t stream);
AOTRITON_API bool isArchTechPreview(hipStream_t stream);

// 40 where it cannot be known.
AOTRITON_API int getMultiProcessorCount(hipStream_t stream);

// A tensor in device memory. A view whose base is null is no tensor: nothing else of it is read.
template <int Rank>
class AOTRITON_API TensorView {
 public:
  TensorView() {}  // not "= default": callers built without optimisation import it

  TensorView(intptr_t base, std::array<uint64_t, Rank> sizes, std::array<uint64_t, Rank> strides, DType dtype)
      : base_(reinterpret_cast<void*>(base)), sizes_(sizes), strides_(strides), dtype_(dtype) {}

  // From anything with data_ptr(), size(i) and stride(i).
  template <typename Tensor>
  TensorView(const Tensor& tensor, std::function<DType(const Tensor&)> extract_dtype)
      : base_(const_cast<void*>(static_cast<const void*>(tensor.data_ptr()))), dtype_(extract_dtype(tensor)) {
    for (int i = 0; i < Rank; ++i) {
      sizes_[i] = tensor.size(i);
      strides_[i] = tensor.stride(i);
    }
  }

  operator bool() const { return base_ != nullptr; }

  uint64_t size(int i) const { return sizes_[i]; }
  uint64_t stride(int i) const { return strides_[i]; }
  std::array<uint64_t, Rank> sizes() const { return sizes_; }
  std::array<uint64_t, Rank> strides() const { return strides_; }
  const uint64_t* size_ptr() const { return sizes_.data(); }
  const uint64_t* stride_ptr() const { return strides_.data(); }
  void* data_ptr() const { return base_; }
  DType dtype() const { return dtype_; }

  // Addresses of the fields, for kernel launches.
  void* kparam_data_ptr() const { return const_cast<void*>(static_cast<const void*>(&base_)); }
  void* kparam_stride(int i) const { return const_cast<void*>(static_cast<const void*>(&strides_[i])); }

  static TensorView<Rank> get_null_tensor(DType dtype) { return TensorView<Rank>(0, {}, {}, dtype); }

 private:
  void* base_ = nullptr;
  std::array<uint64_t, Rank> sizes_ = {};
  std::array<uint64_t, Rank> strides_ = {};
  DType dtype_ = kUnknown;
};

// A scalar in device memory.
template <>
class TensorView<0> {
 public:
  TensorView() = default;
  TensorView(intptr_t base, DType dtype) : base_(reinterpret_cast<void*>(base)), dtype_(dtype) {}

  operator bool() const { return base_ != nullptr; }

  uint64_t size(int i) const { return i == 0 ? 1 : 0; }
  uint64_t stride(int i) const { return i == 0 ? 1 : 0; }
  void* data_ptr() const { return base_; }
  DType dtype() const { return dtype_; }
  void* kparam_data_ptr() const { return const_cast<void*>(static_cast<const void*>(&base_)); }

  static TensorView<0> get_null_tensor(DType dtype) { return TensorView<0>(0, dtype); }

 private:
  void* base_ = nullptr;
  DType dtype_ = kUnknown;
};

extern template class TensorView<1>;
extern template class TensorView<2>;
extern template class TensorView<3>;
extern template class TensorView<4>;

// Memory that only some backends need: `acquire` makes it when one does.
#if AOTRITON_INTERNAL_RELEASE >= 12
// A tensor that exists already goes into `eager`.
template <int Rank>
struct LazyTensor {
  void* cookie = nullptr;
  TensorView<Rank> (*acquire)(LazyTensor<Rank>* self) = nullptr;
  void (*dispose)(LazyTensor<Rank>* self) = nullptr;
  TensorView<Rank> eager;

  operator bool() const { return eager || (cookie != nullptr && acquire != nullptr); }

  void free() {
    if (cookie == nullptr || dispose == nullptr) return;
    dispose(this);
    cookie = nullptr;
  }
};
#elif AOTRITON_INTERNAL_RELEASE == 11
template <int Rank>
struct LazyTensor {
  void* cookie = nullptr;
  TensorView<Rank> (*acquire)(void* cookie) = nullptr;
  void (*dispose)(void* cookie) = nullptr;

  operator bool() const { return cookie != nullptr && acquire != nullptr; }

  void free() {
    if (cookie == nullptr || dispose == nullptr) return;
    dispose(cookie);
    cookie = nullptr;
  }
};
#endif

}  // namespace AOTRITON_NS

#endif  // AOTRITON_UTIL_H_
