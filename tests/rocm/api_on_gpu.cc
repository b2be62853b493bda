// The C, v2 and v3 APIs on the GPU of this machine: right by a plain formula on the host, and the same
// bits through each. tests/gpu has the numbers; this shows that a C++ caller gets them.
#include <aotriton/aotriton.h>
#include <aotriton/flash.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using aotriton::TensorView;
namespace v2 = aotriton::v2::flash;
namespace v3 = aotriton::v3::flash;

// Memory of device 0, by whichever runtime is here.
class Runtime {
 public:
  static const Runtime& Get() {
    static const Runtime* const runtime = new Runtime;
    return *runtime;
  }

  // "" or why there is no GPU.
  const std::string& problem() const { return problem_; }

  void* Allocate(size_t bytes) const {
    void* memory = nullptr;
    EXPECT_EQ(allocate_(&memory, bytes), 0);
    return memory;
  }
  void Free(void* memory) const { free_(memory); }
  void Upload(void* to, const void* from, size_t bytes) const {
    if (hip_copy_ != nullptr) {
      EXPECT_EQ(hip_copy_(to, from, bytes, 1), 0);
    } else {
      EXPECT_EQ(cuda_upload_(to, from, bytes), 0);
    }
  }
  // Waits for the work that was enqueued before it.
  void Download(void* to, const void* from, size_t bytes) const {
    EXPECT_EQ(synchronize_(), 0);
    if (hip_copy_ != nullptr) {
      EXPECT_EQ(hip_copy_(to, from, bytes, 2), 0);
    } else {
      EXPECT_EQ(cuda_download_(to, from, bytes), 0);
    }
  }

 private:
  Runtime() {
    if (!OpenHip() && !OpenCuda()) problem_ = "neither libamdhip64 nor libcuda finds a GPU";
  }

  bool OpenHip() {
    void* library = nullptr;
    for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW);
    }
    if (library == nullptr) return false;
    int (*count)(int*);
    int devices = 0;
    Bind(library, "hipGetDeviceCount", &count);
    Bind(library, "hipMalloc", &allocate_);
    Bind(library, "hipFree", &free_);
    Bind(library, "hipMemcpy", &hip_copy_);
    Bind(library, "hipDeviceSynchronize", &synchronize_);
    return count(&devices) == 0 && devices > 0;
  }

  bool OpenCuda() {
    hip_copy_ = nullptr;
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return false;
    int (*init)(unsigned), (*get)(int*, int), (*retain)(void**, int), (*set)(void*), device = 0;
    void* context = nullptr;
    Bind(library, "cuInit", &init);
    Bind(library, "cuDeviceGet", &get);
    Bind(library, "cuDevicePrimaryCtxRetain", &retain);
    Bind(library, "cuCtxSetCurrent", &set);
    Bind(library, "cuMemAlloc_v2", &allocate_);
    Bind(library, "cuMemFree_v2", &free_);
    Bind(library, "cuMemcpyHtoD_v2", &cuda_upload_);
    Bind(library, "cuMemcpyDtoH_v2", &cuda_download_);
    Bind(library, "cuCtxSynchronize", &synchronize_);
    return init(0) == 0 && get(&device, 0) == 0 && retain(&context, device) == 0 && set(context) == 0;
  }

  template <typename Function>
  static void Bind(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    EXPECT_NE(*function, nullptr) << name;
  }

  std::string problem_;
  int (*allocate_)(void**, size_t) = nullptr;
  int (*free_)(void*) = nullptr;
  int (*hip_copy_)(void*, const void*, size_t, int) = nullptr;
  int (*cuda_upload_)(void*, const void*, size_t) = nullptr;
  int (*cuda_download_)(void*, const void*, size_t) = nullptr;
  int (*synchronize_)() = nullptr;
};

// Of a number that fp16 holds exactly, and that is 0 or normal.
uint16_t ToHalf(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000;
  if ((bits & 0x7fffffff) == 0) return static_cast<uint16_t>(sign);
  return static_cast<uint16_t>(sign | (((bits >> 23 & 0xff) - 112) << 10) | (bits >> 13 & 0x3ff));
}

double FromHalf(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  if (exponent == 31) return NAN;  // infinite too: neither is due anywhere
  const double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000 ? -value : value;
}

