// The plan of a call: the launches that a backend makes for it. Plain data with no allocation,
// so that it can be made on the hot path and looked at in a test without a GPU.
#ifndef AOTRITON_DISPATCHER_PLAN_H_
#define AOTRITON_DISPATCHER_PLAN_H_

#include <cstdint>

#include "dispatcher/pack.h"

namespace aotriton::dispatcher {

// A kernel argument, in the width that the kernel declares.
struct Argument {
  const char* name;  // a literal
  union {
    void* pointer;
    int64_t i64;
    int32_t i32;
    float fp32;
  } value;
};

struct Launch {
  static constexpr int kMaxArguments = 80;

  const Pack* pack = nullptr;
  uint32_t functional = 0;  // index in the pack, like variant
  uint32_t choice = 0;  // row of the functional's tuning table
  uint32_t variant = 0;
  uint32_t grid = 0;  // one-dimensional
  uint32_t threads = 0;
  uint32_t shared = 0;
  // Of a persistent kernel the argument that is given the grid, which is then cut to the number of work
  // groups that run at once; else -1.
  int num_programs_argument = -1;
  int argument_count = 0;
  Argument arguments[kMaxArguments];  // the first argument_count are set
};

struct Plan {
  static constexpr int kMaxLaunches = 3;  // of the ops that exist

  int multiprocessors = 0;  // of the GPU that it is for; 0 if that is not known: any call fills it
  int launch_count = 0;     // 0: there is nothing to write
  Launch launches[kMaxLaunches];
};

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_PLAN_H_
