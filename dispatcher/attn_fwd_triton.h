// The backend "triton" of attn_fwd: one launch of the kernel attn_fwd.
#ifndef AOTRITON_DISPATCHER_ATTN_FWD_TRITON_H_
#define AOTRITON_DISPATCHER_ATTN_FWD_TRITON_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dispatcher/attn_fwd.h"
#include "dispatcher/pack.h"
#include "dispatcher/plan.h"
#include "dispatcher/status.h"

namespace aotriton::dispatcher {

// A pack of the kernel attn_fwd whose names are resolved: what Make() needs per call is an index.
class AttnFwdTriton {
 public:
  static constexpr char kFamily[] = "flash";
  static constexpr char kKernel[] = "attn_fwd";

  // Refuses a pack that belongs to another library, vendor or arch: kInvalidImage.
  static Status Bind(std::shared_ptr<const Pack> pack, const std::string& vendor, const std::string& arch,
                     std::shared_ptr<const AttnFwdTriton>* backend);

  // The plan of `op`, which Validate() has accepted.
  Status Make(const AttnFwd& op, Plan* plan) const;

 private:
  // What an argument of the pack is bound to, and in which width the kernel reads it.
  enum class Type : uint8_t { kPointer, kI32, kI64, kFp32 };
  struct Binding {
    uint8_t value;  // index into the table of names
    Type type;
  };
  struct HeadDim {
    int64_t tile;
    uint32_t digit;
  };
  enum Axis { kDType, kHeadDim, kCausal, kLayout, kAxisCount };

  explicit AttnFwdTriton(std::shared_ptr<const Pack> pack) : pack_(std::move(pack)) {}

  Status BindAxes();
  Status BindArguments();
  Status BindVariants();
  Status Foreign(const std::string& why) const;
  // The digit of a value of an axis; -1 if the pack does not have it.
  int64_t Digit(Axis axis, const char* value) const;
  std::string Values(Axis axis) const;
  Status Select(const AttnFwd& op, uint32_t* functional) const;

  std::shared_ptr<const Pack> pack_;
  bool is_amd_ = false;
  uint32_t places_[kAxisCount] = {};     // of our axes in the pack
  uint64_t weights_[kAxisCount] = {};    // of their digits in a functional's number
  std::vector<HeadDim> head_dims_;       // ascending
  std::vector<Binding> bindings_;        // of each argument of the pack
  std::vector<int32_t> block_m_;         // of each variant of the pack
};

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_ATTN_FWD_TRITON_H_
