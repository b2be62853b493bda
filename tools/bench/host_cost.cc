// What the library costs on the host, with a GPU runtime that does nothing (idle_hip). Prints
// "name value" lines; host_cost.py runs it.
//
//   host_cost warm CALLS        the first call and CALLS warm ones
//   host_cost persistent CALLS  the same with a window and a counter, which the persistent schedule takes
//   host_cost first NUMBER      what the first call of a process costs: one of FirstCalls()
//   host_cost memory COUNT      resident memory while COUNT code objects are loaded, and while they are used
#include <aotriton/aotriton.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "tools/bench/idle_hip.h"

namespace {

aotriton_tensor Tensor(int32_t dtype, std::initializer_list<int64_t> sizes, uintptr_t address) {
  aotriton_tensor tensor = {};
  tensor.data = reinterpret_cast<void*>(address);
  tensor.dtype = dtype;
  tensor.rank = static_cast<int32_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), tensor.sizes);
  int64_t stride = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    tensor.strides[i] = stride;
    stride *= tensor.sizes[i];
  }
  return tensor;
}

aotriton_attn_fwd_args Call(int32_t dtype, int64_t head_dim, int64_t seqlen) {
  aotriton_attn_fwd_args args = {};
  args.struct_size = sizeof(args);
  args.q = Tensor(dtype, {2, 16, seqlen, head_dim}, 0x10000);
  args.k = Tensor(dtype, {2, 16, seqlen, head_dim}, 0x20000);
  args.v = Tensor(dtype, {2, 16, seqlen, head_dim}, 0x30000);
  args.out = Tensor(dtype, {2, 16, seqlen, head_dim}, 0x40000);
  args.logsumexp = Tensor(AOTRITON_FLOAT32, {2, 16, seqlen}, 0x50000);
  args.sm_scale = 0.125f;
  return args;
}

void Check(aotriton_status status) {
  if (status == 0) return;
  fprintf(stderr, "host_cost: %s\n", aotriton_last_error());
  exit(1);
}

double Nanoseconds() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// KiB in memory that belongs to this process alone.
long Resident() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long value = 0;
    if (word == "RssAnon:" && status >> value) return value;
  }
  return 0;
}

void Warm(int calls, bool is_persistent) {
  const hipStream_t stream = idle_hip::StreamOf(0);
  aotriton_attn_fwd_args args = Call(AOTRITON_BFLOAT16, 128, 4096);
  if (is_persistent) {
    args.is_windowed = 1;
    args.persistent_counter = reinterpret_cast<int32_t*>(0x80000);
  }
  double begin = Nanoseconds();
  Check(aotriton_attn_fwd_prepare(&args, stream));
  printf("first_use_us %.0f\n", (Nanoseconds() - begin) / 1000);
  // The least of many batches: what the machine does beside only ever adds.
  double least = 1e30;
  for (int batch = 0; batch < 20; ++batch) {
    begin = Nanoseconds();
    for (int i = 0; i < calls / 20; ++i) Check(aotriton_attn_fwd(&args, stream));
    least = std::min(least, (Nanoseconds() - begin) / (calls / 20));
  }
  printf("warm_ns %.0f\n", least);
}

// Whether a pack was asked that does not have the functional; any other failure ends the program.
bool IsNotBuilt(aotriton_status status) {
  if (status == 0) return false;
  if (strstr(aotriton_last_error(), "head_dim is") == nullptr && strstr(aotriton_last_error(), "was built without") == nullptr) Check(status);
  return true;
}

// One call for every functional of attn_fwd.
std::vector<aotriton_attn_fwd_args> FirstCalls() {
  std::vector<aotriton_attn_fwd_args> calls;
  for (int32_t dtype : {AOTRITON_BFLOAT16, AOTRITON_FLOAT16, AOTRITON_FLOAT32}) {
    for (int64_t head_dim : {16, 32, 48, 64, 80, 96, 128, 160, 192, 224, 256, 512}) {
      for (int choice = 0; choice < 16; ++choice) {
        aotriton_attn_fwd_args args = Call(dtype, head_dim, 4096);
        args.is_windowed = choice & 1;
        if (choice & 2) args.bias = Tensor(dtype, {2, 16, 4096, 4096}, 0x60000);
        if (choice & 4) {
          args.dropout_p = 0.5f;
          args.philox_seed = args.philox_offset1 = reinterpret_cast<const uint64_t*>(0x70000);
        }
        if (choice & 8) args.q.data = reinterpret_cast<void*>(0x10004);  // layout any
        calls.push_back(args);
      }
    }
  }
  return calls;
}

void First(int number) {
  const std::vector<aotriton_attn_fwd_args> calls = FirstCalls();
  const hipStream_t stream = idle_hip::StreamOf(0);
  const double begin = Nanoseconds();
  const bool is_built = !IsNotBuilt(aotriton_attn_fwd_prepare(&calls[static_cast<size_t>(number) % calls.size()], stream));
  if (is_built) printf("first_use_us %.0f\n", (Nanoseconds() - begin) / 1000);
}

// Every call that some functional of attn_fwd serves, until `count` code objects are loaded.
void LoadMany(int count, bool launches) {
  const hipStream_t stream = idle_hip::StreamOf(0);
  for (const aotriton_attn_fwd_args& args : FirstCalls()) {
    if (idle_hip::Loads() >= count && !launches) return;
    IsNotBuilt(launches ? aotriton_attn_fwd(&args, stream) : aotriton_attn_fwd_prepare(&args, stream));
  }
}

void Memory(int count) {
  const long before = Resident();
  LoadMany(count, false);
  printf("code_objects %d\n", idle_hip::Loads());
  const long loaded = Resident();
  printf("resident_kib %ld\n", loaded - before);
  LoadMany(count, true);  // loads what was not among the first `count`
  const long used = Resident();
  for (int i = 0; i < 100; ++i) LoadMany(count, true);
  printf("launches %d\n", idle_hip::Launches());
  printf("growth_kib %ld\n", Resident() - used);
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc == 3 ? atoi(argv[2]) : 0;
  const bool is_first = argc == 3 && strcmp(argv[1], "first") == 0;
  if (count < 20 && !is_first) {
    fprintf(stderr, "host_cost warm CALLS | host_cost persistent CALLS | host_cost memory COUNT; at least 20 of each\nhost_cost first NUMBER\n");
    return 2;
  }
  if (is_first) First(count);
  if (strcmp(argv[1], "warm") == 0) Warm(count, false);
  if (strcmp(argv[1], "persistent") == 0) Warm(count, true);
  if (strcmp(argv[1], "memory") == 0) Memory(count);
  return 0;
}
