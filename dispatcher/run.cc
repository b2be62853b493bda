#include "dispatcher/run.h"

#include "dispatcher/backends.h"
#include "dispatcher/functions.h"
#include "dispatcher/gpus.h"
#include "dispatcher/plan.h"

namespace aotriton::dispatcher {
namespace {

Status Carry(const Plan& plan, const StreamPlace& where, void* stream, Goal goal) {
  CurrentPlace current(where.driver);
  if (Status status = current.Enter(where.place); !status.ok()) return status;
  // Everything is loaded before the first launch: a call that fails has written nothing.
  void* functions[Plan::kMaxLaunches];
  for (int i = 0; i < plan.launch_count; ++i) {
    Status status = LoadFunction(where.driver, where.place, plan.launches[i], &functions[i]);
    if (!status.ok()) return status;
  }
  if (goal == Goal::kPrepare) return Status();
  for (int i = 0; i < plan.launch_count; ++i) {
    const Launch& launch = plan.launches[i];
    void* arguments[Launch::kMaxArguments];
    for (int a = 0; a < launch.argument_count; ++a) {
      arguments[a] = const_cast<void*>(static_cast<const void*>(&launch.arguments[a].value));
    }
    Status status = where.driver->Launch(functions[i], {launch.grid, launch.threads, launch.shared}, arguments, stream);
    if (!status.ok()) return status;
  }
  return Status();
}

// All packs of a call are found before its plan is begun, and the plan is whole before anything is loaded.
Status MakePlan(const AttnFwd& op, Gpu* gpu, Plan* plan) {
  const KernelPack *forward = nullptr, *mask = nullptr;
  const bool has_mask = op.encoded_softmax.data != nullptr;
  Status status = gpu->Find(kAttnFwd, &forward);
  if (status.ok() && has_mask) status = gpu->Find(kDebugSimulateEncodedSoftmax, &mask);
  if (status.ok()) status = PlanAttnFwd(op, *forward, plan);
  if (status.ok() && has_mask) status = PlanEncodedSoftmax({op.encoded_softmax, op.dropout}, *mask, plan);
  return status;
}

Status MakePlan(const EncodedSoftmax& op, Gpu* gpu, Plan* plan) {
  const KernelPack* mask = nullptr;
  Status status = gpu->Find(kDebugSimulateEncodedSoftmax, &mask);
  return status.ok() ? PlanEncodedSoftmax(op, *mask, plan) : status;
}

Status MakePlan(const DropoutRng& op, Gpu* gpu, Plan* plan) {
  const KernelPack* rng = nullptr;
  Status status = gpu->Find(kDebugFillDropoutRng, &rng);
  return status.ok() ? PlanDropoutRng(op, *rng, plan) : status;
}

Status MakePlan(const AttnBwd& op, Gpu* gpu, Plan* plan) {
  if (BackendOf(op) == BwdBackend::kFused) {
    const KernelPack* fused = nullptr;
    Status status = gpu->Find(kBwdFused, &fused);
    return status.ok() ? PlanBwdFused(op, *fused, plan) : status;
  }
  const KernelPack *preprocess = nullptr, *dkdv = nullptr, *dq = nullptr;
  Status status = gpu->Find(kBwdPreprocess, &preprocess);
  if (status.ok()) status = gpu->Find(kBwdDkdv, &dkdv);
  if (status.ok()) status = gpu->Find(kBwdDq, &dq);
  if (!status.ok()) return status;
  if (op.delta.data != nullptr || op.acquire_delta == nullptr) return PlanBwdSplit(op, *preprocess, *dkdv, *dq, plan);
  // The caller's memory is asked for once all packs are there.
  AttnBwd with_delta = op;
  status = op.acquire_delta(op.delta_source, &with_delta.delta);
  if (status.ok()) status = ValidateDelta(with_delta);
  return status.ok() ? PlanBwdSplit(with_delta, *preprocess, *dkdv, *dq, plan) : status;
}

template <typename Op>
Status RunOp(const Op& op, void* stream, Goal goal) {
  if (Status status = Validate(op); !status.ok()) return status;
  if (IsEmpty(op)) return Status();
  StreamPlace where;
  if (Status status = Locate(stream, &where); !status.ok()) return status;
  Plan plan;
  if (Status status = MakePlan(op, where.gpu, &plan); !status.ok()) return status;
  return goal == Goal::kCheck ? Status() : Carry(plan, where, stream, goal);
}

}  // namespace

Status Run(const AttnFwd& op, void* stream, Goal goal) { return RunOp(op, stream, goal); }
Status Run(const AttnBwd& op, void* stream, Goal goal) { return RunOp(op, stream, goal); }
Status Run(const EncodedSoftmax& op, void* stream, Goal goal) { return RunOp(op, stream, goal); }
Status Run(const DropoutRng& op, void* stream, Goal goal) { return RunOp(op, stream, goal); }

}  // namespace aotriton::dispatcher
