// From a valid call to its plan: what each backend launches.
#ifndef AOTRITON_DISPATCHER_BACKENDS_H_
#define AOTRITON_DISPATCHER_BACKENDS_H_

#include <string>

#include "dispatcher/attn_bwd.h"
#include "dispatcher/attn_fwd.h"
#include "dispatcher/dropout_rng.h"
#include "dispatcher/encoded_softmax.h"
#include "dispatcher/kernel_pack.h"
#include "dispatcher/plan.h"
#include "dispatcher/status.h"

namespace aotriton::dispatcher {

// Each appends its launches to `plan`.

// The backend "hopper": whether it can take a valid call, if its pack holds a kernel for it. Else `why` is told the
// reason; it may be null.
bool CanTakeHopper(const AttnFwd& op, std::string* why);

// Whether hopper is the faster backend for a call that it can take; `why` as above. By measurements on an H200
// (tests/gpu/bench.py): a tile of fewer rows or keys wastes less on few queries and on narrow windows.
bool IsFasterOnHopper(const AttnFwd& op, std::string* why);

// kNotBuilt if the pack has no kernel for the call.
Status PlanAttnFwdHopper(const AttnFwd& op, const KernelPack& kernel, Plan* plan);

// The backend "triton".
// Whether a call may take the persistent schedule: it gives a counter, has a window and neither bias nor
// dropout, and keeps the promises of the layout "aligned".
bool WantsPersistent(const AttnFwd& op);

// `persistent` is null if the call does not want it or there is no pack of it; a dtype or head_dim that it
// lacks is served by attn_fwd.
Status PlanAttnFwd(const AttnFwd& op, const KernelPack& attn_fwd, const KernelPack* persistent, Plan* plan);

Status PlanEncodedSoftmax(const EncodedSoftmax& op, const KernelPack& kernel, Plan* plan);

Status PlanDropoutRng(const DropoutRng& op, const KernelPack& kernel, Plan* plan);

// The backend "triton_split". delta is there.
Status PlanBwdSplit(const AttnBwd& op, const KernelPack& preprocess, const KernelPack& dkdv, const KernelPack& dq, Plan* plan);

// The backend "triton_fused".
Status PlanBwdFused(const AttnBwd& op, const KernelPack& fused, Plan* plan);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_BACKENDS_H_
