// In a file of its own: a compiler that sees both these and their uses takes free() for an error.
#include "tests/dispatch/allocations.h"

#include <cstdlib>
#include <new>

static thread_local int allocations = 0;

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }

int AllocationsOfThisThread() { return allocations; }
