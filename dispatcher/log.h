// What the library tells on stderr, as AOTRITON_DEBUG_LEVEL asks: docs/finding_faults.md has the levels.
#ifndef AOTRITON_DISPATCHER_LOG_H_
#define AOTRITON_DISPATCHER_LOG_H_

#include "dispatcher/text.h"

namespace aotriton::dispatcher {

enum class LogLevel : int {
  kProblem = 1,  // refusals, what is passed over
  kOnce = 2,     // what happens once: driver, GPU, pack, module
  kCall = 3,     // every call, why its code objects were chosen, and its launches
};

// The environment is read at the first question: off costs a comparison.
bool IsLogged(LogLevel level) noexcept;

// One line, written at once, so that lines of several threads do not mix.
void WriteLine(const char* text) noexcept;

template <typename... Values>
void Log(LogLevel level, const Values&... values) {
  if (IsLogged(level)) WriteLine(Text(values...).c_str());
}

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_LOG_H_
