#include "dispatcher/report.h"

#include <cstring>

#include "dispatcher/log.h"

namespace aotriton::dispatcher {
namespace {

thread_local char last_error[4096];

}  // namespace

int Remember(int code, const char* text) noexcept {
  const size_t length = strnlen(text, sizeof(last_error) - 1);
  memcpy(last_error, text, length);
  last_error[length] = '\0';
  if (code != kSuccess && IsLogged(LogLevel::kProblem)) WriteLine(last_error);
  return code;
}

const char* LastError() noexcept { return last_error; }

}  // namespace aotriton::dispatcher
