#include "dispatcher/relabel.h"

#include <algorithm>
#include <cstring>

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

// Of a 64-bit ELF header.
constexpr size_t kMachineOffset = 18;  // 2 bytes
constexpr size_t kFlagsOffset = 48;    // the lowest byte is the arch
constexpr size_t kHeaderSize = 64;
constexpr unsigned char kAmdGpu = 224;

// How the note of a code object names its arch.
std::string Target(const std::string& arch) { return "amdgcn-amd-amdhsa--" + arch; }

int MachOf(const std::string& name) {
  for (const platforms::Arch& arch : platforms::kArchs) {
    if (name == arch.name) return arch.mach;
  }
  return 0;
}

}  // namespace

Status Relabel(const std::string& from, const platforms::Arch& to, Bytes* code) {
  unsigned char* const bytes = code->data.get();
  unsigned char* const end = bytes + code->size;
  const bool is_of_amd = code->size >= kHeaderSize && memcmp(bytes, "\177ELF", 4) == 0 && bytes[kMachineOffset] == kAmdGpu;
  const std::string old_target = Target(from), new_target = Target(to.name);
  int renamed = 0;
  if (is_of_amd && bytes[kFlagsOffset] == MachOf(from) && old_target.size() == new_target.size()) {
    bytes[kFlagsOffset] = static_cast<unsigned char>(to.mach);
    for (unsigned char* at = bytes; (at = std::search(at, end, old_target.begin(), old_target.end())) != end; ++renamed) {
      std::copy(new_target.begin(), new_target.end(), at);
    }
  }
  return renamed > 0 ? Status() : Status(kInvalidImage, Text("it is no code object for ", from, ", which ", to.name, " could run"));
}

}  // namespace aotriton::dispatcher
