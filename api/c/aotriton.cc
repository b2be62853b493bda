#include "aotriton/aotriton.h"

#include <cstddef>
#include <cstring>
#include <string>

#include "dispatcher/gpus.h"
#include "dispatcher/images.h"
#include "dispatcher/philox.h"
#include "dispatcher/report.h"
#include "dispatcher/run.h"
#include "dispatcher/text.h"

namespace {

using namespace aotriton::dispatcher;

Tensor ToTensor(const aotriton_tensor& t) {
  Tensor tensor;
  tensor.data = t.data;
  tensor.dtype = t.dtype;
  tensor.rank = t.rank;
  // What lies behind the rank is copied too, which is quicker than not to, and not read.
  static_assert(sizeof(tensor.sizes) == sizeof(t.sizes) && sizeof(tensor.strides) == sizeof(t.strides));
  memcpy(tensor.sizes, t.sizes, sizeof(t.sizes));
  memcpy(tensor.strides, t.strides, sizeof(t.strides));
  return tensor;
}

// One without data is no tensor.
Tensor Optional(const aotriton_tensor& t) { return t.data != nullptr ? ToTensor(t) : Tensor(); }

Scalar ToScalar(const uint64_t* number) { return {const_cast<uint64_t*>(number), kUInt64}; }

// The caller's struct in the length that this library knows: later fields were only ever appended.
// `first_size` is that of the first release; `room` holds a shorter struct, filled up with zeros.
template <typename Args>
Status Complete(const Args* caller, const char* name, size_t first_size, Args* room, const Args** args) {
  if (caller == nullptr) return Status(kInvalidValue, "args is null");
  if (caller->struct_size < first_size) {
    return Status(kInvalidValue, Text("args->struct_size is ", caller->struct_size, "; it must be sizeof(", name, "), ", sizeof(Args),
                                      " here"));
  }
  // What a caller with a longer struct appended, this library cannot honour. Zeros ask for nothing.
  const auto* bytes = reinterpret_cast<const unsigned char*>(caller);
  for (size_t i = sizeof(Args); i < caller->struct_size; ++i) {
    if (bytes[i] != 0) {
      return Status(kNotSupported, Text("args has ", caller->struct_size, " bytes and sets byte ", i, "; this library knows the first ",
                                        sizeof(Args), ". Use a newer library"));
    }
  }
  *args = caller;
  if (caller->struct_size >= sizeof(Args)) return Status();
  *room = {};
  memcpy(room, caller, caller->struct_size);
  *args = room;
  return Status();
}

Dropout ToDropout(float p, const uint64_t* seed, const uint64_t* offset1, uint64_t offset2) {
  Dropout dropout;
  dropout.p = p;
  dropout.seed = ToScalar(seed);
  dropout.offset1 = ToScalar(offset1);
  dropout.offset2 = offset2;
  return dropout;
}

// What both structs have under the same names.
template <typename Args>
void ReadCommon(const Args& args, Attention* op) {
  op->q = ToTensor(args.q);
  op->k = ToTensor(args.k);
  op->v = ToTensor(args.v);
  op->bias = Optional(args.bias);
  op->out = ToTensor(args.out);
  op->logsumexp = Optional(args.logsumexp);
  op->sm_scale = args.sm_scale;
  op->is_windowed = args.is_windowed != 0;
  if (op->is_windowed) {
    op->window_left = args.window_left;
    op->window_right = args.window_right;
  }
  op->varlen = {args.varlen_type,
                Optional(args.cu_seqlens_q),
                Optional(args.cu_seqlens_k),
                Optional(args.seq_starts_q),
                Optional(args.seq_starts_k),
                args.max_seqlen_q,
                args.max_seqlen_k};
  op->dropout = ToDropout(args.dropout_p, args.philox_seed, args.philox_offset1, args.philox_offset2);
}

Status Read(const aotriton_attn_fwd_args* caller, AttnFwd* op) {
  constexpr size_t kFirstSize = offsetof(aotriton_attn_fwd_args, window_right) + sizeof(int32_t);
  aotriton_attn_fwd_args room;
  const aotriton_attn_fwd_args* args = nullptr;
  if (Status status = Complete(caller, "aotriton_attn_fwd_args", kFirstSize, &room, &args); !status.ok()) return status;
  ReadCommon(*args, op);
  op->dropout.seed_output = ToScalar(args->philox_seed_output);
  op->dropout.offset_output = ToScalar(args->philox_offset_output);
  op->persistent_counter = {args->persistent_counter, kInt32};
  op->backend = static_cast<FwdBackend>(args->backend);
  return Status();
}

Status Read(const aotriton_attn_bwd_args* caller, AttnBwd* op) {
  aotriton_attn_bwd_args room;
  const aotriton_attn_bwd_args* args = nullptr;
  if (Status status = Complete(caller, "aotriton_attn_bwd_args", sizeof(room), &room, &args); !status.ok()) return status;
  ReadCommon(*args, op);
  op->dout = ToTensor(args->dout);
  op->dq = ToTensor(args->dq);
  op->dk = ToTensor(args->dk);
  op->dv = ToTensor(args->dv);
  op->dbias = Optional(args->dbias);
  op->delta = Optional(args->delta);
  op->backend = static_cast<BwdBackend>(args->backend);
  return Status();
}

template <typename Op, typename Args>
aotriton_status RunFor(const Args* args, void* stream, Goal goal) {
  return Report([&] {
    Op op;
    Status status = Read(args, &op);
    return status.ok() ? Run(op, stream, goal) : status;
  });
}

// Into the caller's buffer `to` of `size` bytes, its argument `name`.
Status CopyText(const std::string& text, const char* name, char* to, size_t size) {
  if (to == nullptr) return Status(kInvalidValue, Text(name, " is null"));
  if (text.size() >= size) return Status(kInvalidValue, Text("size is ", size, "; \"", text, "\" needs ", text.size() + 1));
  memcpy(to, text.c_str(), text.size() + 1);
  return Status();
}

}  // namespace

