#ifndef AOTRITON_SIMULATOR_MEMORY_H_
#define AOTRITON_SIMULATOR_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace simulator {

// What kernels may address. A device address is the host's, so that callers' pointers need no translation.
// Of memory that it allocated itself it knows which bytes were ever written.
class Memory {
 public:
  struct Block {
    uintptr_t begin, end;
    uint8_t* defined;  // of each byte, its bits that have a value; nullptr: all
  };

  uintptr_t Allocate(size_t size);
  // False if nothing was allocated there.
  bool Free(uintptr_t address);
  // Memory of the caller, all of it defined. Unregister as Free.
  void Register(const void* begin, size_t size);

  // The block that holds all of [address, address + size), or nullptr.
  const Block* Find(uintptr_t address, size_t size) const;
  // A block that holds address, or the nearest below: for messages.
  const Block* Nearest(uintptr_t address) const;

  // For the copies and fills of the runtime.
  void SetDefined(uintptr_t address, size_t size);
  void CopyDefined(uintptr_t to, uintptr_t from, size_t size);

 private:
  struct Owned {
    std::unique_ptr<uint8_t[]> bytes, defined;
  };
  std::map<uintptr_t, Block> blocks_;
  std::map<uintptr_t, Owned> owned_;
};

}  // namespace simulator

#endif
