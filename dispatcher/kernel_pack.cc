#include "dispatcher/kernel_pack.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

// The contract between kernel and library that this code implements: META `abi`.
constexpr char kAbi[] = "1";

constexpr int64_t kMaxBoxRows = 256;  // of TMA

constexpr int64_t kMaxGrid = 2147483647;
// HIP refuses a launch whose threads do not fit into 32 bits.
constexpr int64_t kMaxThreadsOfHip = 4294967295;

struct KnownAxis {
  const char* name;
  const char* values[5];  // by number: see DTypeNumber, no or yes, any or aligned; head_dim is open-ended
};

// In the order of Axis.
constexpr KnownAxis kKnownAxes[] = {
    {"dtype", {nullptr, "fp32", "fp16", "bf16", "i32"}},
    {"head_dim", {}},
    {"causal", {"0", "1"}},
    {"layout", {"any", "aligned"}},
    {"bias", {"0", "1"}},
    {"dropout", {"0", "1"}},
};
static_assert(std::size(kKnownAxes) == kAxisCount);
static_assert(kFloat32 == 1 && kFloat16 == 2 && kBFloat16 == 3, "they number the values of dtype");

int DTypeNumber(int32_t dtype) { return dtype == kInt32 ? 4 : dtype; }

constexpr uint8_t Bit(Axis axis) { return static_cast<uint8_t>(1 << axis); }
constexpr uint8_t kAttentionAxes = (1 << kAxisCount) - 1;

// "tensor_map<BLOCK_N>", "tensor_map<64>": the rows of a box. False for anything else.
bool ReadTensorMap(const std::string& type, uint32_t* box_rows) {
  constexpr char kPrefix[] = "tensor_map<";
  constexpr size_t kLength = sizeof(kPrefix) - 1;
  if (type.compare(0, kLength, kPrefix) != 0 || type.back() != '>') return false;
  const std::string rows = type.substr(kLength, type.size() - kLength - 1);
  *box_rows = 0;
  if (rows == "BLOCK_N") return true;
  char* end = nullptr;
  const long number = strtol(rows.c_str(), &end, 10);
  if (*end != '\0' || number < 1 || number > kMaxBoxRows) return false;
  *box_rows = static_cast<uint32_t>(number);
  return true;
}

int64_t Tiles(int64_t rows, int64_t block) { return (rows + block - 1) / block; }

}  // namespace

const Kernel kKernels[kKernelCount] = {
    {"attn_fwd", kForward, kAttentionAxes, true, false},
    {"attn_fwd_hopper", kForward, Bit(kDType) | Bit(kHeadDim) | Bit(kCausal), true, false, "sm_90"},
    {"attn_fwd_persistent", kForward, Bit(kDType) | Bit(kHeadDim), true, false},
    {"bwd_preprocess", kBackward, Bit(kDType) | Bit(kHeadDim) | Bit(kLayout), true, false},
    {"bwd_dkdv", kBackward, kAttentionAxes, false, true},
    {"bwd_dq", kBackward, kAttentionAxes, true, false},
    {"bwd_fused", kBackward, kAttentionAxes, true, true},
    {"debug_simulate_encoded_softmax", kDebug, Bit(kDType), true, false},
    {"debug_fill_dropout_rng", kRng, Bit(kDType), true, false},
};

Status KernelPack::Bind(std::shared_ptr<const Pack> pack, KernelId kernel, const std::string& vendor, const std::string& arch,
                        std::shared_ptr<const KernelPack>* bound) {
  std::shared_ptr<KernelPack> made(new KernelPack(std::move(pack), kKernels[kernel]));
  struct Meta {
    const char* key;
    std::string expected;
  };
  for (const Meta& meta : {Meta{"abi", kAbi}, Meta{"kernel", made->kernel_.name}, Meta{"vendor", vendor}, Meta{"arch", arch}}) {
    const char* found = made->pack_->Meta(meta.key);
    if (found != meta.expected) {
      return made->Foreign(Text("its ", meta.key, " is \"", found, "\", expected is \"", meta.expected, "\""));
    }
  }
  made->is_amd_ = vendor == "amd";
  Status status = made->BindAxes();
  if (status.ok()) status = made->BindArguments();
  if (status.ok()) status = made->BindVariants();
  if (status.ok()) *bound = std::move(made);
  return status;
}

