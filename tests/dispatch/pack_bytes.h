// The bytes of a pack file, for tests that damage one.
#ifndef AOTRITON_TESTS_DISPATCH_PACK_BYTES_H_
#define AOTRITON_TESTS_DISPATCH_PACK_BYTES_H_

#include <lzma.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace pack_bytes {

inline constexpr size_t kIndexOffset = 64;

inline uint32_t Word(const std::string& bytes, size_t offset) {
  uint32_t value;
  memcpy(&value, bytes.data() + offset, 4);
  return value;
}

inline void SetWord(std::string* bytes, size_t offset, uint32_t value) { memcpy(bytes->data() + offset, &value, 4); }

// Makes the CRC right again, so that what lies behind it is reached.
inline void Seal(std::string* bytes) {
  const uint64_t size = Word(*bytes, 20);
  if (kIndexOffset + size > bytes->size()) return;
  SetWord(bytes, 24, lzma_crc32(reinterpret_cast<const uint8_t*>(bytes->data()) + kIndexOffset, size, 0));
}

}  // namespace pack_bytes

#endif  // AOTRITON_TESTS_DISPATCH_PACK_BYTES_H_
