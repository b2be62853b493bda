// Unpacks one .xz stream of untrusted bytes.
#ifndef AOTRITON_DISPATCHER_XZ_H_
#define AOTRITON_DISPATCHER_XZ_H_

#include <cstddef>
#include <string>

namespace aotriton::dispatcher {

// Fills exactly `size` bytes at `out`. Returns "" or what is wrong with `input`: damage (the
// stream's own check is verified), another length, bytes behind the stream, a memory need over
// the limit.
std::string DecodeXz(const void* input, size_t input_size, void* out, size_t size);

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_XZ_H_
