// The C ABI of aotriton. The C++ APIs (aotriton/flash.h) and the Python package lean on the
// same code; this header needs neither a C++ runtime nor GPU headers in the caller. No
// declaration depends on the release that the library claims to be (aotriton/config.h).
//
// Every function returns a status: 0, or the hipError_t value that names the refusal (the same
// numbers on NVIDIA). aotriton_last_error() then says which argument or file it was, its value,
// and what would be accepted. No function throws.
#ifndef AOTRITON_AOTRITON_H_
#define AOTRITON_AOTRITON_H_

#include <aotriton/config.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define AOTRITON_C_API
#else
#define AOTRITON_C_API __attribute__((visibility("default")))
#endif

// The functions of a build with a suffix (aotriton/config.h) have it in their names too.
#if AOTRITON_ENABLE_SUFFIX
#define AOTRITON_INTERNAL_NAME(name) AOTRITON_INTERNAL_JOIN(AOTRITON_NS, name)
#define aotriton_attn_fwd AOTRITON_INTERNAL_NAME(_attn_fwd)
#define aotriton_attn_fwd_supported AOTRITON_INTERNAL_NAME(_attn_fwd_supported)
#define aotriton_attn_fwd_prepare AOTRITON_INTERNAL_NAME(_attn_fwd_prepare)
#define aotriton_attn_bwd AOTRITON_INTERNAL_NAME(_attn_bwd)
#define aotriton_attn_bwd_supported AOTRITON_INTERNAL_NAME(_attn_bwd_supported)
#define aotriton_attn_bwd_prepare AOTRITON_INTERNAL_NAME(_attn_bwd_prepare)
#define aotriton_debug_simulate_encoded_softmax AOTRITON_INTERNAL_NAME(_debug_simulate_encoded_softmax)
#define aotriton_debug_fill_dropout_rng AOTRITON_INTERNAL_NAME(_debug_fill_dropout_rng)
#define aotriton_dropout_mask AOTRITON_INTERNAL_NAME(_dropout_mask)
#define aotriton_last_error AOTRITON_INTERNAL_NAME(_last_error)
#define aotriton_version AOTRITON_INTERNAL_NAME(_version)
#define aotriton_set_images_dir AOTRITON_INTERNAL_NAME(_set_images_dir)
#define aotriton_gpu_arch AOTRITON_INTERNAL_NAME(_gpu_arch)
#define aotriton_gpu_level AOTRITON_INTERNAL_NAME(_gpu_level)
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
  AOTRITON_INT32 = 12,
};

// A window bound may be one of these in place of a number; it is resolved for each sequence.
enum {
  AOTRITON_WINDOW_TOP_LEFT = -2147483647,
  AOTRITON_WINDOW_BOTTOM_RIGHT = -2147483646,
};

// Values of varlen_type: how the sequences of a batch lie in the tensors. N is their number.
enum {
  AOTRITON_VARLEN_NONE = 0,     // each has all rows of its batch entry
  AOTRITON_VARLEN_COMPACT = 1,  // batch is 1; sequence i is the rows cu_seqlens[i] to cu_seqlens[i + 1]
  AOTRITON_VARLEN_PADDED = 2,   // batch is N; sequence i is the first cu_seqlens[i + 1] - cu_seqlens[i] rows of entry i
  AOTRITON_VARLEN_STRIDED = 3,  // batch is 1; sequence i is that many rows from row seq_starts[i] on
};

// Values of aotriton_attn_fwd_args::backend.
enum {
  AOTRITON_FWD_DEFAULT = 0,  // hopper if it takes the call and is the faster one, else triton
  AOTRITON_FWD_TRITON = 1,   // takes every call
  AOTRITON_FWD_HOPPER = 2,   // on sm_90: fp16 and bf16, head_dim up to 256, sm_scale above 0, no bias, no dropout; addresses
                             // that are multiples of 16, and strides that are multiples of 8
};

