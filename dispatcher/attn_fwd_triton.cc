#include "dispatcher/attn_fwd_triton.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

// The contract between kernel and library that this code implements: META `abi`.
constexpr char kAbi[] = "1";

constexpr const char* kAxisNames[] = {"dtype", "head_dim", "causal", "layout"};

// Kernels give logsumexp in natural logarithms: ln(2) times what they hold in base 2.
constexpr float kNaturalLogarithm = 0.6931471805599453f;

constexpr int64_t kMaxGrid = 2147483647;
// HIP refuses a launch whose threads do not fit into 32 bits.
constexpr int64_t kMaxThreadsOfHip = 4294967295;

enum Value : uint8_t {
  kQ, kK, kV, kOut, kL,
  kSmScale,
  kStrideQz, kStrideQh, kStrideQm,
  kStrideKz, kStrideKh, kStrideKn,
  kStrideVz, kStrideVh, kStrideVn,
  kStrideOz, kStrideOh, kStrideOm,
  kNumHeadQ, kNumHeadK, kSeqlenQ, kSeqlenK, kHeadDimQk, kHeadDimVo,
  kWindowLeft, kWindowRight,
  kLseScale, kStoreLse,
  kGlobalScratch, kProfileScratch,
  kValueCount,
};

enum class Kind : uint8_t { kPointer, kInteger, kReal };

struct Known {
  const char* name;
  Kind kind;
};

// In the order of Value.
constexpr Known kKnown[] = {
    {"Q", Kind::kPointer}, {"K", Kind::kPointer}, {"V", Kind::kPointer}, {"Out", Kind::kPointer}, {"L", Kind::kPointer},
    {"sm_scale", Kind::kReal},
    {"stride_qz", Kind::kInteger}, {"stride_qh", Kind::kInteger}, {"stride_qm", Kind::kInteger},
    {"stride_kz", Kind::kInteger}, {"stride_kh", Kind::kInteger}, {"stride_kn", Kind::kInteger},
    {"stride_vz", Kind::kInteger}, {"stride_vh", Kind::kInteger}, {"stride_vn", Kind::kInteger},
    {"stride_oz", Kind::kInteger}, {"stride_oh", Kind::kInteger}, {"stride_om", Kind::kInteger},
    {"num_head_q", Kind::kInteger}, {"num_head_k", Kind::kInteger},
    {"seqlen_q", Kind::kInteger}, {"seqlen_k", Kind::kInteger},
    {"head_dim_qk", Kind::kInteger}, {"head_dim_vo", Kind::kInteger},
    {"window_left", Kind::kInteger}, {"window_right", Kind::kInteger},
    {"lse_scale", Kind::kReal}, {"store_lse", Kind::kInteger},
    {"global_scratch", Kind::kPointer}, {"profile_scratch", Kind::kPointer},
};
static_assert(std::size(kKnown) == kValueCount);

union AnyValue {
  void* pointer;
  int64_t integer;
  float real;
};

// A dimension of size 1 has no stride: callers leave anything there, and 0 keeps every promise.
int64_t Stride(const Tensor& t, int dimension) { return t.sizes[dimension] > 1 ? t.strides[dimension] : 0; }

bool IsAligned(const Tensor& t) {
  for (int i = 0; i < 3; ++i) {
    if (Stride(t, i) % 8 != 0) return false;
  }
  return reinterpret_cast<uintptr_t>(t.data) % 16 == 0;
}

// What the layout "aligned" promises to the compiler beside head_dim == tile.
bool IsAligned(const AttnFwd& op) {
  return IsAligned(op.q) && IsAligned(op.k) && IsAligned(op.v) && IsAligned(op.out);
}

void SetStrides(const Tensor& t, AnyValue* values) {
  for (int i = 0; i < 3; ++i) values[i].integer = Stride(t, i);
}

}  // namespace

Status AttnFwdTriton::Bind(std::shared_ptr<const Pack> pack, const std::string& vendor, const std::string& arch,
                           std::shared_ptr<const AttnFwdTriton>* backend) {
  std::shared_ptr<AttnFwdTriton> bound(new AttnFwdTriton(std::move(pack)));
  struct Meta {
    const char* key;
    std::string expected;
  };
  for (const Meta& meta : {Meta{"abi", kAbi}, Meta{"kernel", kKernel}, Meta{"vendor", vendor}, Meta{"arch", arch}}) {
    const char* found = bound->pack_->Meta(meta.key);
    if (found != meta.expected) {
      return bound->Foreign(Text("its ", meta.key, " is \"", found, "\", expected is \"", meta.expected, "\""));
    }
  }
  bound->is_amd_ = vendor == "amd";
  Status status = bound->BindAxes();
  if (status.ok()) status = bound->BindArguments();
  if (status.ok()) status = bound->BindVariants();
  if (status.ok()) *backend = std::move(bound);
  return status;
}

Status AttnFwdTriton::Foreign(const std::string& why) const {
  return Status(kInvalidImage, Text("the pack ", pack_->path(), " and this library do not belong together: ", why,
                                    ". Take both from one build"));
}

