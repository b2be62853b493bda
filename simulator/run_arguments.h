#ifndef AOTRITON_SIMULATOR_RUN_ARGUMENTS_H_
#define AOTRITON_SIMULATOR_RUN_ARGUMENTS_H_

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "simulator/code_object.h"
#include "simulator/memory.h"

namespace simulator {

// One argument of a kernel, as the command line has it: fp32=0.5, i32=7, null, fp16:1024:random.
struct RunArgument {
  std::string text, type;
  bool is_buffer = false;
  uint64_t count = 0;         // elements of the buffer
  uintptr_t address = 0;      // of the buffer
  std::vector<uint8_t> value, before;  // what the kernel is given; the buffer before the launch
};

// Reads an argument and makes its buffer. Throws Fault for what cannot be read.
RunArgument ReadArgument(const std::string& text, Memory* memory);

// The bytes of all arguments, as the metadata say they lie. Throws Fault if they are too few, too many or of another size.
std::vector<uint8_t> PackArguments(const Kernel& kernel, const std::vector<RunArgument>& arguments);

// What the kernel wrote: the first elements of each buffer that changed.
void PrintResults(std::ostream& out, const std::vector<RunArgument>& arguments);

}  // namespace simulator

#endif
