#ifndef AOTRITON_SIMULATOR_FAULT_H_
#define AOTRITON_SIMULATOR_FAULT_H_

#include <sstream>
#include <stdexcept>
#include <string>

namespace simulator {

// What a program did that real hardware forbids, leaves undefined, or that is not modelled.
class Fault : public std::runtime_error {
 public:
  template <typename... Parts>
  explicit Fault(const Parts&... parts) : std::runtime_error(Join(parts...)) {}

 private:
  template <typename... Parts>
  static std::string Join(const Parts&... parts) {
    std::ostringstream text;
    (text << ... << parts);
    return text.str();
  }
};

struct Hex {
  uint64_t value;
};

inline std::ostream& operator<<(std::ostream& out, Hex hex) {
  return out << "0x" << std::hex << hex.value << std::dec;
}

}  // namespace simulator

#endif
