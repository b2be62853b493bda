#include "aotriton/aotriton.h"

#include <cstddef>
#include <cstring>

#include "aotriton/config.h"
#include "dispatcher/gpus.h"
#include "dispatcher/report.h"
#include "dispatcher/run.h"
#include "dispatcher/text.h"

namespace {

using namespace aotriton::dispatcher;

// The first struct that was released; later ones only append.
constexpr size_t kFirstSize = offsetof(aotriton_attn_fwd_args, window_right) + sizeof(int32_t);

Tensor ToTensor(const aotriton_tensor& t) {
  Tensor tensor;
  tensor.data = t.data;
  tensor.dtype = t.dtype;
  tensor.rank = t.rank;
  for (int i = 0; i < t.rank && i < Tensor::kMaxRank; ++i) {
    tensor.sizes[i] = t.sizes[i];
    tensor.strides[i] = t.strides[i];
  }
  return tensor;
}

Status Read(const aotriton_attn_fwd_args* caller, AttnFwd* op) {
  if (caller == nullptr) return Status(kInvalidValue, "args is null");
  if (caller->struct_size < kFirstSize) {
    return Status(kInvalidValue, Text("args->struct_size is ", caller->struct_size, "; it must be sizeof(aotriton_attn_fwd_args), ",
                                      sizeof(aotriton_attn_fwd_args), " here"));
  }
  // What a caller with a longer struct appended, this library cannot honour. Zeros ask for nothing.
  const auto* bytes = reinterpret_cast<const unsigned char*>(caller);
  for (size_t i = sizeof(aotriton_attn_fwd_args); i < caller->struct_size; ++i) {
    if (bytes[i] != 0) {
      return Status(kNotSupported, Text("args has ", caller->struct_size, " bytes and sets byte ", i, "; this library knows the first ",
                                        sizeof(aotriton_attn_fwd_args), ". Use a newer library"));
    }
  }
  op->q = ToTensor(caller->q);
  op->k = ToTensor(caller->k);
  op->v = ToTensor(caller->v);
  op->out = ToTensor(caller->out);
  if (caller->logsumexp.data != nullptr) op->logsumexp = ToTensor(caller->logsumexp);
  op->sm_scale = caller->sm_scale;
  op->is_windowed = caller->is_windowed != 0;
  if (op->is_windowed) {
    op->window_left = caller->window_left;
    op->window_right = caller->window_right;
  }
  return Status();
}

aotriton_status RunFor(const aotriton_attn_fwd_args* args, void* stream, Goal goal) {
  return Report([&] {
    AttnFwd op;
    Status status = Read(args, &op);
    return status.ok() ? Run(op, stream, goal) : status;
  });
}

}  // namespace

extern "C" {

aotriton_status aotriton_attn_fwd(const aotriton_attn_fwd_args* args, void* stream) { return RunFor(args, stream, Goal::kLaunch); }

aotriton_status aotriton_attn_fwd_supported(const aotriton_attn_fwd_args* args, void* stream) {
  return RunFor(args, stream, Goal::kCheck);
}

aotriton_status aotriton_attn_fwd_prepare(const aotriton_attn_fwd_args* args, void* stream) {
  return RunFor(args, stream, Goal::kPrepare);
}

const char* aotriton_last_error(void) { return LastError(); }

const char* aotriton_version(void) {
  // No std::string: it would be gone when an exit handler asks.
  static const auto* const version =
      new std::string(Text(AOTRITON_VERSION_MAJOR, ".", AOTRITON_VERSION_MINOR, ".", AOTRITON_VERSION_PATCH));
  return version->c_str();
}

aotriton_status aotriton_gpu_arch(void* stream, char* arch, size_t size) {
  return Report([&] {
    if (arch == nullptr) return Status(kInvalidValue, "arch is null");
    StreamPlace where;
    if (Status status = Locate(stream, &where); !status.ok()) return status;
    const std::string& name = where.gpu->info().arch;
    if (name.size() >= size) {
      return Status(kInvalidValue, Text("size is ", size, "; \"", name, "\" needs ", name.size() + 1));
    }
    memcpy(arch, name.c_str(), name.size() + 1);
    return Status();
  });
}

}  // extern "C"
