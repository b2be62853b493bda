// A pack of a kernel whose names are resolved: what a plan needs of it per call is an index.
#ifndef AOTRITON_DISPATCHER_KERNEL_PACK_H_
#define AOTRITON_DISPATCHER_KERNEL_PACK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dispatcher/arguments.h"
#include "dispatcher/attention.h"
#include "dispatcher/pack.h"
#include "dispatcher/plan.h"
#include "dispatcher/status.h"

namespace aotriton::dispatcher {

enum KernelId : uint8_t {
  kAttnFwd,
  kAttnFwdHopper,
  kAttnFwdPersistent,
  kBwdPreprocess,
  kBwdDkdv,
  kBwdDq,
  kBwdFused,
  kDebugSimulateEncodedSoftmax,
  kDebugFillDropoutRng,
  kKernelCount,
};

enum Axis : uint8_t { kDType, kHeadDim, kCausal, kLayout, kBias, kDropout, kAxisCount };

struct Kernel {
  static constexpr char kFamily[] = "flash";

  const char* name;
  uint8_t op;           // whose arguments it may name
  uint8_t axes;         // bits 1 << Axis
  bool has_tiles_of_q;  // a program for each BLOCK_M rows of each head of q
  bool has_tiles_of_k;  // and for each BLOCK_N rows of each head of k
  const char* only_arch = nullptr;  // that has it; null: all have
};
extern const Kernel kKernels[kKernelCount];

// What a call asks of a kernel; of its axes each kernel has some.
struct Choice {
  int32_t dtype = 0;
  int64_t head_dim_qk = 0, head_dim_vo = 0;
  bool is_windowed = false, has_bias = false, has_dropout = false;
  bool is_aligned = false;  // strides and bases keep what the layout "aligned" promises
};

class KernelPack {
 public:
  // Refuses a pack that belongs to another library, kernel, vendor or arch: kInvalidImage.
  static Status Bind(std::shared_ptr<const Pack> pack, KernelId kernel, const std::string& vendor, const std::string& arch,
                     std::shared_ptr<const KernelPack>* bound);

  const Pack& pack() const { return *pack_; }

  // The functional for exactly this head_dim; -1 if the pack has none. Of a kernel without the axis layout.
  int64_t FindExact(const Choice& choice) const;

  // The functional of the smallest tile that covers the call's head dims; -1 if the pack has none. Likewise.
  int64_t FindCovering(const Choice& choice) const;

  // Appends the kernel's launch to `plan`; none if it has no program.
  Status Add(const Choice& choice, const Extents& extents, const Values& values, Plan* plan) const;
  // With a functional that was found.
  Status AddFunctional(uint32_t index, const Extents& extents, const Values& values, Plan* plan) const;

 private:
  // What an argument of the pack is bound to, and in which width the kernel reads it.
  enum class Type : uint8_t { kPointer, kI32, kI64, kFp32, kTensorMap };
  struct Binding {
    Value value;
    Type type;
    uint32_t box_rows = 0;  // of a tensor map; 0: the variant's BLOCK_N
  };
  struct HeadDim {
    int64_t tile;
    uint32_t digit;
  };

  KernelPack(std::shared_ptr<const Pack> pack, const Kernel& kernel) : pack_(std::move(pack)), kernel_(kernel) {}

  Status BindAxes();
  Status BindHeadDims();
  Status BindArguments();
  Status BindVariants();
  Status Foreign(const std::string& why) const;
  bool Has(Axis axis) const { return (kernel_.axes >> axis & 1) != 0; }
  // For people: which settings of the build left a functional out.
  std::string BuiltWith() const;
  std::string ValuesOf(Axis axis) const;
  // The functional's index; -1 if the pack does not have it.
  int64_t Find(const Choice& choice, uint32_t head_dim_digit, bool is_aligned) const;
  Status Select(const Choice& choice, uint32_t* functional) const;
  int64_t ProgramsOfASequence(uint32_t variant, const Extents& extents) const;
  // Sets the launch's choice and variant; returns the programs of a sequence.
  int64_t Tune(const Pack::Functional& functional, const Extents& extents, int multiprocessors, Launch* launch) const;

  static constexpr int kMaxNumbers = 5;

  std::shared_ptr<const Pack> pack_;
  const Kernel& kernel_;
  bool is_amd_ = false;
  uint32_t places_[kAxisCount] = {};   // of our axes in the pack
  uint64_t weights_[kAxisCount] = {};  // of their digits in a functional's number; 0 of an axis that the kernel lacks
  int64_t digits_[kAxisCount][kMaxNumbers] = {};  // of our values; -1 if the pack lacks one
  std::vector<HeadDim> head_dims_;     // ascending
  std::vector<Binding> bindings_;      // of each argument of the pack
  std::vector<int> num_programs_;      // of each functional, the place of this argument in the launch; -1: it has none
  std::vector<int> tile_counters_;     // likewise
  std::vector<int32_t> block_m_;       // of each variant of the pack; 0 where the kernel has no such tiles
  std::vector<int32_t> block_n_;       // likewise
};

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_KERNEL_PACK_H_