// Values of aotriton_attn_bwd_args::backend. Both give the same bits each time they are run.
enum {
  AOTRITON_BWD_DEFAULT = 0,  // split if there is a delta and its kernels take the call, else fused
  AOTRITON_BWD_SPLIT = 1,    // three launches; the faster one; needs delta
  AOTRITON_BWD_FUSED = 2,    // one launch, no delta; head_dim up to 256
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

// softmax(sm_scale * Q K^T + bias, masked) V. A caller sets all to zero, then what it needs: zeros
// and NULL ask for nothing. A shorter struct of an older header is accepted, its fields being zero.
//
// Rows whose sequence is shorter than the tensor are neither read nor written.
typedef struct aotriton_attn_fwd_args {
  uint32_t struct_size;       // sizeof(aotriton_attn_fwd_args): tells the library what the caller knows
  int32_t is_windowed;        // 0: every key is kept, the window bounds are not read
  aotriton_tensor q;          // (batch, num_head_q, seqlen_q, head_dim_qk), last stride 1
  aotriton_tensor k;          // (batch, num_head_k, seqlen_k, head_dim_qk); num_head_q % num_head_k == 0
  aotriton_tensor v;          // (batch, num_head_k, seqlen_k, head_dim_vo)
  aotriton_tensor out;        // (batch, num_head_q, seqlen_q, head_dim_vo), written
  aotriton_tensor logsumexp;  // fp32, contiguous, natural logarithm, written; may be NULL. One of
                              //   (batch, num_head_q, seqlen_q) or (batch * num_head_q, seqlen_q)
                              //   varlen compact, strided: (num_head_q, seqlen_q)
                              //   varlen: (N, num_head_q, max_seqlen_q) or (N * num_head_q, max_seqlen_q)
  float sm_scale;             // any finite value, 0 and negative ones too
  int32_t window_left;        // key n is kept for query m iff m - window_left <= n <= m + window_right
  int32_t window_right;
  int32_t reserved;           // not read: padding in the first version of this struct
  aotriton_tensor bias;       // (batch, num_head_q, seqlen_q, seqlen_k), dtype of q, strides of 0 welcome;
                              // not with varlen
  aotriton_tensor cu_seqlens_q;  // (N + 1), int32; required with varlen, like cu_seqlens_k
  aotriton_tensor cu_seqlens_k;
  aotriton_tensor seq_starts_q;  // (N) or (N + 1), int32; required with AOTRITON_VARLEN_STRIDED, like seq_starts_k
  aotriton_tensor seq_starts_k;
  int32_t varlen_type;
  int32_t max_seqlen_q;       // the longest sequence, read with varlen; 0: it is not known, seqlen_q then
  int32_t max_seqlen_k;
  float dropout_p;            // the probability that an element is dropped, from 0 to 1; while it is 0,
                              // nothing below is touched
  const uint64_t* philox_seed;     // in device memory, required with dropout
  const uint64_t* philox_offset1;  // in device memory, required with dropout
  uint64_t philox_offset2;         // added to *philox_offset1
  uint64_t* philox_seed_output;    // in device memory; if not NULL, *philox_seed is written there,
  uint64_t* philox_offset_output;  // and *philox_offset1 + philox_offset2 there
  int32_t* persistent_counter;     // in device memory, 0, and 0 again after the call; of one call at a time. May be NULL.
                                   // With it, a windowed call without bias and dropout that the backend triton takes runs as
                                   // many work groups as fit at once, which take tile after tile from it
  int32_t backend;                 // AOTRITON_FWD_...
} aotriton_attn_fwd_args;

// Enqueues the forward on `stream` (a hipStream_t or CUstream; NULL is the default stream).
AOTRITON_C_API aotriton_status aotriton_attn_fwd(const aotriton_attn_fwd_args* args, void* stream);

// Whether aotriton_attn_fwd would accept `args` on the stream's GPU: 0, or why not. Enqueues nothing.
AOTRITON_C_API aotriton_status aotriton_attn_fwd_supported(const aotriton_attn_fwd_args* args, void* stream);

// Loads what a call with `args` needs. After it such a call neither loads nor allocates, so it can
// be captured in a graph.
AOTRITON_C_API aotriton_status aotriton_attn_fwd_prepare(const aotriton_attn_fwd_args* args, void* stream);

// The gradients of attn_fwd. Fields that attn_fwd has too mean the same and must hold what the
// forward was given; with dropout, the offsets must add up to the forward's.
typedef struct aotriton_attn_bwd_args {
  uint32_t struct_size;       // sizeof(aotriton_attn_bwd_args)
  int32_t is_windowed;
  aotriton_tensor q;
  aotriton_tensor k;
  aotriton_tensor v;
  aotriton_tensor bias;       // may be NULL
  aotriton_tensor out;        // what the forward wrote
  aotriton_tensor logsumexp;  // what the forward wrote; required
  aotriton_tensor dout;       // gradient of out: its shape, any strides
  aotriton_tensor dq;         // shape of q, any strides but 0, written; like dk and dv
  aotriton_tensor dk;
  aotriton_tensor dv;
  aotriton_tensor dbias;      // (batch, num_head_q, seqlen_q, seqlen_k), dtype of q, written; may be NULL.
                              // No stride may be 0: sums over broadcast dimensions are the caller's
  aotriton_tensor delta;      // workspace: shape and dtype of logsumexp, contiguous, written; see backend
  float sm_scale;
  int32_t window_left;
  int32_t window_right;
  int32_t backend;            // AOTRITON_BWD_...
  aotriton_tensor cu_seqlens_q;
  aotriton_tensor cu_seqlens_k;
  aotriton_tensor seq_starts_q;
  aotriton_tensor seq_starts_k;
  int32_t varlen_type;
  int32_t max_seqlen_q;
  int32_t max_seqlen_k;
  float dropout_p;
  const uint64_t* philox_seed;
  const uint64_t* philox_offset1;
  uint64_t philox_offset2;
} aotriton_attn_bwd_args;

// Enqueues the backward; the others as for the forward.
AOTRITON_C_API aotriton_status aotriton_attn_bwd(const aotriton_attn_bwd_args* args, void* stream);
AOTRITON_C_API aotriton_status aotriton_attn_bwd_supported(const aotriton_attn_bwd_args* args, void* stream);
AOTRITON_C_API aotriton_status aotriton_attn_bwd_prepare(const aotriton_attn_bwd_args* args, void* stream);

// Enqueues the writing of attn_fwd's dropout mask into `encoded_softmax`, (N or batch, num_head_q,
// max_seqlen_q, max_seqlen_k), fp16, bf16 or fp32, any strides: 0.5 where an element is kept, -0.5
// where it is dropped.
AOTRITON_C_API aotriton_status aotriton_debug_simulate_encoded_softmax(const aotriton_tensor* encoded_softmax,
                                                                       float dropout_p,
                                                                       const uint64_t* philox_seed,
                                                                       const uint64_t* philox_offset1,
                                                                       uint64_t philox_offset2,
                                                                       void* stream);

// Enqueues the writing of the random numbers that decide on attn_fwd's dropout into `random`, (N or
// batch, num_head_q, max_seqlen_q, max_seqlen_k), any strides: the words themselves (int32), or numbers
// in [0, 1) (fp32), min(ceil((word + 2^31) / 2^8), 2^24 - 1) / 2^24, of which those greater than dropout_p
// are kept (where dropout_p is no multiple of 2^-24, all but one in 2^25). philox_seed and philox_offset,
// the forward's *philox_offset1 + philox_offset2, are numbers of the host.
AOTRITON_C_API aotriton_status aotriton_debug_fill_dropout_rng(const aotriton_tensor* random,
                                                               uint64_t philox_seed,
                                                               uint64_t philox_offset,
                                                               void* stream);

// The dropout mask, computed on the host: writes 1 (kept) or 0 into `keep`, host memory of
// batch * num_head_q * max_seqlen_q * max_seqlen_k bytes. seed and offset are the forward's
// *philox_seed and *philox_offset1 + philox_offset2. With varlen, batch is N.
AOTRITON_C_API aotriton_status aotriton_dropout_mask(uint64_t seed,
                                                     uint64_t offset,
                                                     float dropout_p,
                                                     int64_t batch,
                                                     int64_t num_head_q,
                                                     int64_t max_seqlen_q,
                                                     int64_t max_seqlen_k,
                                                     uint8_t* keep);

// The text of the last refusal on this thread; "" if the last call succeeded. Valid until the
// thread's next call.
AOTRITON_C_API const char* aotriton_last_error(void);

// "major.minor.patch" of the release that the library claims to be.
AOTRITON_C_API const char* aotriton_version(void);

// From now on packs are looked for in the folder `dir` (one like aotriton.images) and nowhere else;
// NULL or "" undoes it, and the search is the usual one: the folder that AOTRITON_IMAGES_DIR names,
// else the packs in the library itself, else aotriton.images beside the library. Packs that were
// found stay in use.
AOTRITON_C_API aotriton_status aotriton_set_images_dir(const char* dir);

// Writes the arch of the stream's GPU ("gfx942", "sm_90") into `arch`, a buffer of `size` bytes.
AOTRITON_C_API aotriton_status aotriton_gpu_arch(void* stream, char* arch, size_t size);

// Writes how well that arch is supported: "supported", "experimental", "tech_preview" or "compile_only" (nobody has run it).
// hipErrorNoBinaryForGpu if the library does not know the arch.
AOTRITON_C_API aotriton_status aotriton_gpu_level(void* stream, char* level, size_t size);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // AOTRITON_AOTRITON_H_
