#include "simulator/memory.h"

#include <cstring>

namespace simulator {
namespace {

// Between blocks, so that to run over the end of one is not to run into the next.
constexpr size_t kGap = 4096;
constexpr size_t kAlignment = 256;

}  // namespace

uintptr_t Memory::Allocate(size_t size) {
  Owned owned;
  owned.bytes.reset(new uint8_t[size + 2 * kGap + kAlignment]);
  memset(owned.bytes.get(), 0xa5, size + 2 * kGap + kAlignment);
  owned.defined.reset(new uint8_t[size]());
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(owned.bytes.get()) + kGap + kAlignment - 1) / kAlignment * kAlignment;
  blocks_[begin] = {begin, begin + size, owned.defined.get()};
  owned_[begin] = std::move(owned);
  return begin;
}

bool Memory::Free(uintptr_t address) {
  owned_.erase(address);
  return blocks_.erase(address) != 0;
}

void Memory::Register(const void* begin, size_t size) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  blocks_[address] = {address, address + size, nullptr};
}

const Memory::Block* Memory::Nearest(uintptr_t address) const {
  const auto above = blocks_.upper_bound(address);
  return above == blocks_.begin() ? nullptr : &std::prev(above)->second;
}

const Memory::Block* Memory::Find(uintptr_t address, size_t size) const {
  const Block* block = Nearest(address);
  return block != nullptr && address <= block->end && size <= block->end - address ? block : nullptr;
}

void Memory::SetDefined(uintptr_t address, size_t size) {
  const Block* block = Find(address, size);
  if (block != nullptr && block->defined != nullptr) memset(block->defined + (address - block->begin), 0xff, size);
}

void Memory::CopyDefined(uintptr_t to, uintptr_t from, size_t size) {
  const Block* target = Find(to, size);
  if (target == nullptr || target->defined == nullptr) return;
  const Block* source = Find(from, size);
  uint8_t* const flags = target->defined + (to - target->begin);
  if (source == nullptr || source->defined == nullptr) {
    memset(flags, 0xff, size);
  } else {
    memmove(flags, source->defined + (from - source->begin), size);
  }
}

}  // namespace simulator