Status KernelPack::Foreign(const std::string& why) const {
  return Status(kInvalidImage, Text("the pack ", pack_->path(), ", of version ", pack_->Meta("version"),
                                    ", and this library, of version " AOTRITON_RELEASE ", do not belong together: ", why,
                                    ". Take both from one build"));
}

Status KernelPack::BindAxes() {
  uint8_t found = 0;
  uint64_t weight = 1;
  for (uint32_t place = pack_->axis_count(); place-- > 0;) {
    const char* name = pack_->axis_name(place);
    const auto* known = std::find_if(std::begin(kKnownAxes), std::end(kKnownAxes),
                                     [&](const KnownAxis& candidate) { return strcmp(candidate.name, name) == 0; });
    const auto axis = static_cast<Axis>(known - std::begin(kKnownAxes));
    if (axis == kAxisCount || !Has(axis)) return Foreign(Text("the library does not know the axis ", name));
    if (found & Bit(axis)) return Foreign(Text("the axis ", name, " is there twice"));
    found |= Bit(axis);
    places_[axis] = place;
    weights_[axis] = weight;
    weight *= pack_->axis_value_count(place);
    for (int number = 0; number < kMaxNumbers; ++number) {
      digits_[axis][number] = -1;
      for (uint32_t digit = 0; digit < pack_->axis_value_count(place) && known->values[number] != nullptr; ++digit) {
        if (strcmp(pack_->axis_value(place, digit), known->values[number]) == 0) digits_[axis][number] = digit;
      }
    }
  }
  for (int axis = 0; axis < kAxisCount; ++axis) {
    if (Has(static_cast<Axis>(axis)) && !(found >> axis & 1)) return Foreign(Text("it has no axis ", kKnownAxes[axis].name));
  }
  return BindHeadDims();
}

