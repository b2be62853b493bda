#include "dispatcher/run.h"

#include <cstdint>
#include <string>
#include <utility>

#include "dispatcher/backends.h"
#include "dispatcher/counters.h"
#include "dispatcher/functions.h"
#include "dispatcher/gpus.h"
#include "dispatcher/log.h"
#include "dispatcher/plan.h"

namespace aotriton::dispatcher {
namespace {

// Of a persistent kernel: no more work groups than run at once.
uint32_t CutToActive(uint32_t grid, const Function& function, const StreamPlace& where) {
  const uint64_t active = uint64_t{function.active_work_groups} * static_cast<uint32_t>(where.gpu->info().multiprocessors);
  return active > 0 && active < grid ? static_cast<uint32_t>(active) : grid;
}

std::string Describe(const Attention& op) {
  return Text(DTypeName(op.q.dtype), ", q ", ShapeOf(op.q), ", k ", ShapeOf(op.k), ", head_dim of v ", op.v.sizes[3],
              op.is_windowed ? ", windowed" : "", op.bias.data != nullptr ? ", with bias" : "", op.dropout.p > 0 ? ", with dropout" : "",
              op.varlen.type != kVarlenNone ? ", variable lengths" : "");
}
std::string Describe(const AttnFwd& op) { return "attn_fwd: " + Describe(static_cast<const Attention&>(op)); }
std::string Describe(const AttnBwd& op) { return "attn_bwd: " + Describe(static_cast<const Attention&>(op)); }
std::string Describe(const EncodedSoftmax& op) { return "debug_simulate_encoded_softmax: " + ShapeOf(op.tensor); }
std::string Describe(const DropoutRng& op) { return "debug_fill_dropout_rng: " + ShapeOf(op.tensor); }

// The code object of a launch, and why it is this one.
std::string Describe(const Launch& launch, uint32_t grid) {
  const Pack& pack = *launch.pack;
  const Pack::Functional functional = pack.functional(launch.functional);
  const Pack::Choice choice = pack.choice(functional, launch.choice);
  const auto bound = [](uint32_t most) { return most == Pack::kUnbounded ? std::string("any") : Text("up to ", most); };
  return Text(pack.Meta("kernel"), " [", pack.DescribeFunctional(launch.functional), "] [", pack.DescribeConfig(launch.variant),
              "], row ", launch.choice + 1, " of ", functional.choice_count, " of its tuning table: seqlen_q ", bound(choice.max_seqlen_q),
              ", seqlen_k ", bound(choice.max_seqlen_k), ", fill from ", choice.min_fill, "%; grid ", grid, ", ", launch.threads,
              " threads, ", launch.shared, " bytes shared");
}

Status Encode(Driver* driver, const Launch& launch, const TensorMap& map, EncodedTensorMap* encoded) {
  Status status = driver->EncodeTensorMap({map.data, map.dtype, map.sizes, map.strides, map.box_rows}, encoded);
  if (status.ok()) return status;
  return Status(status.code(), Text(status.text(), ", for ", launch.arguments[map.argument].name, " of ", launch.pack->Meta("kernel"), ": address ",
                                    map.data, ", sizes ", Tuple(map.sizes, 4), ", strides ", Tuple(map.strides, 3), ", boxes of ", map.box_rows,
                                    " rows"));
}

Status Carry(const Plan& plan, const StreamPlace& where, void* stream, Goal goal) {
  CurrentPlace current(where.driver);
  if (Status status = current.Enter(where.place); !status.ok()) return status;
  const platforms::Arch* arch = nullptr;
  if (Status status = where.gpu->Arch(&arch); !status.ok()) return status;
  // Everything is loaded before the first launch: a call that fails has written nothing.
  Function functions[Plan::kMaxLaunches];
  for (int i = 0; i < plan.launch_count; ++i) {
    Status status = LoadFunction(where.driver, where.place, *arch, plan.launches[i], &functions[i]);
    if (!status.ok()) {
      where.gpu->Reconsider(plan.launches[i].pack);
      return status;
    }
  }
  for (int i = 0; i < plan.launch_count && goal == Goal::kPrepare; ++i) {
    if (plan.launches[i].tile_counter_argument < 0) continue;
    if (Status status = PrepareCounter(where.driver, where.place, stream); !status.ok()) return status;
  }
  for (int i = 0; i < plan.launch_count && goal == Goal::kLaunch; ++i) {
    const Launch& launch = plan.launches[i];
    void* arguments[Launch::kMaxArguments];
    for (int a = 0; a < launch.argument_count; ++a) {
      arguments[a] = const_cast<void*>(static_cast<const void*>(&launch.arguments[a].value));
    }
    EncodedTensorMap maps[Launch::kMaxTensorMaps];
    for (int m = 0; m < launch.tensor_map_count; ++m) {
      if (Status status = Encode(where.driver, launch, launch.tensor_maps[m], &maps[m]); !status.ok()) return status;
      arguments[launch.tensor_maps[m].argument] = &maps[m];
    }
    int32_t* counter = nullptr;
    if (launch.tile_counter_argument >= 0) {
      if (Status status = FindCounter(where.driver, where.place, stream, &counter); !status.ok()) return status;
      arguments[launch.tile_counter_argument] = &counter;
    }
    uint32_t grid = launch.grid;
    int64_t num_programs = 0;  // the kernel reads it in 32 bits or in 64
    if (launch.num_programs_argument >= 0) {
      num_programs = grid = CutToActive(grid, functions[i], where);
      arguments[launch.num_programs_argument] = &num_programs;
    }
    if (IsLogged(LogLevel::kCall)) {
      WriteLine(Text("launch of ", Describe(launch, grid), "; device ", where.place.device, ", stream ", stream).c_str());
    }
    Status status = where.driver->Launch(functions[i].handle, {grid, launch.threads, launch.shared}, arguments, stream);
    if (!status.ok()) return status;
  }
  return current.Leave();
}

// Whether a backend that gives this answer cannot take the call, and another one may. What is broken
// (a damaged pack, no memory) is no reason to hide it behind another backend.
bool IsUnable(const Status& status) {
  return status.code() == kNotSupported || status.code() == kNotBuilt || status.code() == kFileNotFound;
}

// Whether hopper is taken only where it is the faster one.
enum class Hopper { kIfFaster, kIfAble };

Status MakeHopperPlan(const AttnFwd& op, const StreamPlace& where, Hopper when, Plan* plan) {
  Gpu* const gpu = where.gpu;
  if (!gpu->HasKernel(kAttnFwdHopper)) return Status(kNotSupported, Text("it is for sm_90, the GPU is ", gpu->info().arch));
  std::string why;
  std::string* const told = when == Hopper::kIfAble || IsLogged(LogLevel::kCall) ? &why : nullptr;
  if (!CanTakeHopper(op, told)) return Status(kNotSupported, std::move(why));
  if (when == Hopper::kIfFaster && !IsFasterOnHopper(op, told)) return Status(kNotSupported, std::move(why));
  if (!where.driver->serves_hopper()) return Status(kNotSupported, "it needs a driver of CUDA 12 or newer");
  const KernelPack* kernel = nullptr;
  Status status = gpu->Find(kAttnFwdHopper, &kernel);
  return status.ok() ? PlanAttnFwdHopper(op, *kernel, plan) : status;
}

// All packs of a call are found before its plan is begun, and the plan is whole before anything is loaded.
Status MakeTritonPlan(const AttnFwd& op, Gpu* gpu, Plan* plan) {
  const KernelPack *forward = nullptr, *persistent = nullptr, *mask = nullptr;
  const bool has_mask = op.encoded_softmax.data != nullptr;
  Status status = gpu->Find(kAttnFwd, &forward);
  if (status.ok() && WantsPersistent(op)) {
    status = gpu->Find(kAttnFwdPersistent, &persistent);
    if (status.code() == kFileNotFound) {  // a build of few kernels; the plain one gives the same bits
      Log(LogLevel::kProblem, "attn_fwd passes over the persistent schedule: ", status.text());
      status = Status();
    }
  }
  if (status.ok() && has_mask) status = gpu->Find(kDebugSimulateEncodedSoftmax, &mask);
  if (status.ok()) status = PlanAttnFwd(op, *forward, persistent, plan);
  if (status.ok() && has_mask) status = PlanEncodedSoftmax({op.encoded_softmax, op.dropout}, *mask, plan);
  return status;
}

Status MakePlan(const AttnFwd& op, const StreamPlace& where, Plan* plan) {
  if (op.backend == FwdBackend::kHopper) {
    const Status status = MakeHopperPlan(op, where, Hopper::kIfAble, plan);
    return status.ok() ? status : Status(status.code(), Text("the backend hopper cannot take the call: ", status.text()));
  }
  const bool is_choice = op.backend == FwdBackend::kDefault && where.gpu->HasKernel(kAttnFwdHopper);
  if (is_choice) {
    const Status status = MakeHopperPlan(op, where, Hopper::kIfFaster, plan);
    if (status.ok() || !IsUnable(status)) return status;
    Log(LogLevel::kCall, "attn_fwd passes over the backend hopper: ", status.text());
  }
  const Status triton = MakeTritonPlan(op, where.gpu, plan);
  if (triton.ok() || !is_choice || !IsUnable(triton)) return triton;
  plan->launch_count = 0;
  const Status hopper = MakeHopperPlan(op, where, Hopper::kIfAble, plan);  // slower is better than not at all
  if (hopper.ok() || !IsUnable(hopper)) return hopper;
  return Status(triton.code(), Text("no backend takes the call. triton: ", triton.text(), ". hopper: ", hopper.text()));
}

Status MakePlan(const EncodedSoftmax& op, const StreamPlace& where, Plan* plan) {
  const KernelPack* mask = nullptr;
  Status status = where.gpu->Find(kDebugSimulateEncodedSoftmax, &mask);
  return status.ok() ? PlanEncodedSoftmax(op, *mask, plan) : status;
}

Status MakePlan(const DropoutRng& op, const StreamPlace& where, Plan* plan) {
  const KernelPack* rng = nullptr;
  Status status = where.gpu->Find(kDebugFillDropoutRng, &rng);
  return status.ok() ? PlanDropoutRng(op, *rng, plan) : status;
}

Status MakeSplitPlan(const AttnBwd& op, Gpu* gpu, Plan* plan) {
  const KernelPack *preprocess = nullptr, *dkdv = nullptr, *dq = nullptr;
  Status status = gpu->Find(kBwdPreprocess, &preprocess);
  if (status.ok()) status = gpu->Find(kBwdDkdv, &dkdv);
  if (status.ok()) status = gpu->Find(kBwdDq, &dq);
  if (!status.ok()) return status;
  if (op.delta.data != nullptr || op.acquire_delta == nullptr) return PlanBwdSplit(op, *preprocess, *dkdv, *dq, plan);
  // The caller's memory is asked for once nothing else can fail. Until then logsumexp, which has its
  // dtype and shape, stands in for it.
  AttnBwd with_delta = op;
  with_delta.delta = op.logsumexp;
  status = PlanBwdSplit(with_delta, *preprocess, *dkdv, *dq, plan);
  if (status.ok()) status = op.acquire_delta(op.delta_source, &with_delta.delta);
  if (status.ok()) status = ValidateDelta(with_delta);
  if (!status.ok()) return status;
  plan->launch_count = 0;
  return PlanBwdSplit(with_delta, *preprocess, *dkdv, *dq, plan);
}

Status MakeFusedPlan(const AttnBwd& op, Gpu* gpu, Plan* plan) {
  const KernelPack* fused = nullptr;
  Status status = gpu->Find(kBwdFused, &fused);
  return status.ok() ? PlanBwdFused(op, *fused, plan) : status;
}

Status MakePlan(const AttnBwd& op, const StreamPlace& where, Plan* plan) {
  Gpu* const gpu = where.gpu;
  if (BackendOf(op) == BwdBackend::kFused) {
    if (op.backend == BwdBackend::kDefault) Log(LogLevel::kCall, "attn_bwd passes over the backend triton_split: it needs a delta, the call has none");
    return MakeFusedPlan(op, gpu, plan);
  }
  const Status split = MakeSplitPlan(op, gpu, plan);
  if (split.ok() || op.backend != BwdBackend::kDefault || !IsUnable(split)) return split;
  Log(LogLevel::kProblem, "attn_bwd passes over the backend triton_split: ", split.text());
  plan->launch_count = 0;
  const Status fused = MakeFusedPlan(op, gpu, plan);
  if (fused.ok() || !IsUnable(fused)) return fused;
  return Status(split.code(), Text("no backend takes the call. triton_split: ", split.text(), ". triton_fused: ", fused.text()));
}

template <typename Op>
Status RunOp(const Op& op, void* stream, Goal goal) {
  if (Status status = Validate(op); !status.ok()) return status;
  if (IsEmpty(op)) return Status();
  if (IsLogged(LogLevel::kCall)) WriteLine(Describe(op).c_str());
  StreamPlace where;
  if (Status status = Locate(stream, &where); !status.ok()) return status;
  Plan plan;
  plan.multiprocessors = where.gpu->info().multiprocessors;
  if (Status status = MakePlan(op, where, &plan); !status.ok()) return status;
  return goal == Goal::kCheck ? Status() : Carry(plan, where, stream, goal);
}

}  // namespace

Status Run(const AttnFwd& op, void* stream, Goal goal) { return RunOp(op, stream, goal); }
Status Run(const AttnBwd& op, void* stream, Goal goal) { return RunOp(op, stream, goal); }
Status Run(const EncodedSoftmax& op, void* stream, Goal goal) { return RunOp(op, stream, goal); }
Status Run(const DropoutRng& op, void* stream, Goal goal) { return RunOp(op, stream, goal); }

}  // namespace aotriton::dispatcher
