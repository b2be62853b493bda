#include "dispatcher/run.h"

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

}  // namespace

Status Run(const AttnFwd& op, void* stream, Goal goal) {
  if (Status status = Validate(op); !status.ok()) return status;
  if (IsEmpty(op)) return Status();
  StreamPlace where;
  if (Status status = Locate(stream, &where); !status.ok()) return status;
  const AttnFwdTriton* backend = nullptr;
  if (Status status = where.gpu->AttnFwd(&backend); !status.ok()) return status;
  Plan plan;
  if (Status status = backend->Make(op, &plan); !status.ok()) return status;
  return goal == Goal::kCheck ? Status() : Carry(plan, where, stream, goal);
}

}  // namespace aotriton::dispatcher
