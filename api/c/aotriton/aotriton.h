// The C ABI of aotriton. The C++ APIs (aotriton/flash.h) and the Python package lean on the
// same code; this header needs neither a C++ runtime nor GPU headers in the caller.
//
// Every function returns a status: 0, or the hipError_t value that names the refusal (the same
// numbers on NVIDIA). aotriton_last_error() then says which argument or file it was, its value,
// and what would be accepted. No function throws.
#ifndef AOTRITON_AOTRITON_H_
#define AOTRITON_AOTRITON_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define AOTRITON_C_API
#else
#define AOTRITON_C_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t aotriton_status;

// Values of aotriton_tensor::dtype: those of aotriton::DType.
enum {
  AOTRITON_FLOAT32 = 1,
  AOTRITON_FLOAT16 = 2,
  AOTRITON_BFLOAT16 = 3,
};

// A window bound may be one of these in place of a number; it is resolved for each sequence.
enum {
  AOTRITON_WINDOW_TOP_LEFT = -2147483647,
  AOTRITON_WINDOW_BOTTOM_RIGHT = -2147483646,
};

// A tensor in device memory. sizes and strides count elements; of a tensor of rank r the first
// r entries are read. data == NULL means "no tensor", then nothing else is read.
typedef struct aotriton_tensor {
  void* data;
  int32_t dtype;
  int32_t rank;
  int64_t sizes[4];
  int64_t strides[4];
} aotriton_tensor;

// softmax(sm_scale * Q K^T, masked) V.
typedef struct aotriton_attn_fwd_args {
  uint32_t struct_size;       // sizeof(aotriton_attn_fwd_args): tells the library what the caller knows
  int32_t is_windowed;        // 0: every key is kept, the window bounds are not read
  aotriton_tensor q;          // (batch, num_head_q, seqlen_q, head_dim_qk), last stride 1
  aotriton_tensor k;          // (batch, num_head_k, seqlen_k, head_dim_qk); num_head_q % num_head_k == 0
  aotriton_tensor v;          // (batch, num_head_k, seqlen_k, head_dim_vo)
  aotriton_tensor out;        // (batch, num_head_q, seqlen_q, head_dim_vo), written
  aotriton_tensor logsumexp;  // (batch, num_head_q, seqlen_q) or (batch * num_head_q, seqlen_q), fp32,
                              // contiguous, natural logarithm, written; may be NULL
  float sm_scale;             // any finite value, 0 and negative ones too
  int32_t window_left;        // key n is kept for query m iff m - window_left <= n <= m + window_right
  int32_t window_right;
} aotriton_attn_fwd_args;

// Enqueues the forward on `stream` (a hipStream_t or CUstream; NULL is the default stream).
AOTRITON_C_API aotriton_status aotriton_attn_fwd(const aotriton_attn_fwd_args* args, void* stream);

// Whether aotriton_attn_fwd would accept `args` on the stream's GPU: 0, or why not. Enqueues nothing.
AOTRITON_C_API aotriton_status aotriton_attn_fwd_supported(const aotriton_attn_fwd_args* args, void* stream);

// Loads what a call with `args` needs. After it such a call neither loads nor allocates, so it can
// be captured in a graph.
AOTRITON_C_API aotriton_status aotriton_attn_fwd_prepare(const aotriton_attn_fwd_args* args, void* stream);

// The text of the last refusal on this thread; "" if the last call succeeded. Valid until the
// thread's next call.
AOTRITON_C_API const char* aotriton_last_error(void);

// "major.minor.patch" of the library.
AOTRITON_C_API const char* aotriton_version(void);

// Writes the arch of the stream's GPU ("gfx942", "sm_90") into `arch`, a buffer of `size` bytes.
AOTRITON_C_API aotriton_status aotriton_gpu_arch(void* stream, char* arch, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // AOTRITON_AOTRITON_H_