Status KernelPack::BindHeadDims() {
  if (!Has(kHeadDim)) return Status();
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

Status KernelPack::BindArguments() {
  for (uint32_t i = 0; i < pack_->argument_count(); ++i) {
    const Pack::Argument argument = pack_->argument(i);
    const auto* known = std::find_if(std::begin(kKnownArguments), std::end(kKnownArguments), [&](const KnownArgument& k) {
      return strcmp(k.name, argument.name) == 0 && (k.ops & kernel_.op) != 0;
    });
    if (known == std::end(kKnownArguments)) {
      return Foreign(Text("the library does not know the kernel argument ", argument.name));
    }
    const std::string type = argument.type;
    Binding binding{static_cast<Value>(known - std::begin(kKnownArguments)), Type::kPointer};
    if (known->kind == Kind::kPointer && type[0] == '*') {
      binding.type = Type::kPointer;
    } else if (known->kind == Kind::kInteger && type == "i32") {
      binding.type = Type::kI32;
    } else if (known->kind == Kind::kInteger && type == "i64") {
      binding.type = Type::kI64;
    } else if (known->kind == Kind::kReal && type == "fp32") {
      binding.type = Type::kFp32;
    } else if (known->kind == Kind::kTensorMap && ReadTensorMap(type, &binding.box_rows)) {
      binding.type = Type::kTensorMap;
    } else {
      return Foreign(Text("the kernel argument ", argument.name, " has type \"", type, "\""));
    }
    bindings_.push_back(binding);
  }
  for (uint32_t i = 0; i < pack_->functional_count(); ++i) {
    const Pack::Functional functional = pack_->functional(i);
    const uint32_t count = functional.argument_count;
    if (count > Launch::kMaxArguments) {
      return Foreign(Text("functional ", i, " has ", count, " arguments, the limit is ", Launch::kMaxArguments));
    }
    num_programs_.push_back(-1);
    tile_counters_.push_back(-1);
    int maps = 0;
    for (uint32_t a = 0; a < count; ++a) {
      const Binding& binding = bindings_[functional.first_argument + a];
      if (binding.value == kNumPrograms) num_programs_.back() = static_cast<int>(a);
      if (binding.value == kTileCounter) tile_counters_.back() = static_cast<int>(a);
      maps += binding.type == Type::kTensorMap;
    }
    if (maps > Launch::kMaxTensorMaps) {
      return Foreign(Text("functional ", i, " has ", maps, " tensor maps, the limit is ", Launch::kMaxTensorMaps));
    }
  }
  return Status();
}

Status KernelPack::BindVariants() {
  struct Block {
    const char* name;
    bool is_used;
    std::vector<int32_t>* of_variants;
  };
  const bool has_maps_of_k =
      std::any_of(bindings_.begin(), bindings_.end(), [](const Binding& b) { return b.type == Type::kTensorMap && b.box_rows == 0; });
  for (const Block& block : {Block{"BLOCK_M", kernel_.has_tiles_of_q, &block_m_},
                             Block{"BLOCK_N", kernel_.has_tiles_of_k || has_maps_of_k, &block_n_}}) {
    for (uint32_t i = 0; i < pack_->variant_count() && block.is_used; ++i) {
      int32_t rows = 0;
      if (!pack_->Constant(i, block.name, &rows) || rows < 1) {
        return Foreign(Text("variant ", i, " (", pack_->variant(i).symbol, ") does not say its ", block.name));
      }
      block.of_variants->push_back(rows);
    }
  }
  return Status();
}

std::string KernelPack::BuiltWith() const {
  return Text("; it was built with \"", pack_->Meta("settings"), "\"; --//:profile=full without a filter has every kernel");
}

std::string KernelPack::ValuesOf(Axis axis) const {
  std::string out;
  for (uint32_t digit = 0; digit < pack_->axis_value_count(places_[axis]); ++digit) {
    out += (digit ? ", " : "") + std::string(pack_->axis_value(places_[axis], digit));
  }
  return out;
}

int64_t KernelPack::Find(const Choice& choice, uint32_t head_dim_digit, bool is_aligned) const {
  // Layout "any" is compiled once, with a window, a bias and dropout that are switched off by arguments.
  const int numbers[kAxisCount] = {DTypeNumber(choice.dtype),
                                   0,
                                   choice.is_windowed || !is_aligned,
                                   is_aligned,
                                   choice.has_bias || !is_aligned,
                                   choice.has_dropout || !is_aligned};
  uint64_t functional = weights_[kHeadDim] * head_dim_digit;
  for (int axis = 0; axis < kAxisCount; ++axis) {
    if (axis == kHeadDim || !Has(static_cast<Axis>(axis))) continue;
    const int64_t digit = digits_[axis][numbers[axis]];
    if (digit < 0) return -1;
    functional += weights_[axis] * static_cast<uint64_t>(digit);
  }
  return pack_->FindFunctional(functional);
}

Status KernelPack::Select(const Choice& choice, uint32_t* functional) const {
  const char* dtype = kKnownAxes[kDType].values[DTypeNumber(choice.dtype)];
  if (digits_[kDType][DTypeNumber(choice.dtype)] < 0) {
    return Status(kNotSupported, Text("the dtype is ", dtype, "; the pack ", pack_->path(), " holds ", ValuesOf(kDType)));
  }
  if (!Has(kHeadDim)) {
    const int64_t found = Find(choice, 0, true);
    if (found >= 0) {
      *functional = static_cast<uint32_t>(found);
      return Status();
    }
    return Status(kNotBuilt, Text("the pack ", pack_->path(), " was built without a kernel for dtype ", dtype, BuiltWith()));
  }
  const int64_t head_dim = std::max(choice.head_dim_qk, choice.head_dim_vo);
  if (head_dim > head_dims_.back().tile) {
    return Status(kNotSupported, Text("head_dim is ", head_dim, " (", choice.head_dim_qk, " of q and k, ", choice.head_dim_vo,
                                      " of v and out); the pack ", pack_->path(), " holds up to ", head_dims_.back().tile));
  }
  for (const HeadDim& candidate : head_dims_) {
    // A tile that the declaration leaves out for this arch is served by the next one.
    if (candidate.tile < head_dim) continue;
    const bool is_exact = candidate.tile == choice.head_dim_qk && candidate.tile == choice.head_dim_vo;
    for (const bool is_aligned : {true, false}) {
      if (is_aligned && !(is_exact && choice.is_aligned)) continue;
      const int64_t found = Find(choice, candidate.digit, is_aligned);
      if (found < 0) continue;
      *functional = static_cast<uint32_t>(found);
      return Status();
    }
  }
  return Status(kNotBuilt, Text("the pack ", pack_->path(), " was built without a kernel for dtype ", dtype, ", head_dim ", head_dim,
                                choice.is_windowed ? ", windowed" : "", choice.has_bias ? ", with bias" : "",
                                choice.has_dropout ? ", with dropout" : "", choice.is_aligned ? "" : ", unaligned",
                                ", nor one of layout any", BuiltWith()));
}

int64_t KernelPack::FindExact(const Choice& choice) const {
  for (const HeadDim& candidate : head_dims_) {
    if (candidate.tile == choice.head_dim_qk && candidate.tile == choice.head_dim_vo) return Find(choice, candidate.digit, true);
  }
  return -1;
}

int64_t KernelPack::FindCovering(const Choice& choice) const {
  for (const HeadDim& candidate : head_dims_) {
    if (candidate.tile < std::max(choice.head_dim_qk, choice.head_dim_vo)) continue;
    if (const int64_t found = Find(choice, candidate.digit, true); found >= 0) return found;
  }
  return -1;
}

int64_t KernelPack::ProgramsOfASequence(uint32_t variant, const Extents& extents) const {
  int64_t programs = 0;
  if (kernel_.has_tiles_of_q) programs += Tiles(extents.max_seqlen_q, block_m_[variant]) * extents.num_head_q;
  if (kernel_.has_tiles_of_k) programs += Tiles(extents.max_seqlen_k, block_n_[variant]) * extents.num_head_k;
  return programs;
}

int64_t KernelPack::Tune(const Pack::Functional& functional, const Extents& extents, int multiprocessors, Launch* launch) const {
  for (launch->choice = 0;; ++launch->choice) {  // the last choice has no bounds
    const Pack::Choice choice = pack_->choice(functional, launch->choice);
    if (extents.max_seqlen_q > choice.max_seqlen_q || extents.max_seqlen_k > choice.max_seqlen_k) continue;
    const int64_t programs = ProgramsOfASequence(choice.variant, extents);
    const int64_t needed = (int64_t{choice.min_fill} * multiprocessors + 99) / 100;
    if (needed > 0 && programs < Tiles(needed, std::max<int64_t>(extents.sequences, 1))) continue;
    launch->variant = choice.variant;
    return programs;
  }
}

Status KernelPack::Add(const Choice& choice, const Extents& extents, const Values& values, Plan* plan) const {
  uint32_t functional = 0;
  if (Status status = Select(choice, &functional); !status.ok()) return status;
  return AddFunctional(functional, extents, values, plan);
}

Status KernelPack::AddFunctional(uint32_t index, const Extents& extents, const Values& values, Plan* plan) const {
  const Pack::Functional functional = pack_->functional(index);
  Launch& launch = plan->launches[plan->launch_count];
  launch.pack = pack_.get();
  launch.functional = index;
  const int64_t programs = Tune(functional, extents, plan->multiprocessors, &launch);
  const Pack::Variant variant = pack_->variant(launch.variant);
  launch.threads = variant.threads;
  launch.shared = variant.shared;
  if (programs == 0 || extents.sequences == 0) return Status();
  const int64_t limit = is_amd_ ? std::min<int64_t>(kMaxGrid, kMaxThreadsOfHip / variant.threads) : kMaxGrid;
  if (programs > limit / extents.sequences) {
    return Status(kNotSupported, Text(kernel_.name, " would take ", programs, " * ", extents.sequences,
                                      " work groups; the GPU can be given ", limit, " at once. Split the batch"));
  }
  launch.grid = static_cast<uint32_t>(programs * extents.sequences);

  launch.num_programs_argument = num_programs_[index];
  launch.tile_counter_argument = tile_counters_[index];
  launch.tensor_map_count = 0;
  launch.argument_count = static_cast<int>(functional.argument_count);
  for (int i = 0; i < launch.argument_count; ++i) {
    const Binding binding = bindings_[functional.first_argument + i];
    Argument& argument = launch.arguments[i];
    argument.name = kKnownArguments[binding.value].name;
    // On a little-endian host the first bytes of the widest are the value of each type.
    argument.value.i64 = values.bits(binding.value);
    if (binding.type == Type::kTensorMap) {
      const Tensor& t = *static_cast<const Tensor*>(argument.value.pointer);
      TensorMap& map = launch.tensor_maps[launch.tensor_map_count++];
      map.data = t.data;
      map.dtype = t.dtype;
      map.box_rows = binding.box_rows > 0 ? binding.box_rows : static_cast<uint32_t>(block_n_[launch.variant]);
      map.argument = i;
      for (int d = 0; d < 4; ++d) map.sizes[d] = t.sizes[d];
      for (int d = 0; d < 3; ++d) map.strides[d] = Stride(t, d);
    }
    if (binding.type == Type::kI32 && argument.value.i32 != argument.value.i64) {
      return Status(kNotSupported, Text(argument.name, " is ", argument.value.i64, "; the kernel reads it in 32 bits"));
    }
  }
  ++plan->launch_count;
  return Status();
}

}  // namespace aotriton::dispatcher
