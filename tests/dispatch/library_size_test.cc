// What the library as shipped takes of a disk and of the address space: without debug information, 1 MiB.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/dispatch/support.h"

namespace {

TEST(LibrarySizeTest, StaysUnderAMebibyte) {
  const std::string bytes = support::ReadFile("libaotriton_v2.so");
  Elf64_Ehdr header;
  ASSERT_GE(bytes.size(), sizeof(header));
  memcpy(&header, bytes.data(), sizeof(header));
  uint64_t loaded = 0;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    memcpy(&segment, bytes.data() + header.e_phoff + sizeof(segment) * i, sizeof(segment));
    if (segment.p_type == PT_LOAD) loaded += segment.p_filesz;
  }
  EXPECT_GT(loaded, uint64_t{100} << 10);
  EXPECT_LE(loaded, uint64_t{1} << 20);
}

}  // namespace
