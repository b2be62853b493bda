// The calls of a C++ framework, through the public headers only: the C ABI, v2 and v3, each told by
// the C ABI's struct what to call with, so that one Python test can make the same call in every way.
#include <aotriton/aotriton.h>
#include <aotriton/flash.h>

#include <array>
#include <cstdint>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using AOTRITON_NS::DType;
using AOTRITON_NS::TensorView;
namespace v2 = AOTRITON_NS::v2::flash;
namespace v3 = AOTRITON_NS::v3::flash;
using T0 = TensorView<0>;
using T1 = TensorView<1>;
using T2 = TensorView<2>;
using T4 = TensorView<4>;

// No status of the library: the API has no words for the call, so it was not made.
constexpr int32_t kInexpressible = -1;

// A tensor that is not given has zeros in all fields.
template <int Rank>
TensorView<Rank> View(const aotriton_tensor& t) {
  std::array<uint64_t, Rank> sizes, strides;
  for (int i = 0; i < Rank; ++i) {
    sizes[i] = static_cast<uint64_t>(t.sizes[i]);
    strides[i] = static_cast<uint64_t>(t.strides[i]);
  }
  return TensorView<Rank>(reinterpret_cast<intptr_t>(t.data), sizes, strides, static_cast<DType>(t.dtype));
}

// Logsumexp or delta, (..., head, row) or (head, row), as (... * head, row).
T2 RowNumbers(const aotriton_tensor& t) {
  if (t.data == nullptr) return T2::get_null_tensor(AOTRITON_NS::kFloat32);
  uint64_t heads = 1;
  for (int i = 0; i + 1 < t.rank; ++i) heads *= static_cast<uint64_t>(t.sizes[i]);
  const auto rows = static_cast<uint64_t>(t.sizes[t.rank - 1]);
  return T2(reinterpret_cast<intptr_t>(t.data), {heads, rows}, {rows, 1}, static_cast<DType>(t.dtype));
}

T0 Counter(int32_t* counter) { return T0(reinterpret_cast<intptr_t>(counter), AOTRITON_NS::kInt32); }

T0 Scalar(const uint64_t* number) { return T0(reinterpret_cast<intptr_t>(number), AOTRITON_NS::kUInt64); }

AOTRITON_NS::Stream ToStream(void* stream) { return AOTRITON_NS::Stream(static_cast<hipStream_t>(stream)); }

// v2 knows two windows, none and causal, and two layouts of the sequences.
template <typename Args>
bool V2Expresses(const Args& args) {
  const bool is_causal = args.window_left == AOTRITON_WINDOW_TOP_LEFT && args.window_right == AOTRITON_WINDOW_TOP_LEFT;
  return (!args.is_windowed || is_causal) &&
         (args.varlen_type == AOTRITON_VARLEN_NONE || args.varlen_type == AOTRITON_VARLEN_COMPACT);
}

template <typename Params, typename Args>
void FillCommon(const Args& args, Params* params) {
  params->Q = View<4>(args.q);
  params->K = View<4>(args.k);
  params->V = View<4>(args.v);
  params->B = View<4>(args.bias);
  params->Sm_scale = args.sm_scale;
  params->L = RowNumbers(args.logsumexp);
  params->Out = View<4>(args.out);
  params->cu_seqlens_q = View<1>(args.cu_seqlens_q);
  params->cu_seqlens_k = View<1>(args.cu_seqlens_k);
  params->Max_seqlen_q = args.max_seqlen_q;
  params->Max_seqlen_k = args.max_seqlen_k;
  params->seq_strides_q = View<1>(args.seq_starts_q);
  params->seq_strides_k = View<1>(args.seq_starts_k);
  params->dropout_p = args.dropout_p;
  params->philox_seed_ptr = Scalar(args.philox_seed);
  params->philox_offset1 = Scalar(args.philox_offset1);
  params->philox_offset2 = args.philox_offset2;
  params->causal_type = args.is_windowed ? v3::CausalType::WindowedAttention : v3::CausalType::None;
  params->varlen_type = static_cast<int8_t>(args.varlen_type);
  params->window_left = args.window_left;
  params->window_right = args.window_right;
}

// Memory for D that is handed out when the library asks for it.
struct Lender {
  T2 delta;
  int32_t acquired = 0, disposed = 0;

