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

// A tensor that a kernel reads or writes by TMA: what the driver makes a tensor map of. The kernels agree on the
// rest (kernels/declare.bzl): (batch, head, row, column) of 16 bits, in boxes of box_rows rows and 64 columns.
struct TensorMap {
  void* data = nullptr;
  int32_t dtype = 0;
  uint32_t box_rows = 0;
  int64_t sizes[4] = {};
  int64_t strides[3] = {};  // in elements; the last stride is 1
  int argument = 0;         // of the launch
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
  // The argument that is given a counter of the library (counters.h); else -1.
  int tile_counter_argument = -1;
  int argument_count = 0;
  int tensor_map_count = 0;
  static constexpr int kMaxTensorMaps = 4;
  TensorMap tensor_maps[kMaxTensorMaps];
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
