// What the forward and the backward of attention have in common, and what may be said of it.
#ifndef AOTRITON_DISPATCHER_ATTENTION_H_
#define AOTRITON_DISPATCHER_ATTENTION_H_

#include <cstdint>

#include "dispatcher/checks.h"
#include "dispatcher/status.h"
#include "dispatcher/tensor.h"

namespace aotriton::dispatcher {

// How the sequences of a batch lie in the tensors; the numbers are the API's and the kernels'.
enum VarlenType : int32_t {
  kVarlenNone = 0,     // each is an entry of the batch
  kVarlenCompact = 1,  // one after another in the rows of the only entry
  kVarlenPadded = 2,   // each in the first rows of its entry
  kVarlenStrided = 3,  // in the rows of the only entry, from a given row on
};

struct Varlen {
  int32_t type = kVarlenNone;
  Tensor cu_seqlens_q;  // (N + 1), int32: running sums of the lengths; N is the number of sequences
  Tensor cu_seqlens_k;
  Tensor seq_starts_q;  // (N) or (N + 1), int32: first rows, of kVarlenStrided
  Tensor seq_starts_k;
  // 0: not known, and the rows of the tensor are taken. (PyTorch's memory-efficient forward gives 0
  // for the keys. With more than one sequence its logsumexp is too small for a training call, which is
  // refused, so its backward, which gives the true value, never replays a mask made with another one.)
  int32_t max_seqlen_q = 0;
  int32_t max_seqlen_k = 0;
};

struct Dropout {
  float p = 0;  // while it is 0, the rest is not touched: callers leave anything there
  Scalar seed;  // int64 or uint64
  Scalar offset1;
  uint64_t offset2 = 0;  // the offset is *offset1 + offset2
  Scalar seed_output;    // may be null, like the next; the forward writes *seed
  Scalar offset_output;  // and the offset there
};

// What logsumexp is a logarithm to. Callers of AOTriton 0.10 and before expect base 2.
enum class LseBase { kNatural, kTwo };

struct Attention {
  Tensor q;          // (batch, num_head_q, seqlen_q, head_dim_qk)
  Tensor k;          // (batch, num_head_k, seqlen_k, head_dim_qk)
  Tensor v;          // (batch, num_head_k, seqlen_k, head_dim_vo)
  Tensor bias;       // (batch, num_head_q, seqlen_q, seqlen_k), any strides; data may be null
  Tensor out;        // (batch, num_head_q, seqlen_q, head_dim_vo)
  Tensor logsumexp;  // fp32, see RowLayout
  LseBase lse_base = LseBase::kNatural;
  float sm_scale = 0;
  bool is_windowed = false;
  int32_t window_left = 0;  // read if is_windowed; a number or a sentinel
  int32_t window_right = 0;
  Varlen varlen;
  Dropout dropout;
};

inline constexpr int32_t kWindowTopLeft = -2147483647;
inline constexpr int32_t kWindowBottomRight = -2147483646;

// What grids and kernels count.
struct Extents {
  int64_t sequences;
  int64_t num_head_q, num_head_k;
  int64_t max_seqlen_q, max_seqlen_k;
};
Extents ExtentsOf(const Attention& op);

// Where a row has its number in logsumexp and delta: sequence * stride_z + head * stride_h + row,
// and of a compact one also + the sequence's first row.
struct RowLayout {
  int64_t stride_z = 0;
  int64_t stride_h = 0;
  bool is_compact = false;
};

// `t` is a contiguous fp32 tensor with a number for each row of q: (batch, num_head_q, seqlen_q);
// of variable lengths (num_head_q, seqlen_q) if the sequences share their rows, or
// (sequences, num_head_q, max_seqlen_q). The two leading dimensions may be joined.
// `t` must have data if q has rows.
Status CheckRowNumbers(const Named& n, const Attention& op, RowLayout* layout);

// `n` has the dtype of q and an element for each score: (batch, num_head_q, seqlen_q, seqlen_k).
Status CheckScoresLike(const Named& n, const Attention& op);

// All that can be said about a call without a GPU, in the parts that both directions have. `out_access`
// is what is done with out.
Status ValidateAttention(const Attention& op, Access out_access);

Status ValidateDropout(const Dropout& dropout);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_ATTENTION_H_
