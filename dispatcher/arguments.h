// The arguments of all kernels: their names, and the values that a call gives them.
#ifndef AOTRITON_DISPATCHER_ARGUMENTS_H_
#define AOTRITON_DISPATCHER_ARGUMENTS_H_

#include <cstdint>

#include "dispatcher/attn_bwd.h"
#include "dispatcher/attn_fwd.h"
#include "dispatcher/dropout_rng.h"
#include "dispatcher/encoded_softmax.h"

namespace aotriton::dispatcher {

// The ops that give a value to an argument.
enum Ops : uint8_t { kForward = 1, kBackward = 2, kDebug = 4, kRng = 8, kAll = 15 };

enum class Kind : uint8_t { kPointer, kInteger, kReal, kTensorMap };

enum Value : uint8_t {
  kQ, kK, kV, kB, kOut, kL,
  kDO, kDQ, kDK, kDV, kDB, kDelta,
  kR,
  kSmScale,
  kStrideQz, kStrideQh, kStrideQm,
  kStrideKz, kStrideKh, kStrideKn,
  kStrideVz, kStrideVh, kStrideVn,
  kStrideOz, kStrideOh, kStrideOm,
  kStrideBz, kStrideBh, kStrideBm, kStrideBn,
  kStrideDoz, kStrideDoh, kStrideDom,
  kStrideDqz, kStrideDqh, kStrideDqm,
  kStrideDkz, kStrideDkh, kStrideDkn,
  kStrideDvz, kStrideDvh, kStrideDvn,
  kStrideDbz, kStrideDbh, kStrideDbm, kStrideDbn,
  kStrideRz, kStrideRh, kStrideRm, kStrideRn,
  kStrideLz, kStrideLh,
  kNumHeadQ, kMaxSeqlenQ, kMaxSeqlenK,
  kNumHeadK,
  kCuSeqlensQ, kCuSeqlensK, kSeqStartsQ, kSeqStartsK,
  kVarlenType, kHeadDimQk, kHeadDimVo, kWindowLeft, kWindowRight, kHasBias, kHasDropout,
  kHasDb,
  kDropoutP,
  kPhiloxSeed, kPhiloxOffset1,
  kPhiloxOffset2,
  kPhiloxSeedOutput, kPhiloxOffsetOutput,
  kSeedNumber, kOffsetNumber,
  kLseScale,
  kLseCompact,
  kStoreLse,
  kNumSequences,
  kNumPrograms,
  kPersistentCounter,
  kTileCounter,
  kMapQ, kMapK, kMapV, kMapOut,
  kUnread,
  kGlobalScratch, kProfileScratch,
  kValueCount,
};

struct KnownArgument {
  const char* name;
  Kind kind;
  uint8_t ops;
};

// In the order of Value.
extern const KnownArgument kKnownArguments[kValueCount];

// One table for all launches of a call: each kernel takes what it names.
class Values {
 public:
  explicit Values(const AttnFwd& op);
  explicit Values(const AttnBwd& op);
  explicit Values(const EncodedSoftmax& op);
  explicit Values(const DropoutRng& op);

  // The 8 bytes of the value, of whatever kind it is; of a tensor map the address of the op's Tensor.
  int64_t bits(Value value) const { return values_[value].integer; }

 private:
  void Set(const Attention& op);
  void Set(const Dropout& dropout);
  void SetScores(const Tensor& t);
  void SetStrides(const Tensor& t, Value first, int count);

  union Any {
    int64_t integer = 0;
    void* pointer;
    float real;
  };
  Any values_[kValueCount];
};

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_ARGUMENTS_H_