  static T2 Acquire(v3::LT2* lazy) {
    auto* self = static_cast<Lender*>(lazy->cookie);
    ++self->acquired;
    return self->delta;
  }
  static void Dispose(v3::LT2* lazy) { ++static_cast<Lender*>(lazy->cookie)->disposed; }
};

v3::attn_bwd_params BackwardParams(const aotriton_attn_bwd_args& args) {
  v3::attn_bwd_params params;
  FillCommon(args, &params);
  params.DO = View<4>(args.dout);
  params.DQ = View<4>(args.dq);
  params.DK = View<4>(args.dk);
  params.DV = View<4>(args.dv);
  params.DB = View<4>(args.dbias);
  return params;
}

int32_t V3Backward(const v3::attn_bwd_params& params, int32_t backend, void* stream) {
  v3::attn_options options;
  options.force_backend_index = backend - 1;  // AOTRITON_BWD_DEFAULT is 0, and -1 here
  options.deterministic = true;
  return v3::attn_bwd(params, v3::attn_bwd_params::kVersion, ToStream(stream), &options);
}

}  // namespace

// In all functions `encoded_softmax` may have no data. The structs are copied, to be those that this
// header of the C ABI declares whatever the caller takes them for.

EXPORT int32_t c_attn_fwd(const aotriton_attn_fwd_args* caller, const aotriton_tensor* encoded_softmax, void* stream) {
  aotriton_attn_fwd_args args = *caller;
  args.struct_size = sizeof(args);
  const int32_t status = aotriton_attn_fwd(&args, stream);
  if (status != 0 || encoded_softmax->data == nullptr) return status;
  return aotriton_debug_simulate_encoded_softmax(encoded_softmax, args.dropout_p, args.philox_seed, args.philox_offset1,
                                                 args.philox_offset2, stream);
}

EXPORT int32_t c_attn_bwd(const aotriton_attn_bwd_args* caller, void* stream) {
  aotriton_attn_bwd_args args = *caller;
  args.struct_size = sizeof(args);
  return aotriton_attn_bwd(&args, stream);
}

EXPORT int32_t v2_attn_fwd(const aotriton_attn_fwd_args* args, const aotriton_tensor* encoded_softmax, void* stream) {
  const auto& a = *args;
  if (!V2Expresses(a)) return kInexpressible;
  const auto offset2 = static_cast<int64_t>(a.philox_offset2);
  const bool is_causal = a.is_windowed != 0;
  if (a.varlen_type == AOTRITON_VARLEN_COMPACT) {
    return v2::attn_fwd_compact_varlen(
        View<4>(a.q), View<4>(a.k), View<4>(a.v), View<4>(a.bias), View<1>(a.cu_seqlens_q), View<1>(a.cu_seqlens_k), a.max_seqlen_q,
        a.max_seqlen_k, a.sm_scale, RowNumbers(a.logsumexp), View<4>(a.out), a.dropout_p, Scalar(a.philox_seed),
        Scalar(a.philox_offset1), offset2, Scalar(a.philox_seed_output), Scalar(a.philox_offset_output), View<4>(*encoded_softmax),
        is_causal, Counter(a.persistent_counter), ToStream(stream));
  }
  return v2::attn_fwd(View<4>(a.q), View<4>(a.k), View<4>(a.v), View<4>(a.bias), a.sm_scale, RowNumbers(a.logsumexp), View<4>(a.out),
                      a.dropout_p, Scalar(a.philox_seed), Scalar(a.philox_offset1), offset2, Scalar(a.philox_seed_output),
                      Scalar(a.philox_offset_output), View<4>(*encoded_softmax), is_causal, Counter(a.persistent_counter),
                      ToStream(stream));
}

