// Joins values into one text, for messages.
#ifndef AOTRITON_DISPATCHER_TEXT_H_
#define AOTRITON_DISPATCHER_TEXT_H_

#include <cstdint>
#include <sstream>
#include <string>

namespace aotriton::dispatcher {

template <typename... Values>
std::string Text(const Values&... values) {
  std::ostringstream out;
  out.imbue(std::locale::classic());  // a caller's locale may write 1,000 for 1000
  (out << ... << values);
  return out.str();
}

// "(2, 16, 4096, 128)"
inline std::string Tuple(const int64_t* values, int count) {
  std::string out = "(";
  for (int i = 0; i < count; ++i) out += (i ? ", " : "") + std::to_string(values[i]);
  return out + ")";
}

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_TEXT_H_