Status AttnFwdTriton::BindAxes() {
  bool found[kAxisCount] = {};
  uint64_t weight = 1;
  for (uint32_t place = pack_->axis_count(); place-- > 0;) {
    const char* name = pack_->axis_name(place);
    const auto* known = std::find_if(std::begin(kAxisNames), std::end(kAxisNames),
                                     [&](const char* candidate) { return strcmp(candidate, name) == 0; });
    const auto axis = known - std::begin(kAxisNames);
    if (axis == kAxisCount) return Foreign(Text("the library does not know the axis ", name));
    if (found[axis]) return Foreign(Text("the axis ", name, " is there twice"));
    found[axis] = true;
    places_[axis] = place;
    weights_[axis] = weight;
    weight *= pack_->axis_value_count(place);
  }
  for (int axis = 0; axis < kAxisCount; ++axis) {
    if (!found[axis]) return Foreign(Text("it has no axis ", kAxisNames[axis]));
  }
  for (uint32_t digit = 0; digit < pack_->axis_value_count(places_[kHeadDim]); ++digit) {
    const char* value = pack_->axis_value(places_[kHeadDim], digit);
    char* end = nullptr;
    const long tile = strtol(value, &end, 10);
    if (*value == '\0' || *end != '\0' || tile < 1 || tile > 65536) {
      return Foreign(Text("\"", value, "\" is no head_dim"));
    }
    head_dims_.push_back({tile, digit});
  }
  std::sort(head_dims_.begin(), head_dims_.end(), [](const HeadDim& a, const HeadDim& b) { return a.tile < b.tile; });
  return Status();
}

Status AttnFwdTriton::BindArguments() {
  for (uint32_t i = 0; i < pack_->argument_count(); ++i) {
    const Pack::Argument argument = pack_->argument(i);
    const auto* known = std::find_if(std::begin(kKnown), std::end(kKnown),
                                     [&](const Known& k) { return strcmp(k.name, argument.name) == 0; });
    if (known == std::end(kKnown)) {
      return Foreign(Text("the library does not know the kernel argument ", argument.name));
    }
    const std::string type = argument.type;
    Binding binding{static_cast<uint8_t>(known - std::begin(kKnown)), Type::kPointer};
    if (known->kind == Kind::kPointer && type[0] == '*') {
      binding.type = Type::kPointer;
    } else if (known->kind == Kind::kInteger && type == "i32") {
      binding.type = Type::kI32;
    } else if (known->kind == Kind::kInteger && type == "i64") {
      binding.type = Type::kI64;
    } else if (known->kind == Kind::kReal && type == "fp32") {
      binding.type = Type::kFp32;
    } else {
      return Foreign(Text("the kernel argument ", argument.name, " has type \"", type, "\""));
    }
    bindings_.push_back(binding);
  }
  for (uint32_t i = 0; i < pack_->functional_count(); ++i) {
    const uint32_t count = pack_->functional(i).argument_count;
    if (count > Launch::kMaxArguments) {
      return Foreign(Text("functional ", i, " has ", count, " arguments, the limit is ", Launch::kMaxArguments));
    }
  }
  return Status();
}

Status AttnFwdTriton::BindVariants() {
  for (uint32_t i = 0; i < pack_->variant_count(); ++i) {
    int32_t block_m = 0;
    if (!pack_->Constant(i, "BLOCK_M", &block_m) || block_m < 1) {
      return Foreign(Text("variant ", i, " (", pack_->variant(i).symbol, ") does not say its BLOCK_M"));
    }
    block_m_.push_back(block_m);
  }
  return Status();
}

int64_t AttnFwdTriton::Digit(Axis axis, const char* value) const {
  for (uint32_t digit = 0; digit < pack_->axis_value_count(places_[axis]); ++digit) {
    if (strcmp(pack_->axis_value(places_[axis], digit), value) == 0) return digit;
  }
  return -1;
}

std::string AttnFwdTriton::Values(Axis axis) const {
  std::string out;
  for (uint32_t digit = 0; digit < pack_->axis_value_count(places_[axis]); ++digit) {
    out += (digit ? ", " : "") + std::string(pack_->axis_value(places_[axis], digit));
  }
  return out;
}

