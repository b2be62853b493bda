// Reads a pack: the code objects of one kernel for one arch. docs/pack_format.md is the format.
//
// A pack is untrusted: Open() checks every number of the index against what it points into, so
// that everything behind it reads without a check. The index is read into memory, not mapped:
// then the bytes that were checked are the bytes that are used, and a file that is overwritten
// in place later costs an error of one load, not a SIGBUS. Code objects are read and unpacked
// when one is asked for; of a functional's blob nothing but that code object is kept.
#ifndef AOTRITON_DISPATCHER_PACK_H_
#define AOTRITON_DISPATCHER_PACK_H_

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "dispatcher/status.h"

namespace aotriton::dispatcher {

// Bytes without the zero fill of std::vector: a record may announce a large size and lie.
struct Bytes {
  std::unique_ptr<unsigned char[]> data;
  size_t size = 0;
};

class Pack {
 public:
  struct Functional {
    uint32_t number, blob;
    uint32_t first_argument, argument_count;
    uint32_t first_variant, variant_count;
    uint32_t first_choice, choice_count;
  };
  struct Argument {
    const char* name;
    const char* type;
  };
  struct Variant {
    const char* symbol;
    uint32_t offset, size;  // of the code object in its functional's unpacked blob
    uint32_t threads, shared;
    const char* hash;
  };
  static constexpr uint32_t kUnbounded = 4294967295u;
  // A row of the tuning table: its variant is for calls that keep all its bounds.
  struct Choice {
    uint32_t max_seqlen_q, max_seqlen_k;  // kUnbounded: of any length
    uint32_t min_fill;  // percent of the GPU's multiprocessors that the variant's work groups fill
    uint32_t variant;
  };

  // Failures: kFileNotFound if there is no such file, kInvalidImage if it is not an intact pack.
  static Status Open(const std::string& path, std::shared_ptr<const Pack>* pack);
  // A pack in memory that outlives it, e.g. in the library itself; `name` takes the place of the path.
  static Status Open(const std::string& name, const unsigned char* bytes, size_t size, std::shared_ptr<const Pack>* pack);

  ~Pack();
  Pack(const Pack&) = delete;
  Pack& operator=(const Pack&) = delete;

  const std::string& path() const { return path_; }

  // The value of a META key; "" if the pack has none.
  const char* Meta(const char* key) const;

  uint32_t axis_count() const { return axes_.count; }
  const char* axis_name(uint32_t axis) const { return String(Word(axes_, axis, 0)); }
  uint32_t axis_value_count(uint32_t axis) const { return Word(axes_, axis, 2); }
  const char* axis_value(uint32_t axis, uint32_t value) const {
    return String(Word(values_, Word(axes_, axis, 1) + value, 0));
  }

  uint32_t functional_count() const { return functionals_.count; }
  Functional functional(uint32_t index) const;
  // The index of the functional with this number; -1 if the pack does not have it.
  int64_t FindFunctional(uint64_t number) const;

  // Indexes of these count from the start of their section.
  uint32_t argument_count() const { return arguments_.count; }
  uint32_t variant_count() const { return variants_.count; }
  Argument argument(uint32_t index) const;
  Variant variant(uint32_t index) const;
  bool Constant(uint32_t variant, const char* name, int32_t* value) const;

  // The first of a functional's choices whose bounds hold is taken; its last one has no bounds.
  Choice choice(const Functional& functional, uint32_t row) const;

  // For people: "dtype=bf16 head_dim=64 causal=0", "BLOCK_M=128 BLOCK_N=64".
  std::string DescribeFunctional(uint32_t index) const;
  std::string DescribeConfig(uint32_t variant) const;

  // Whether its file is no longer the one that was opened.
  bool IsReplaced() const;

  // Unpacks the code object of a variant of `functional`.
  Status LoadCode(const Functional& functional, uint32_t variant, Bytes* code) const;

 private:
  struct Section {
    uint32_t offset = 0;  // in index_
    uint32_t record_size = 0;
    uint32_t count = 0;
  };

  explicit Pack(std::string path) : path_(std::move(path)) {}

  static Status Finish(std::shared_ptr<Pack> opened, std::shared_ptr<const Pack>* pack);

  // Each returns "" or what is wrong.
  std::string Examine();
  std::string ReadAt(uint64_t offset, void* out, size_t size) const;
  std::string ReadIndex();
  std::string FindSections(uint32_t section_count);
  std::string CheckStrings();
  std::string CheckAxes() const;
  std::string CheckFunctionals() const;
  std::string CheckVariants() const;
  std::string CheckBlobs() const;

  uint32_t Load32(size_t offset) const;
  uint32_t Word(const Section& section, uint32_t record, uint32_t word) const {
    return Load32(section.offset + size_t{section.record_size} * record + 4 * word);
  }
  const char* String(uint32_t offset) const {
    return reinterpret_cast<const char*>(index_.data.get()) + strings_.offset + offset;
  }

  std::string path_;
  int file_ = -1;                         // -1: the pack is in memory
  const unsigned char* bytes_ = nullptr;  // there
  uint64_t file_size_ = 0;
  struct stat opened_ = {};
  Bytes index_;  // index_size bytes from kIndexOffset on
  Section strings_, meta_, axes_, values_, functionals_, arguments_, variants_, constants_, choices_, blobs_;
};

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_PACK_H_