extern "C" {

aotriton_status aotriton_attn_fwd(const aotriton_attn_fwd_args* args, void* stream) {
  return RunFor<AttnFwd>(args, stream, Goal::kLaunch);
}

aotriton_status aotriton_attn_fwd_supported(const aotriton_attn_fwd_args* args, void* stream) {
  return RunFor<AttnFwd>(args, stream, Goal::kCheck);
}

aotriton_status aotriton_attn_fwd_prepare(const aotriton_attn_fwd_args* args, void* stream) {
  return RunFor<AttnFwd>(args, stream, Goal::kPrepare);
}

aotriton_status aotriton_attn_bwd(const aotriton_attn_bwd_args* args, void* stream) {
  return RunFor<AttnBwd>(args, stream, Goal::kLaunch);
}

aotriton_status aotriton_attn_bwd_supported(const aotriton_attn_bwd_args* args, void* stream) {
  return RunFor<AttnBwd>(args, stream, Goal::kCheck);
}

aotriton_status aotriton_attn_bwd_prepare(const aotriton_attn_bwd_args* args, void* stream) {
  return RunFor<AttnBwd>(args, stream, Goal::kPrepare);
}

aotriton_status aotriton_debug_simulate_encoded_softmax(const aotriton_tensor* encoded_softmax, float dropout_p,
                                                        const uint64_t* philox_seed, const uint64_t* philox_offset1,
                                                        uint64_t philox_offset2, void* stream) {
  return Report([&] {
    if (encoded_softmax == nullptr) return Status(kInvalidValue, "encoded_softmax is null");
    return Run(EncodedSoftmax{ToTensor(*encoded_softmax), ToDropout(dropout_p, philox_seed, philox_offset1, philox_offset2)}, stream,
               Goal::kLaunch);
  });
}

aotriton_status aotriton_debug_fill_dropout_rng(const aotriton_tensor* random, uint64_t philox_seed, uint64_t philox_offset,
                                                void* stream) {
  return Report([&] {
    if (random == nullptr) return Status(kInvalidValue, "random is null");
    return Run(DropoutRng{ToTensor(*random), philox_seed, philox_offset}, stream, Goal::kLaunch);
  });
}

aotriton_status aotriton_dropout_mask(uint64_t seed, uint64_t offset, float dropout_p, int64_t batch, int64_t num_head_q,
                                      int64_t max_seqlen_q, int64_t max_seqlen_k, uint8_t* keep) {
  return Report([&] {
    if (!(dropout_p >= 0 && dropout_p <= 1)) {
      return Status(kInvalidValue, Text("dropout_p is ", dropout_p, "; it must be from 0 to 1"));
    }
    const int64_t sizes[] = {batch, num_head_q, max_seqlen_q, max_seqlen_k};
    int64_t rows = 1, bytes = 0;
    bool fits = true;
    for (int64_t size : sizes) fits = fits && size >= 0;
    for (int i = 0; i < 3 && fits; ++i) fits = !__builtin_mul_overflow(rows, sizes[i], &rows);
    if (!fits || __builtin_mul_overflow(rows, max_seqlen_k, &bytes)) {
      return Status(kInvalidValue, Text("the mask has sizes ", Tuple(sizes, 4), "; they must not be negative, and fit into memory"));
    }
    if (keep == nullptr && bytes > 0) return Status(kInvalidValue, "keep is null");
    for (int64_t row = 0; row < rows && bytes > 0; ++row) {
      KeepRow(seed, offset, dropout_p, static_cast<uint64_t>(row), max_seqlen_k, keep + row * max_seqlen_k);
    }
    return Status();
  });
}

const char* aotriton_last_error(void) { return LastError(); }

const char* aotriton_version(void) {
  // No std::string: it would be gone when an exit handler asks.
  static const auto* const version =
      new std::string(Text(AOTRITON_VERSION_MAJOR, ".", AOTRITON_VERSION_MINOR, ".", AOTRITON_VERSION_PATCH));
  return version->c_str();
}

aotriton_status aotriton_set_images_dir(const char* dir) {
  return Report([&] { return SetImagesDir(dir != nullptr ? dir : ""); });
}

aotriton_status aotriton_gpu_arch(void* stream, char* arch, size_t size) {
  return Report([&] {
    StreamPlace where;
    Status status = Locate(stream, &where);
    return status.ok() ? CopyText(where.gpu->info().arch, "arch", arch, size) : status;
  });
}

aotriton_status aotriton_gpu_level(void* stream, char* level, size_t size) {
  return Report([&] {
    StreamPlace where;
    const ::aotriton::platforms::Arch* arch = nullptr;
    Status status = Locate(stream, &where);
    if (status.ok()) status = where.gpu->Arch(&arch);
    return status.ok() ? CopyText(arch->level, "level", level, size) : status;
  });
}

}  // extern "C"
