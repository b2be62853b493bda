// Counts what the process allocates by operator new.
#ifndef AOTRITON_TESTS_DISPATCH_ALLOCATIONS_H_
#define AOTRITON_TESTS_DISPATCH_ALLOCATIONS_H_

int AllocationsOfThisThread();

#endif  // AOTRITON_TESTS_DISPATCH_ALLOCATIONS_H_
