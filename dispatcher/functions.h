// The code objects that were loaded, each once for a place.
#ifndef AOTRITON_DISPATCHER_FUNCTIONS_H_
#define AOTRITON_DISPATCHER_FUNCTIONS_H_

#include "dispatcher/driver/driver.h"
#include "dispatcher/plan.h"
#include "dispatcher/status.h"

namespace aotriton::dispatcher {

// The function of `launch` in the current place, which must be `place`. The first call for a
// code object loads it; later ones only look it up. A failure is not remembered.
Status LoadFunction(Driver* driver, const Place& place, const Launch& launch, void** function);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_FUNCTIONS_H_
