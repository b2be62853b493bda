// The border between the dispatcher and its callers: no exception passes it, and the text of a
// refusal waits behind it for whoever asks.
#ifndef AOTRITON_DISPATCHER_REPORT_H_
#define AOTRITON_DISPATCHER_REPORT_H_

#include <new>

#include "dispatcher/status.h"

namespace aotriton::dispatcher {

// Remembers a text for this thread (what fits into a fixed buffer: running out of memory is one
// of the things to report) and returns `code`.
int Remember(int code, const char* text) noexcept;
const char* LastError() noexcept;

// Runs one API call: `call` returns a Status; its code is the result.
template <typename Call>
int Report(const Call& call) noexcept {
  try {
    const Status status = call();
    return Remember(status.code(), status.text().c_str());
  } catch (const std::bad_alloc&) {
    return Remember(kOutOfMemory, "the host has no memory left");
  } catch (...) {
    return Remember(kUnknown, "an unexpected C++ exception stopped the call");
  }
}

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_REPORT_H_
