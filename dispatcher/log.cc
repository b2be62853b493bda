#include "dispatcher/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

namespace aotriton::dispatcher {
namespace {

int ReadLevel() noexcept {
  const char* value = getenv("AOTRITON_DEBUG_LEVEL");
  if (value == nullptr || *value == '\0') return 0;
  if (value[0] >= '0' && value[0] <= '3' && value[1] == '\0') return value[0] - '0';
  char text[128];
  snprintf(text, sizeof(text), "AOTRITON_DEBUG_LEVEL is \"%.40s\"; it must be 0, 1, 2 or 3: nothing is logged", value);
  WriteLine(text);
  return 0;
}

}  // namespace

bool IsLogged(LogLevel level) noexcept {
  static const int most = ReadLevel();
  return static_cast<int>(level) <= most;
}

void WriteLine(const char* text) noexcept {
  const auto part = [](const char* bytes) { return iovec{const_cast<char*>(bytes), strlen(bytes)}; };
  const iovec line[] = {part("aotriton: "), part(text), part("\n")};
  // A log that cannot be written has nobody to be told.
  if (writev(STDERR_FILENO, line, 3) < 0) return;
}

}  // namespace aotriton::dispatcher
