// Counters for kernels whose programs draw tile after tile: each int32, 0 before a launch and after it.
#ifndef AOTRITON_DISPATCHER_COUNTERS_H_
#define AOTRITON_DISPATCHER_COUNTERS_H_

#include <cstdint>

#include "dispatcher/driver/driver.h"
#include "dispatcher/status.h"

namespace aotriton::dispatcher {

// A counter of the current place, which must be `place`, for a launch on `stream`, that no launch uses which may run
// at the same time:
// - launches on one stream run one after another and share the stream's counter;
// - a launch that is captured into a graph runs whenever the graph does, so it gets a counter that is nobody else's.
//   (A graph runs on itself only if it was instantiated twice, and then its outputs are written twice at once, too.)
// Counters are never given back: 4 bytes for each stream and each captured launch.
Status FindCounter(Driver* driver, const Place& place, void* stream, int32_t** counter);

// After it FindCounter() for `stream` does not allocate, unless thousands of launches are captured in between.
Status PrepareCounter(Driver* driver, const Place& place, void* stream);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_COUNTERS_H_
