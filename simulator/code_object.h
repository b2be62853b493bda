#ifndef AOTRITON_SIMULATOR_CODE_OBJECT_H_
#define AOTRITON_SIMULATOR_CODE_OBJECT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace simulator {

struct KernelArgument {
  uint32_t offset, size;
  bool hidden;  // not the caller's: the runtime fills it
};

// One kernel of a code object: its descriptor and its metadata.
struct Kernel {
  std::string name;
  uint64_t entry;  // address in the code object
  uint32_t kernarg_size, group_segment_size, private_segment_size;
  uint32_t max_workgroup_size, wavefront_size;
  uint32_t vgpr_count, agpr_count, sgpr_count;
  std::vector<KernelArgument> arguments;

  // Of the descriptor, as the hardware reads them.
  uint32_t rsrc1, rsrc2, rsrc3;
  uint32_t properties;  // which user SGPRs are set
  uint32_t preload_words, preload_offset;

  uint32_t user_sgprs() const { return rsrc2 >> 1 & 0x1f; }
};

// An ELF file of the AMD GPU, in memory. Throws Fault if it is none.
class CodeObject {
 public:
  explicit CodeObject(std::vector<uint8_t> bytes);

  const std::string& arch() const { return arch_; }
  // The code object of a family runs on each of its chips.
  bool RunsOn(const std::string& device) const;
  const std::vector<Kernel>& kernels() const { return kernels_; }

  // The bytes as they lie in memory, segment by segment; gaps are zeros.
  const std::vector<uint8_t>& image() const { return image_; }
  // The executable part of the image.
  uint64_t code_begin() const { return code_begin_; }
  uint64_t code_end() const { return code_end_; }

  // The size that the headers say the file at `bytes` has, for a caller who has only a pointer.
  static size_t SizeOf(const void* bytes);

 private:
  std::string arch_;
  std::vector<Kernel> kernels_;
  std::vector<uint8_t> image_;
  uint64_t code_begin_ = 0, code_end_ = 0;
};

}  // namespace simulator

#endif