// The default is here what it is for the C ABI: split if there is a delta.
EXPORT int32_t v2_attn_bwd(const aotriton_attn_bwd_args* args, void* stream) {
  const auto& a = *args;
  const bool is_fused = a.backend == AOTRITON_BWD_FUSED || (a.backend == AOTRITON_BWD_DEFAULT && a.delta.data == nullptr);
  const bool is_compact = a.varlen_type == AOTRITON_VARLEN_COMPACT;
  if (!V2Expresses(a) || (is_fused && is_compact)) return kInexpressible;
  const auto offset2 = static_cast<int64_t>(a.philox_offset2);
  const bool is_causal = a.is_windowed != 0;
  const T4 q = View<4>(a.q), k = View<4>(a.k), v = View<4>(a.v), b = View<4>(a.bias), out = View<4>(a.out), dout = View<4>(a.dout);
  const T4 dq = View<4>(a.dq), dk = View<4>(a.dk), dv = View<4>(a.dv), db = View<4>(a.dbias);
  const T2 lse = RowNumbers(a.logsumexp), delta = RowNumbers(a.delta);
  const T0 seed = Scalar(a.philox_seed), offset1 = Scalar(a.philox_offset1);
  if (is_compact) {
    return v2::attn_bwd_compact_varlen(q, k, v, View<1>(a.cu_seqlens_q), View<1>(a.cu_seqlens_k), a.max_seqlen_q, a.max_seqlen_k, b,
                                       a.sm_scale, out, dout, dq, dk, dv, db, lse, delta, a.dropout_p, seed, offset1, offset2,
                                       is_causal, ToStream(stream));
  }
  if (is_fused) {
    return v2::attn_bwd_fused(q, k, v, b, a.sm_scale, out, dout, dq, dk, dv, db, lse, a.dropout_p, seed, offset1, offset2, is_causal,
                              ToStream(stream));
  }
  return v2::attn_bwd(q, k, v, b, a.sm_scale, out, dout, dq, dk, dv, db, lse, delta, a.dropout_p, seed, offset1, offset2, is_causal,
                      ToStream(stream));
}

EXPORT int32_t v2_debug_simulate_encoded_softmax(const aotriton_tensor* r, float dropout_p, const uint64_t* seed, const uint64_t* offset1,
                                                 uint64_t offset2, void* stream) {
  return v2::debug_simulate_encoded_softmax(View<4>(*r), dropout_p, Scalar(seed), Scalar(offset1), offset2, ToStream(stream));
}

EXPORT int32_t v3_attn_fwd(const aotriton_attn_fwd_args* args, const aotriton_tensor* encoded_softmax, void* stream) {
  v3::attn_fwd_params params;
  FillCommon(*args, &params);
  params.philox_seed_output = Scalar(args->philox_seed_output);
  params.philox_offset_output = Scalar(args->philox_offset_output);
  params.encoded_softmax = View<4>(*encoded_softmax);
  params.persistent_atomic_counter = Counter(args->persistent_counter);
  v3::attn_options options;
  options.force_backend_index = args->backend - 1;  // AOTRITON_FWD_DEFAULT is 0, and -1 here
  return v3::attn_fwd(params, v3::attn_fwd_params::kVersion, ToStream(stream), &options);
}

EXPORT int32_t v3_attn_bwd(const aotriton_attn_bwd_args* args, void* stream) {
  v3::attn_bwd_params params = BackwardParams(*args);
  params.D.eager = RowNumbers(args->delta);
  return V3Backward(params, args->backend, stream);
}

// D by callbacks; `counts` is told how often it was acquired and disposed of.
EXPORT int32_t v3_attn_bwd_lazy(const aotriton_attn_bwd_args* args, void* stream, int32_t counts[2]) {
  Lender lender;
  lender.delta = RowNumbers(args->delta);
  v3::attn_bwd_params params = BackwardParams(*args);
  params.D.cookie = &lender;
  params.D.acquire = Lender::Acquire;
  params.D.dispose = Lender::Dispose;
  const int32_t status = V3Backward(params, args->backend, stream);
  counts[0] = lender.acquired;
  counts[1] = lender.disposed;
  return status;
}

struct GpuAnswers {
  uint64_t gpu;
  int32_t check_gpu;
  int32_t is_experimental;
  int32_t is_tech_preview;
  int32_t multiprocessors;
};

EXPORT void ask_about_gpu(void* stream, GpuAnswers* answers) {
  const auto handle = static_cast<hipStream_t>(stream);
  answers->gpu = AOTRITON_NS::getGpuFromStream(handle);
  answers->check_gpu = v2::check_gpu(handle);
  answers->is_experimental = AOTRITON_NS::isArchExperimentallySupported(handle);
  answers->is_tech_preview = AOTRITON_NS::isArchTechPreview(handle);
  answers->multiprocessors = AOTRITON_NS::getMultiProcessorCount(handle);
}
