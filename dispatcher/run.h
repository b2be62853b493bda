// Carries out a call: checks it, finds its GPU and pack, plans it, loads and launches.
#ifndef AOTRITON_DISPATCHER_RUN_H_
#define AOTRITON_DISPATCHER_RUN_H_

#include "dispatcher/attn_bwd.h"
#include "dispatcher/attn_fwd.h"
#include "dispatcher/dropout_rng.h"
#include "dispatcher/encoded_softmax.h"
#include "dispatcher/status.h"

namespace aotriton::dispatcher {

enum class Goal {
  kCheck,    // would the call be accepted?
  kPrepare,  // and load what it needs
  kLaunch,   // and enqueue it
};

Status Run(const AttnFwd& op, void* stream, Goal goal);
Status Run(const AttnBwd& op, void* stream, Goal goal);
Status Run(const EncodedSoftmax& op, void* stream, Goal goal);
Status Run(const DropoutRng& op, void* stream, Goal goal);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_RUN_H_