// A contiguous tensor in device memory; an output holds NaN until it is written.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count), memory_(Runtime::Get().Allocate(count * sizeof(T))) {
    std::vector<T> poison(count);
    memset(poison.data(), 0xff, count * sizeof(T));
    Set(poison);
  }
  ~Buffer() { Runtime::Get().Free(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void Set(const std::vector<T>& values) { Runtime::Get().Upload(memory_, values.data(), count_ * sizeof(T)); }
  std::vector<T> Read() const {
    std::vector<T> values(count_);
    Runtime::Get().Download(values.data(), memory_, count_ * sizeof(T));
    return values;
  }
  void* data() const { return memory_; }

 private:
  size_t count_;
  void* memory_;
};

constexpr int kHeadsQ = 4, kHeadsK = 2, kRows = 70, kKeys = 90, kDim = 64;
constexpr float kScale = 0.125f;
using Shape = std::array<uint64_t, 4>;
constexpr Shape kLikeQ = {1, kHeadsQ, kRows, kDim}, kLikeK = {1, kHeadsK, kKeys, kDim};

size_t Count(const Shape& shape) { return shape[0] * shape[1] * shape[2] * shape[3]; }

Shape Strides(const Shape& s) { return {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}; }

TensorView<4> View4(const Buffer<uint16_t>& buffer, const Shape& shape) {
  return {reinterpret_cast<intptr_t>(buffer.data()), shape, Strides(shape), aotriton::kFloat16};
}

TensorView<2> View2(const Buffer<float>& buffer) {
  return {reinterpret_cast<intptr_t>(buffer.data()), {kHeadsQ, kRows}, {kRows, 1}, aotriton::kFloat32};
}

aotriton_tensor ToC(const TensorView<4>& view) {
  aotriton_tensor tensor{view.data_ptr() ? const_cast<void*>(static_cast<const void*>(view.data_ptr())) : nullptr, AOTRITON_FLOAT16, 4, {}, {}};
  for (int i = 0; i < 4; ++i) {
    tensor.sizes[i] = static_cast<int64_t>(view.size(i));
    tensor.strides[i] = static_cast<int64_t>(view.stride(i));
  }
  return tensor;
}

aotriton_tensor ToC(const Buffer<float>& rows) { return {rows.data(), AOTRITON_FLOAT32, 2, {kHeadsQ, kRows}, {kRows, 1}}; }

// Bits of all that one way of calling wrote.
struct Results {
  std::vector<uint16_t> out, dq, dk, dv;
  std::vector<float> lse;

  bool operator==(const Results& other) const {
    return out == other.out && dq == other.dq && dk == other.dk && dv == other.dv && lse == other.lse;
  }
};

// Inputs, outputs, and the ways of calling.
class Problem {
 public:
  explicit Problem(float dropout_p) : dropout_p_(dropout_p) {
    std::mt19937 numbers(1);
    for (auto* input : {&q_, &k_, &v_, &dout_}) {
      const Shape& shape = input == &q_ || input == &dout_ ? kLikeQ : kLikeK;
      std::vector<uint16_t> bits;
      for (size_t i = 0; i < Count(shape); ++i) {
        const float number = static_cast<float>(static_cast<int>(numbers() % 129) - 64) / 32;  // exact in fp16
        bits.push_back(ToHalf(number));
        input->host.push_back(number);
      }
      input->buffer = std::make_unique<Buffer<uint16_t>>(Count(shape));
      input->buffer->Set(bits);
      input->view = View4(*input->buffer, shape);
    }
    seed_.Set({kSeed});
    offset_.Set({kOffset});
  }

  // call(problem, out, lse) and backward(problem, dq, dk, dv, out, lse, delta).
  template <typename Forward, typename Backward>
  Results Run(Forward forward, Backward backward) const {
    Buffer<uint16_t> out(Count(kLikeQ)), dq(Count(kLikeQ)), dk(Count(kLikeK)), dv(Count(kLikeK));
    Buffer<float> lse(kHeadsQ * kRows), delta(kHeadsQ * kRows);
    EXPECT_EQ(forward(View4(out, kLikeQ), lse), 0) << aotriton_last_error();
    EXPECT_EQ(backward(View4(out, kLikeQ), lse, delta, View4(dq, kLikeQ), View4(dk, kLikeK), View4(dv, kLikeK)), 0)
        << aotriton_last_error();
    return {out.Read(), dq.Read(), dk.Read(), dv.Read(), lse.Read()};
  }

  Results ByC(int backend) const {
    return Run(
        [&](const TensorView<4>& out, const Buffer<float>& lse) -> int {
          aotriton_attn_fwd_args args = {};
          Fill(&args, out, lse);
          return aotriton_attn_fwd(&args, nullptr);
        },
        [&](const TensorView<4>& out, const Buffer<float>& lse, const Buffer<float>& delta, const TensorView<4>& dq,
            const TensorView<4>& dk, const TensorView<4>& dv) -> int {
          aotriton_attn_bwd_args args = {};
          Fill(&args, out, lse);
          args.dout = ToC(dout_.view);
          args.dq = ToC(dq);
          args.dk = ToC(dk);
          args.dv = ToC(dv);
          args.delta = ToC(delta);
          args.backend = backend;
          return aotriton_attn_bwd(&args, nullptr);
        });
  }

  Results ByV2(bool fused) const {
    const TensorView<4> none = TensorView<4>::get_null_tensor(aotriton::kFloat16);
    const TensorView<0> no_scalar = TensorView<0>::get_null_tensor(aotriton::kUInt64);
    return Run(
        [&](const TensorView<4>& out, const Buffer<float>& lse) -> int {
          return v2::attn_fwd(q_.view, k_.view, v_.view, none, kScale, View2(lse), out, dropout_p_, Seed(), Offset(), 0, no_scalar,
                              no_scalar, none, false, no_scalar, {});
        },
        [&](const TensorView<4>& out, const Buffer<float>& lse, const Buffer<float>& delta, const TensorView<4>& dq,
            const TensorView<4>& dk, const TensorView<4>& dv) -> int {
          if (fused) {
            return v2::attn_bwd_fused(q_.view, k_.view, v_.view, none, kScale, out, dout_.view, dq, dk, dv, none, View2(lse), dropout_p_,
                                      Seed(), Offset(), 0, false, {});
          }
          return v2::attn_bwd(q_.view, k_.view, v_.view, none, kScale, out, dout_.view, dq, dk, dv, none, View2(lse), View2(delta),
                              dropout_p_, Seed(), Offset(), 0, false, {});
        });
  }

  Results ByV3(int backend) const {
    return Run(
        [&](const TensorView<4>& out, const Buffer<float>& lse) -> int {
          v3::attn_fwd_params params;
          Fill(&params, out, lse);
          return v3::attn_fwd(params, v3::attn_fwd_params::kVersion, {});
        },
        [&](const TensorView<4>& out, const Buffer<float>& lse, const Buffer<float>& delta, const TensorView<4>& dq,
            const TensorView<4>& dk, const TensorView<4>& dv) -> int {
          v3::attn_bwd_params params;
          Fill(&params, out, lse);
          params.DO = dout_.view;
          params.DQ = dq;
          params.DK = dk;
          params.DV = dv;
          params.D.eager = View2(delta);
          v3::attn_options options;
          options.force_backend_index = backend;
          return v3::attn_bwd(params, v3::attn_bwd_params::kVersion, {}, &options);
        });
  }

  // Largest errors of Out, LSE and the gradients, by the plain formula in double.
  void CheckAgainstHost(const Results& results) const {
    std::vector<uint8_t> keep(kHeadsQ * kRows * kKeys, 1);
    if (dropout_p_ > 0) {
      ASSERT_EQ(aotriton_dropout_mask(kSeed, kOffset, dropout_p_, 1, kHeadsQ, kRows, kKeys, keep.data()), 0);
    }
    std::vector<double> out(Count(kLikeQ)), dq(Count(kLikeQ)), dk(Count(kLikeK)), dv(Count(kLikeK));
    for (int h = 0; h < kHeadsQ; ++h) {
      const size_t first_key = static_cast<size_t>(h) / (kHeadsQ / kHeadsK) * kKeys * kDim;
      for (int m = 0; m < kRows; ++m) {
        const size_t row = (static_cast<size_t>(h) * kRows + m) * kDim;
        std::vector<double> p(kKeys), dp(kKeys);
        double sum = 0, delta = 0;
        for (int n = 0; n < kKeys; ++n) {
          const size_t key = first_key + static_cast<size_t>(n) * kDim;
          double score = 0;
          for (int d = 0; d < kDim; ++d) score += double{q_.host[row + d]} * k_.host[key + d];
          sum += p[n] = std::exp(score * kScale);
        }
        EXPECT_NEAR(results.lse[row / kDim], std::log(sum), 1e-5);
        for (int n = 0; n < kKeys; ++n) {
          const size_t key = first_key + static_cast<size_t>(n) * kDim;
          p[n] /= sum;
          const double kept = keep[row / kDim * kKeys + n] != 0 ? 1 / (1 - double{dropout_p_}) : 0;
          for (int d = 0; d < kDim; ++d) {
            out[row + d] += p[n] * kept * v_.host[key + d];
            dv[key + d] += p[n] * kept * dout_.host[row + d];
            dp[n] += kept * double{dout_.host[row + d]} * v_.host[key + d];
          }
          delta += p[n] * dp[n];
        }
        for (int n = 0; n < kKeys; ++n) {
          const size_t key = first_key + static_cast<size_t>(n) * kDim;
          const double ds = p[n] * (dp[n] - delta) * kScale;
          for (int d = 0; d < kDim; ++d) {
            dq[row + d] += ds * k_.host[key + d];
            dk[key + d] += ds * q_.host[row + d];
          }
        }
      }
    }
    Near("out", results.out, out);
    Near("dq", results.dq, dq);
    Near("dk", results.dk, dk);
    Near("dv", results.dv, dv);
  }

 private:
  struct Input {
    std::vector<float> host;
    std::unique_ptr<Buffer<uint16_t>> buffer;
    TensorView<4> view;
  };

  static constexpr uint64_t kSeed = 0x1BF52, kOffset = 0x1D4000;

  TensorView<0> Seed() const { return {reinterpret_cast<intptr_t>(seed_.data()), aotriton::kUInt64}; }
  TensorView<0> Offset() const { return {reinterpret_cast<intptr_t>(offset_.data()), aotriton::kUInt64}; }

  // P is rounded to fp16 on its way, and so is what is stored: a few units in the last place of the largest.
  static void Near(const char* name, const std::vector<uint16_t>& got, const std::vector<double>& want) {
    double largest = 0, worst = 0;
    for (size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::fabs(want[i]));
      const double error = std::fabs(FromHalf(got[i]) - want[i]);
      worst = error <= worst ? worst : error;  // NaN stays
    }
    EXPECT_LE(worst, 4 * std::ldexp(largest, -11)) << name;
  }

  template <typename Args>
  void Fill(Args* args, const TensorView<4>& out, const Buffer<float>& lse) const {
    args->struct_size = sizeof(Args);
    args->q = ToC(q_.view);
    args->k = ToC(k_.view);
    args->v = ToC(v_.view);
    args->out = ToC(out);
    args->logsumexp = ToC(lse);
    args->sm_scale = kScale;
    args->dropout_p = dropout_p_;
    args->philox_seed = static_cast<uint64_t*>(seed_.data());
    args->philox_offset1 = static_cast<uint64_t*>(offset_.data());
  }

  template <typename Params>
  void FillParams(Params* params, const TensorView<4>& out, const Buffer<float>& lse) const {
    params->Q = q_.view;
    params->K = k_.view;
    params->V = v_.view;
    params->Out = out;
    params->L = View2(lse);
    params->Sm_scale = kScale;
    params->dropout_p = dropout_p_;
    params->philox_seed_ptr = Seed();
    params->philox_offset1 = Offset();
  }
  void Fill(v3::attn_fwd_params* params, const TensorView<4>& out, const Buffer<float>& lse) const { FillParams(params, out, lse); }
  void Fill(v3::attn_bwd_params* params, const TensorView<4>& out, const Buffer<float>& lse) const { FillParams(params, out, lse); }

  float dropout_p_;
  Input q_, k_, v_, dout_;
  Buffer<uint64_t> seed_{1}, offset_{1};
};

class ApiOnGpu : public testing::TestWithParam<float> {
 protected:
  void SetUp() override {
    if (!Runtime::Get().problem().empty()) GTEST_SKIP() << Runtime::Get().problem();
  }
};

TEST_P(ApiOnGpu, SplitIsRightAndTheSameThroughEachApi) {
  const Problem problem(GetParam());
  const Results results = problem.ByC(AOTRITON_BWD_SPLIT);
  problem.CheckAgainstHost(results);
  EXPECT_TRUE(problem.ByV2(false) == results);
  EXPECT_TRUE(problem.ByV3(0) == results);
}

TEST_P(ApiOnGpu, FusedIsRightAndTheSameThroughEachApi) {
  const Problem problem(GetParam());
  const Results results = problem.ByC(AOTRITON_BWD_FUSED);
  problem.CheckAgainstHost(results);
  EXPECT_TRUE(problem.ByV2(true) == results);
  EXPECT_TRUE(problem.ByV3(1) == results);
}

INSTANTIATE_TEST_SUITE_P(Dropout, ApiOnGpu, testing::Values(0.0f, 0.25f));

}  // namespace
