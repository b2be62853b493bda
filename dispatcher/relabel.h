// Gives a code object the name of another arch.
//
// Some archs run the same code, to the byte, and have different names (`code_of` of platforms/archs.bzl). Their
// code objects are stored once; but a GPU runtime refuses one that is labelled for another arch than its GPU's.
#ifndef AOTRITON_DISPATCHER_RELABEL_H_
#define AOTRITON_DISPATCHER_RELABEL_H_

#include <string>

#include "dispatcher/pack.h"
#include "dispatcher/status.h"
#include "platforms/archs.h"

namespace aotriton::dispatcher {

// Makes of `code`, an AMD code object for the arch `from`, what the compiler makes for `to`. kInvalidImage if it is none.
Status Relabel(const std::string& from, const platforms::Arch& to, Bytes* code);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_RELABEL_H_
