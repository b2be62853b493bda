#include "dispatcher/xz.h"

#include <lzma.h>

#include "dispatcher/text.h"

namespace aotriton::dispatcher {
namespace {

// tools/pack writes dictionaries of 8 MiB, which need 9 MiB to decode. A file that asks for
// gigabytes is damaged or hostile.
constexpr uint64_t kMemoryLimit = uint64_t{128} << 20;

const char* Describe(lzma_ret result) {
  switch (result) {
    case LZMA_FORMAT_ERROR: return "it is not an .xz stream";
    case LZMA_OPTIONS_ERROR: return "it uses .xz options that this liblzma does not know";
    case LZMA_DATA_ERROR: return "its bytes are damaged (the .xz integrity check fails)";
    case LZMA_BUF_ERROR: return "it ends early or holds more than its record says";
    case LZMA_MEM_ERROR: return "there is not enough memory to decode it";
    case LZMA_MEMLIMIT_ERROR: return "it needs more than 128 MiB to decode";
    case LZMA_NO_CHECK:
    case LZMA_UNSUPPORTED_CHECK: return "it has no integrity check that this liblzma can verify";
    default: return "liblzma refuses it";
  }
}

}  // namespace

std::string DecodeXz(const void* input, size_t input_size, void* out, size_t size) {
  uint64_t memory_limit = kMemoryLimit;
  size_t read = 0, written = 0;
  const lzma_ret result = lzma_stream_buffer_decode(
      &memory_limit, LZMA_TELL_NO_CHECK | LZMA_TELL_UNSUPPORTED_CHECK, nullptr,
      static_cast<const uint8_t*>(input), &read, input_size, static_cast<uint8_t*>(out), &written, size);
  if (result != LZMA_OK) return Describe(result);
  if (read != input_size) return Text(input_size - read, " bytes follow its .xz stream");
  if (written != size) return Text("it unpacks to ", written, " bytes, its record says ", size);
  return "";
}

}  // namespace aotriton::dispatcher