Status AttnFwdTriton::Select(const AttnFwd& op, uint32_t* functional) const {
  const char* dtype_name = DTypeName(op.q.dtype);
  const int64_t dtype = Digit(kDType, dtype_name);
  if (dtype < 0) {
    return Status(kNotSupported, Text("q has dtype ", dtype_name, "; the pack ", pack_->path(), " holds ", Values(kDType)));
  }
  const int64_t causal = Digit(kCausal, op.is_windowed ? "1" : "0");
  if (causal < 0) {
    return Status(kNotSupported, Text("the call is ", op.is_windowed ? "" : "not ", "windowed; the pack ", pack_->path(),
                                      " holds causal = ", Values(kCausal)));
  }
  const int64_t head_dim_qk = op.q.sizes[3], head_dim_vo = op.v.sizes[3];
  const int64_t head_dim = std::max(head_dim_qk, head_dim_vo);
  if (head_dim > head_dims_.back().tile) {
    return Status(kNotSupported, Text("head_dim is ", head_dim, " (", head_dim_qk, " of q and k, ", head_dim_vo,
                                      " of v and out); the pack ", pack_->path(), " holds up to ", head_dims_.back().tile));
  }
  const bool is_aligned = IsAligned(op);
  for (const HeadDim& candidate : head_dims_) {
    // A tile that the declaration leaves out for this arch is served by the next one.
    if (candidate.tile < head_dim) continue;
    const bool is_exact = candidate.tile == head_dim_qk && candidate.tile == head_dim_vo;
    for (const char* layout : {"aligned", "any"}) {
      if (layout[1] == 'l' && !(is_exact && is_aligned)) continue;
      const int64_t digit = Digit(kLayout, layout);
      if (digit < 0) continue;
      const int64_t found = pack_->FindFunctional(dtype * weights_[kDType] + candidate.digit * weights_[kHeadDim] +
                                                  causal * weights_[kCausal] + digit * weights_[kLayout]);
      if (found < 0) continue;
      *functional = static_cast<uint32_t>(found);
      return Status();
    }
  }
  return Status(kNotBuilt, Text("the pack ", pack_->path(), " was built without a kernel for dtype ", dtype_name,
                                ", head_dim ", head_dim, op.is_windowed ? ", windowed" : ", not windowed",
                                is_aligned ? "" : ", unaligned", "; build it with this functional"));
}

Status AttnFwdTriton::Make(const AttnFwd& op, Plan* plan) const {
  plan->launch_count = 0;
  Launch& launch = plan->launches[0];
  if (IsEmpty(op)) return Status();
  if (Status status = Select(op, &launch.functional); !status.ok()) return status;

  const Pack::Functional functional = pack_->functional(launch.functional);
  const int64_t batch = op.q.sizes[0], num_head_q = op.q.sizes[1], seqlen_q = op.q.sizes[2];
  launch.pack = pack_.get();
  launch.variant = pack_->Choose(functional, seqlen_q);
  const Pack::Variant variant = pack_->variant(launch.variant);
  launch.threads = variant.threads;
  launch.shared = variant.shared;

  const int64_t block_m = block_m_[launch.variant];
  const int64_t tiles = (seqlen_q + block_m - 1) / block_m;
  const int64_t limit = is_amd_ ? std::min<int64_t>(kMaxGrid, kMaxThreadsOfHip / variant.threads) : kMaxGrid;
  if (tiles * num_head_q > limit || tiles * num_head_q * batch > limit) {
    return Status(kNotSupported, Text("q has sizes ", Tuple(op.q.sizes, 4), ", which take ", tiles, " * ", num_head_q, " * ",
                                      batch, " work groups; the GPU can be given ", limit, " at once. Split the batch"));
  }
  launch.grid = static_cast<uint32_t>(tiles * num_head_q * batch);

  AnyValue values[kValueCount];
  values[kQ].pointer = op.q.data;
  values[kK].pointer = op.k.data;
  values[kV].pointer = op.v.data;
  values[kOut].pointer = op.out.data;
  values[kL].pointer = op.logsumexp.data;
  values[kSmScale].real = op.sm_scale;
  SetStrides(op.q, values + kStrideQz);
  SetStrides(op.k, values + kStrideKz);
  SetStrides(op.v, values + kStrideVz);
  SetStrides(op.out, values + kStrideOz);
  values[kNumHeadQ].integer = num_head_q;
  values[kNumHeadK].integer = op.k.sizes[1];
  values[kSeqlenQ].integer = seqlen_q;
  values[kSeqlenK].integer = op.k.sizes[2];
  values[kHeadDimQk].integer = op.q.sizes[3];
  values[kHeadDimVo].integer = op.v.sizes[3];
  values[kWindowLeft].integer = op.is_windowed ? op.window_left : 0;
  values[kWindowRight].integer = op.is_windowed ? op.window_right : 0;
  values[kLseScale].real = kNaturalLogarithm;
  values[kStoreLse].integer = op.logsumexp.data != nullptr;
  values[kGlobalScratch].pointer = nullptr;
  values[kProfileScratch].pointer = nullptr;

  launch.argument_count = static_cast<int>(functional.argument_count);
  for (int i = 0; i < launch.argument_count; ++i) {
    const Binding binding = bindings_[functional.first_argument + i];
    const AnyValue& value = values[binding.value];
    Argument& argument = launch.arguments[i];
    argument.name = kKnown[binding.value].name;
    switch (binding.type) {
      case Type::kPointer: argument.value.pointer = value.pointer; break;
      case Type::kI64: argument.value.i64 = value.integer; break;
      case Type::kFp32: argument.value.fp32 = value.real; break;
      case Type::kI32:
        argument.value.i32 = static_cast<int32_t>(value.integer);
        if (argument.value.i32 != value.integer) {
          return Status(kNotSupported, Text(argument.name, " is ", value.integer, "; the kernel reads it in 32 bits"));
        }
        break;
    }
  }
  plan->launch_count = 1;
  return Status();
}

}  // namespace aotriton::dispatcher
