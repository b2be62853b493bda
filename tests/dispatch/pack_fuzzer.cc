// A pack that may hold anything: opened, bound to its kernel, planned with, unpacked. The entry points are
// libFuzzer's, so that an engine like it can drive this file; fuzz_main.cc does where there is none.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <string>

#include "dispatcher/attn_bwd.h"
#include "dispatcher/attn_fwd.h"
#include "dispatcher/backends.h"
#include "dispatcher/kernel_pack.h"
#include "dispatcher/pack.h"
#include "tests/dispatch/pack_bytes.h"

namespace {

using namespace aotriton::dispatcher;
using pack_bytes::kIndexOffset;

Tensor Make(int32_t dtype, int64_t rows, int64_t head_dim, uintptr_t address) {
  Tensor t;
  t.data = reinterpret_cast<void*>(address);
  t.dtype = dtype;
  t.rank = 4;
  const int64_t sizes[] = {2, 4, rows, head_dim}, strides[] = {4 * rows * head_dim, rows * head_dim, head_dim, 1};
  std::copy(std::begin(sizes), std::end(sizes), t.sizes);
  std::copy(std::begin(strides), std::end(strides), t.strides);
  return t;
}

AttnBwd Call(int32_t dtype, int64_t rows, int64_t head_dim, bool is_windowed) {
  AttnBwd op;
  op.q = op.k = op.v = op.out = op.dout = op.dq = op.dk = op.dv = Make(dtype, rows, head_dim, 0x10000);
  op.logsumexp = op.delta = Make(kFloat32, rows, 1, 0x20000);
  op.logsumexp.rank = op.delta.rank = 3;
  op.sm_scale = 1;
  op.is_windowed = is_windowed;
  return op;
}

// What a plan says must lie in its pack; reading it is the check. Unpacking is nearly all of the time.
size_t Read(const Plan& plan, bool unpacks) {
  size_t sum = 0;
  for (int i = 0; i < plan.launch_count; ++i) {
    const Launch& launch = plan.launches[i];
    sum += launch.pack->DescribeFunctional(launch.functional).size() + launch.pack->DescribeConfig(launch.variant).size();
    for (int a = 0; a < launch.argument_count; ++a) sum += strlen(launch.arguments[a].name);
    if (!unpacks || i > 0) continue;
    Bytes code;
    const Status status = launch.pack->LoadCode(launch.pack->functional(launch.functional), launch.variant, &code);
    if (status.ok()) sum += code.data[0] + code.data[code.size - 1];
  }
  return sum;
}

// Everything a reader of the index may ask.
size_t Walk(const Pack& pack) {
  size_t sum = 0;
  for (uint32_t i = 0; i < pack.argument_count(); ++i) sum += strlen(pack.argument(i).name) + strlen(pack.argument(i).type);
  for (uint32_t i = 0; i < pack.variant_count(); ++i) sum += strlen(pack.variant(i).symbol) + strlen(pack.variant(i).hash);
  for (uint32_t i = 0; i < pack.functional_count(); ++i) {
    const Pack::Functional functional = pack.functional(i);
    if (pack.FindFunctional(functional.number) != i) __builtin_trap();
    for (uint32_t row = 0; row < functional.choice_count; ++row) {
      if (pack.choice(functional, row).variant >= pack.variant_count()) __builtin_trap();
    }
  }
  return sum;
}

volatile size_t sink;

}  // namespace

// How far the inputs got, for a driver that wants to know whether it tests anything.
int opened_packs = 0, bound_packs = 0, planned_launches = 0;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::shared_ptr<const Pack> pack;
  if (!Pack::Open("fuzz.pack", data, size, &pack).ok()) return 0;
  ++opened_packs;
  sink = Walk(*pack);
  const auto* const kernel = std::find_if(std::begin(kKernels), std::end(kKernels),
                                          [&](const Kernel& k) { return strcmp(k.name, pack->Meta("kernel")) == 0; });
  if (kernel == std::end(kKernels)) return 0;
  std::shared_ptr<const KernelPack> bound;
  const auto id = static_cast<KernelId>(kernel - kKernels);
  if (!KernelPack::Bind(pack, id, pack->Meta("vendor"), pack->Meta("arch"), &bound).ok()) return 0;
  ++bound_packs;
  for (int i = 0; i < 6; ++i) {
    const AttnBwd call = Call(i % 3 + 1, i % 2 ? 1 : 5000, i < 3 ? 64 : 24, i % 2);
    AttnFwd forward;
    static_cast<Attention&>(forward) = call;
    Plan plan;
    plan.multiprocessors = 304;
    Status status;
    switch (id) {
      case kAttnFwd: status = PlanAttnFwd(forward, *bound, nullptr, &plan); break;
      case kAttnFwdHopper: status = PlanAttnFwdHopper(forward, *bound, &plan); break;
      case kAttnFwdPersistent: status = PlanAttnFwd(forward, *bound, bound.get(), &plan); break;
      case kBwdFused: status = PlanBwdFused(call, *bound, &plan); break;
      case kDebugSimulateEncodedSoftmax: status = PlanEncodedSoftmax({call.q, {}}, *bound, &plan); break;
      default: status = PlanBwdSplit(call, *bound, *bound, *bound, &plan);  // each of the three is taken for all
    }
    planned_launches += plan.launch_count;
    sink = Read(plan, i == 0);
  }
  return 0;
}

// Changes what a blind change of bytes hardly meets: words of records, the section table, lengths.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937 random(seed);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto below = [&](size_t limit) { return limit > 0 ? random() % limit : 0; };
  for (size_t changes = 1 + below(3); changes > 0 && bytes.size() >= kIndexOffset + 16; --changes) {
    size_t place = 0;
    const size_t kind = below(16);
    if (kind < 10) {
      // A word of a record, of a section that the table names.
      const size_t entry = kIndexOffset + 16 * below(std::min<size_t>(pack_bytes::Word(bytes, 28), (bytes.size() - kIndexOffset) / 16));
      const uint64_t record_size = pack_bytes::Word(bytes, entry + 4), count = pack_bytes::Word(bytes, entry + 8);
      place = pack_bytes::Word(bytes, entry + 12) + below(record_size * count) / 4 * 4;
    } else if (kind == 10) {
      place = kIndexOffset + 4 * below(40);  // the section table
    } else if (kind == 11) {
      place = 8 + 4 * below(6);  // the header
    } else if (kind == 12) {
      bytes.resize(below(2) == 0 ? below(bytes.size()) : std::min(max_size, bytes.size() + below(100)));
      continue;
    } else {
      place = below(bytes.size()) / 4 * 4;
    }
    if (place + 4 > bytes.size()) continue;
    const uint32_t old = pack_bytes::Word(bytes, place);
    const uint32_t values[] = {0, 1, 7, 8, 255, 1024, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF8, 0xFFFFFFFF, old + 1, old - 1, old ^ (1u << below(32)),
                               static_cast<uint32_t>(random()), static_cast<uint32_t>(bytes.size()),
                               pack_bytes::Word(bytes, below(bytes.size() - 4))};
    pack_bytes::SetWord(&bytes, place, values[below(std::size(values))]);
  }
  if (bytes.size() >= kIndexOffset && below(8) != 0) {
    const uint64_t file_size = bytes.size();
    memcpy(bytes.data() + 8, &file_size, sizeof(file_size));
    pack_bytes::Seal(&bytes);
  }
  memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
