#include "dispatcher/backends.h"

#include <initializer_list>

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

// What the layout "aligned" promises to the compiler beside head_dim == tile.
bool AreAligned(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* t : tensors) {
    for (int i = 0; i < 3; ++i) {
      if (Stride(*t, i) % 8 != 0) return false;
    }
    if (reinterpret_cast<uintptr_t>(t->data) % 16 != 0) return false;
  }
  return true;
}

// Of a bias or its gradient the last stride is promised too; a null one promises nothing.
bool IsScoresAligned(const Tensor& t) {
  return t.data == nullptr || (AreAligned({&t}) && (t.sizes[3] == 1 || t.strides[3] == 1));
}

Choice ChoiceOf(const Attention& op) {
  Choice choice;
  choice.dtype = op.q.dtype;
  choice.head_dim_qk = op.q.sizes[3];
  choice.head_dim_vo = op.v.sizes[3];
  choice.is_windowed = op.is_windowed;
  choice.has_bias = op.bias.data != nullptr;
  choice.has_dropout = op.dropout.p > 0;
  return choice;
}

// Of a tensor with an element for each score.
Choice ChoiceOf(const Tensor& scores) {
  Choice choice;
  choice.dtype = scores.dtype;
  return choice;
}

Extents ExtentsOf(const Tensor& scores) {
  const int64_t* sizes = scores.sizes;
  return {sizes[0], sizes[1], sizes[1], sizes[2], sizes[3]};
}

}  // namespace

bool CanTakeHopper(const AttnFwd& op, std::string* why) {
  const auto refuse = [&](const auto&... words) {
    if (why != nullptr) *why = Text(words...);
    return false;
  };
  if (op.q.dtype == kFloat32) return refuse("it takes fp16 and bf16, the call is of fp32");
  if (op.bias.data != nullptr) return refuse("it takes no bias");
  if (op.dropout.p > 0 || op.encoded_softmax.data != nullptr) return refuse("it has no dropout");
  if (!(op.sm_scale > 0)) return refuse("it needs an sm_scale above 0, the call has ", op.sm_scale);
  if (op.k.sizes[2] == 0) return refuse("k has no rows");
  constexpr int64_t kStrideLimit = (int64_t{1} << 40) / 2;  // TMA counts bytes
  for (const Named& n : {Named{"q", op.q}, Named{"k", op.k}, Named{"v", op.v}, Named{"out", op.out}}) {
    if (reinterpret_cast<uintptr_t>(n.tensor.data) % 16 != 0) {
      return refuse("it needs addresses that are multiples of 16, ", n.name, " is at ", n.tensor.data);
    }
    for (int i = 0; i < 3; ++i) {
      const int64_t stride = Stride(n.tensor, i);
      if (stride % 8 == 0 && stride < kStrideLimit) continue;
      return refuse("it needs strides that are multiples of 8 below 2^39, ", n.name, " has ", stride, " in dimension ", i);
    }
  }
  return true;
}

bool IsFasterOnHopper(const AttnFwd& op, std::string* why) {
  const int64_t head_dim = op.q.sizes[3];
  // Else triton takes its slower kernels of layout any.
  const bool has_exact_tile = head_dim == op.v.sizes[3] && head_dim % 16 == 0;
  constexpr int64_t kFewQueries = 64, kSmallHeadDim = 64, kNarrowWindow = 1024;
  if (!has_exact_tile) return true;
  if (ExtentsOf(op).max_seqlen_q <= kFewQueries) {
    if (why != nullptr) *why = Text("triton is faster for up to ", kFewQueries, " queries");
    return false;
  }
  const auto is_number = [](int32_t side) { return side != kWindowTopLeft && side != kWindowBottomRight; };
  if (head_dim <= kSmallHeadDim && op.is_windowed && is_number(op.window_left) && is_number(op.window_right) &&
      int64_t{op.window_left} + op.window_right < kNarrowWindow) {
    if (why != nullptr) *why = Text("triton is faster for windows of up to ", kNarrowWindow, " keys at head_dim ", kSmallHeadDim);
    return false;
  }
  return true;
}

Status PlanAttnFwdHopper(const AttnFwd& op, const KernelPack& kernel, Plan* plan) {
  const int64_t functional = kernel.FindCovering(ChoiceOf(op));
  if (functional >= 0) return kernel.AddFunctional(static_cast<uint32_t>(functional), ExtentsOf(op), Values(op), plan);
  return Status(kNotBuilt, Text("its pack has no kernel for ", DTypeName(op.q.dtype), ", head_dim ", op.q.sizes[3], " of q and k, ",
                                op.v.sizes[3], " of v", op.is_windowed ? ", windowed" : ""));
}

bool WantsPersistent(const AttnFwd& op) {
  return op.persistent_counter.data != nullptr && op.is_windowed && op.bias.data == nullptr && op.dropout.p == 0 &&
         AreAligned({&op.q, &op.k, &op.v, &op.out});
}

Status PlanAttnFwd(const AttnFwd& op, const KernelPack& attn_fwd, const KernelPack* persistent, Plan* plan) {
  Choice choice = ChoiceOf(op);
  const int64_t functional = persistent != nullptr ? persistent->FindExact(choice) : -1;
  if (functional >= 0) return persistent->AddFunctional(static_cast<uint32_t>(functional), ExtentsOf(op), Values(op), plan);
  choice.is_aligned = AreAligned({&op.q, &op.k, &op.v, &op.out}) && IsScoresAligned(op.bias);
  return attn_fwd.Add(choice, ExtentsOf(op), Values(op), plan);
}

Status PlanEncodedSoftmax(const EncodedSoftmax& op, const KernelPack& kernel, Plan* plan) {
  return kernel.Add(ChoiceOf(op.tensor), ExtentsOf(op.tensor), Values(op), plan);
}

Status PlanDropoutRng(const DropoutRng& op, const KernelPack& kernel, Plan* plan) {
  return kernel.Add(ChoiceOf(op.tensor), ExtentsOf(op.tensor), Values(op), plan);
}

Status PlanBwdSplit(const AttnBwd& op, const KernelPack& preprocess, const KernelPack& dkdv, const KernelPack& dq, Plan* plan) {
  const Extents extents = ExtentsOf(op);
  const Values values(op);
  Choice of_rows = ChoiceOf(op);  // the first kernel knows the head dim of out only
  of_rows.head_dim_qk = of_rows.head_dim_vo;
  of_rows.is_aligned = AreAligned({&op.out, &op.dout});
  if (Status status = preprocess.Add(of_rows, extents, values, plan); !status.ok()) return status;

  Choice choice = ChoiceOf(op);
  const bool are_inputs_aligned = AreAligned({&op.q, &op.k, &op.v, &op.dout}) && IsScoresAligned(op.bias);
  choice.is_aligned = are_inputs_aligned && AreAligned({&op.dk, &op.dv});
  if (Status status = dkdv.Add(choice, extents, values, plan); !status.ok()) return status;
  choice.is_aligned = are_inputs_aligned && AreAligned({&op.dq}) && IsScoresAligned(op.dbias);
  return dq.Add(choice, extents, values, plan);
}

Status PlanBwdFused(const AttnBwd& op, const KernelPack& fused, Plan* plan) {
  Choice choice = ChoiceOf(op);
  choice.is_aligned = AreAligned({&op.q, &op.k, &op.v, &op.out, &op.dout, &op.dq, &op.dk, &op.dv}) &&
                      IsScoresAligned(op.bias) && IsScoresAligned(op.dbias);
  return fused.Add(choice, ExtentsOf(op), Values(op), plan);
}

}  // namespace aotriton::dispatcher
