// The code objects that were loaded, each once for a place.
#ifndef AOTRITON_DISPATCHER_FUNCTIONS_H_
#define AOTRITON_DISPATCHER_FUNCTIONS_H_

#include "dispatcher/driver/driver.h"
#include "dispatcher/plan.h"
#include "dispatcher/status.h"
#include "platforms/archs.h"

namespace aotriton::dispatcher {

struct Function {
  void* handle = nullptr;
  // How many work groups run at once on one multiprocessor; asked of persistent kernels only.
  uint32_t active_work_groups = 0;
};

// The function of `launch` in the current place, which must be `place`, a GPU of `arch`. The first call
// for a code object loads it; later ones only look it up. A failure is not remembered.
Status LoadFunction(Driver* driver, const Place& place, const platforms::Arch& arch, const Launch& launch, Function* function);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_FUNCTIONS_H_
