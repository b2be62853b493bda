#include "dispatcher/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "dispatcher/text.h"
#include "dispatcher/xz.h"

namespace aotriton::dispatcher {
namespace {

constexpr char kMagic[] = "AOTPACK2";  // the digit is the version of the format
constexpr uint32_t kIndexOffset = 64;
constexpr uint32_t kSectionSize = 16;

// Far over any real pack (the largest index we have built is 3 MB), far under what hurts.
constexpr uint32_t kMaxIndexSize = 256u << 20;
constexpr uint32_t kMaxBlobSize = 1u << 30;
constexpr uint32_t kMaxAxes = 32;
constexpr uint32_t kMaxThreads = 1024;

uint32_t Read32(const unsigned char* bytes) {
  return uint32_t{bytes[0]} | uint32_t{bytes[1]} << 8 | uint32_t{bytes[2]} << 16 | uint32_t{bytes[3]} << 24;
}

uint64_t Read64(const unsigned char* bytes) { return Read32(bytes) | uint64_t{Read32(bytes + 4)} << 32; }

Bytes Allocate(size_t size) { return {std::unique_ptr<unsigned char[]>(new (std::nothrow) unsigned char[size]), size}; }

// Whether [first, first + count) lies in a section of `limit` records.
bool Inside(uint32_t first, uint32_t count, uint32_t limit) { return uint64_t{first} + count <= limit; }

std::string Outside(const char* what, uint32_t index, const char* field, uint64_t value, uint64_t limit) {
  return Text("is damaged: ", what, " ", index, " has ", field, " ", value, ", the limit is ", limit);
}

}  // namespace

Status Pack::Open(const std::string& path, std::shared_ptr<const Pack>* pack) {
  std::shared_ptr<Pack> opened(new Pack(path));
  opened->file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened->file_ < 0) {
    const int error = errno;
    return Status(error == ENOENT || error == ENOTDIR ? kFileNotFound : kInvalidImage,
                  Text("the pack ", path, " cannot be opened: ", strerror(error)));
  }
  return Finish(std::move(opened), pack);
}

Status Pack::Open(const std::string& name, const unsigned char* bytes, size_t size, std::shared_ptr<const Pack>* pack) {
  std::shared_ptr<Pack> opened(new Pack(name));
  opened->bytes_ = bytes;
  opened->file_size_ = size;
  return Finish(std::move(opened), pack);
}

Status Pack::Finish(std::shared_ptr<Pack> opened, std::shared_ptr<const Pack>* pack) {
  std::string problem = opened->Examine();
  if (problem.empty()) problem = opened->ReadIndex();
  if (problem.empty()) problem = opened->CheckAxes();
  if (problem.empty()) problem = opened->CheckFunctionals();
  if (problem.empty()) problem = opened->CheckVariants();
  if (problem.empty()) problem = opened->CheckBlobs();
  if (!problem.empty()) {
    return Status(kInvalidImage, Text("the pack ", opened->path_, " ", problem, ". Copy or build it again"));
  }
  *pack = std::move(opened);
  return Status();
}

Pack::~Pack() {
  if (file_ >= 0) close(file_);
}

uint32_t Pack::Load32(size_t offset) const { return Read32(index_.data.get() + offset); }

std::string Pack::Examine() {
  if (file_ < 0) return "";
  if (fstat(file_, &opened_) != 0) return Text("cannot be examined: ", strerror(errno));
  if (!S_ISREG(opened_.st_mode)) return "is not a regular file";
  file_size_ = static_cast<uint64_t>(opened_.st_size);
  return "";
}

bool Pack::IsReplaced() const {
  struct stat now;
  if (file_ < 0 || stat(path_.c_str(), &now) != 0) return false;
  return now.st_dev != opened_.st_dev || now.st_ino != opened_.st_ino || now.st_size != opened_.st_size ||
         now.st_mtim.tv_sec != opened_.st_mtim.tv_sec || now.st_mtim.tv_nsec != opened_.st_mtim.tv_nsec;
}

std::string Pack::ReadAt(uint64_t offset, void* out, size_t size) const {
  auto* to = static_cast<unsigned char*>(out);
  if (file_ < 0) {
    memcpy(to, bytes_ + offset, size);  // in bounds: unlike a file, memory keeps the size that was checked
    return "";
  }
  while (size > 0) {
    const ssize_t got = pread(file_, to, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Text("cannot be read: ", strerror(errno));
    if (got == 0) return Text("ends at byte ", offset, "; it is truncated");
    to += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return "";
}

std::string Pack::ReadIndex() {
  unsigned char header[kIndexOffset];
  if (file_size_ < sizeof(header)) {
    return Text("has ", file_size_, " bytes, less than a pack's header of ", sizeof(header), "; it is truncated or no pack");
  }
  std::string problem = ReadAt(0, header, sizeof(header));
  if (!problem.empty()) return problem;
  if (memcmp(header, kMagic, 7) != 0 || header[7] < '0' || header[7] > '9') {
    return Text("is not a pack: it does not start with ", kMagic);
  }
  if (header[7] != kMagic[7]) {
    const std::string found(reinterpret_cast<const char*>(header), 8);
    return Text("has format ", found, "; this library, version " AOTRITON_RELEASE ", reads ", kMagic);
  }
  const uint64_t announced = Read64(header + 8);
  if (announced != file_size_) {
    return Text("has ", file_size_, " bytes, its header says ", announced, "; it is truncated or damaged");
  }
  const uint32_t index_offset = Read32(header + 16), index_size = Read32(header + 20);
  if (index_offset != kIndexOffset) return Text("is damaged: its index starts at ", index_offset, ", not at ", kIndexOffset);
  if (index_size > file_size_ - kIndexOffset || index_size > kMaxIndexSize) {
    return Text("is damaged: its index has ", index_size, " bytes, the limit is ",
                std::min<uint64_t>(file_size_ - kIndexOffset, kMaxIndexSize));
  }
  index_ = Allocate(index_size);
  if (index_.data == nullptr) return Text("has an index of ", index_size, " bytes, and there is no memory for it");
  problem = ReadAt(kIndexOffset, index_.data.get(), index_size);
  if (!problem.empty()) return problem;
  if (lzma_crc32(index_.data.get(), index_size, 0) != Read32(header + 24)) {
    return "is damaged: the CRC-32 of its index differs from its header's";
  }
  problem = FindSections(Read32(header + 28));
  return problem.empty() ? CheckStrings() : problem;
}

std::string Pack::FindSections(uint32_t section_count) {
  struct Known {
    const char* tag;
    uint32_t record_size;
    Section* section;
  };
  const Known known[] = {
      {"STRS", 1, &strings_},    {"META", 8, &meta_},      {"AXES", 12, &axes_},      {"AVAL", 4, &values_},
      {"FUNC", 32, &functionals_}, {"ARGS", 8, &arguments_}, {"VARI", 32, &variants_}, {"CONS", 8, &constants_},
      {"CHOI", 16, &choices_},    {"BLOB", 16, &blobs_},
  };
  const uint64_t table_size = uint64_t{section_count} * kSectionSize;
  if (table_size > index_.size) return Text("is damaged: ", section_count, " sections do not fit into its index");
  bool found[std::size(known)] = {};
  for (uint32_t i = 0; i < section_count; ++i) {
    const unsigned char* entry = index_.data.get() + size_t{i} * kSectionSize;
    for (size_t k = 0; k < std::size(known); ++k) {
      if (memcmp(entry, known[k].tag, 4) != 0) continue;  // a section of a later format is skipped
      const uint32_t record_size = Read32(entry + 4), count = Read32(entry + 8), offset = Read32(entry + 12);
      if (found[k]) return Text("is damaged: it has two sections ", known[k].tag);
      if (record_size != known[k].record_size) {
        return Text("is damaged: records of ", known[k].tag, " have ", record_size, " bytes, not ", known[k].record_size);
      }
      if (offset % 8 != 0 || offset < kIndexOffset + table_size ||
          offset - kIndexOffset + uint64_t{record_size} * count > index_.size) {
        return Text("is damaged: section ", known[k].tag, " (offset ", offset, ", ", count, " records) leaves the index");
      }
      *known[k].section = {offset - kIndexOffset, record_size, count};
      found[k] = true;
    }
  }
  for (size_t k = 0; k < std::size(known); ++k) {
    if (!found[k]) return Text("is damaged: it has no section ", known[k].tag);
  }
  return "";
}

std::string Pack::CheckStrings() {
  // The last byte ends every string, so an offset inside the section is all a string needs.
  if (strings_.count == 0 || *(String(strings_.count - 1)) != '\0') return "is damaged: its texts have no end";
  struct Use {
    const char* tag;
    const Section* section;
    uint32_t word;
  };
  const Use uses[] = {{"META", &meta_, 0},      {"META", &meta_, 1},      {"AXES", &axes_, 0},
                      {"AVAL", &values_, 0},    {"ARGS", &arguments_, 0}, {"ARGS", &arguments_, 1},
                      {"VARI", &variants_, 0},  {"VARI", &variants_, 7},  {"CONS", &constants_, 0}};
  for (const Use& use : uses) {
    for (uint32_t i = 0; i < use.section->count; ++i) {
      const uint32_t offset = Word(*use.section, i, use.word);
      if (offset >= strings_.count) return Outside(use.tag, i, "a text at", offset, strings_.count);
    }
  }
  return "";
}

std::string Pack::CheckAxes() const {
  if (axes_.count > kMaxAxes) return Text("is damaged: it has ", axes_.count, " axes, the limit is ", kMaxAxes);
  uint64_t numbers = 1;
  for (uint32_t i = 0; i < axes_.count; ++i) {
    const uint32_t first = Word(axes_, i, 1), count = Word(axes_, i, 2);
    if (count == 0 || !Inside(first, count, values_.count)) {
      return Outside("axis", i, "values up to", uint64_t{first} + count, values_.count);
    }
    numbers *= count;
    if (numbers > UINT32_MAX) return "is damaged: its axes give more functionals than a number can name";
  }
  return "";
}

std::string Pack::CheckFunctionals() const {
  for (uint32_t i = 0; i < functionals_.count; ++i) {
    const Functional f = functional(i);
    if (i > 0 && f.number <= Word(functionals_, i - 1, 0)) return Text("is damaged: functional ", i, " is out of order");
    if (f.blob >= blobs_.count) return Outside("functional", i, "blob", f.blob, blobs_.count);
    if (!Inside(f.first_argument, f.argument_count, arguments_.count)) {
      return Outside("functional", i, "arguments up to", uint64_t{f.first_argument} + f.argument_count, arguments_.count);
    }
    if (f.variant_count == 0 || !Inside(f.first_variant, f.variant_count, variants_.count)) {
      return Outside("functional", i, "variants up to", uint64_t{f.first_variant} + f.variant_count, variants_.count);
    }
    if (f.choice_count == 0 || !Inside(f.first_choice, f.choice_count, choices_.count)) {
      return Outside("functional", i, "choices up to", uint64_t{f.first_choice} + f.choice_count, choices_.count);
    }
    for (uint32_t row = 0; row < f.choice_count; ++row) {
      const uint32_t c = f.first_choice + row, variant = Word(choices_, c, 3);
      if (variant >= f.variant_count) return Outside("choice", c, "variant", variant, f.variant_count);
    }
    const Choice last = choice(f, f.choice_count - 1);
    if (last.max_seqlen_q != kUnbounded || last.max_seqlen_k != kUnbounded || last.min_fill != 0) {
      return Text("is damaged: the last choice of functional ", i, " has a bound, so a call may find none");
    }
    const uint32_t blob_size = Word(blobs_, f.blob, 3);
    for (uint32_t v = f.first_variant; v < f.first_variant + f.variant_count; ++v) {
      const uint32_t offset = Word(variants_, v, 1), size = Word(variants_, v, 2);
      if (size == 0 || !Inside(offset, size, blob_size)) {
        return Outside("variant", v, "code up to", uint64_t{offset} + size, blob_size);
      }
    }
  }
  return "";
}

std::string Pack::CheckVariants() const {
  for (uint32_t i = 0; i < variants_.count; ++i) {
    const uint32_t threads = Word(variants_, i, 3), first = Word(variants_, i, 5), count = Word(variants_, i, 6);
    if (threads == 0 || threads > kMaxThreads) return Outside("variant", i, "threads", threads, kMaxThreads);
    if (!Inside(first, count, constants_.count)) {
      return Outside("variant", i, "constants up to", uint64_t{first} + count, constants_.count);
    }
  }
  return "";
}

std::string Pack::CheckBlobs() const {
  const uint64_t index_end = uint64_t{kIndexOffset} + index_.size;
  for (uint32_t i = 0; i < blobs_.count; ++i) {
    const uint64_t offset = Word(blobs_, i, 0) | uint64_t{Word(blobs_, i, 1)} << 32;
    const uint32_t stored = Word(blobs_, i, 2), size = Word(blobs_, i, 3);
    if (offset < index_end || offset > file_size_ || stored > file_size_ - offset) {
      return Text("is damaged: blob ", i, " (offset ", offset, ", ", stored, " bytes) leaves the file");
    }
    if (stored > kMaxBlobSize || size > kMaxBlobSize) {
      return Outside("blob", i, "bytes", std::max(stored, size), kMaxBlobSize);
    }
  }
  return "";
}

const char* Pack::Meta(const char* key) const {
  for (uint32_t i = 0; i < meta_.count; ++i) {
    if (strcmp(String(Word(meta_, i, 0)), key) == 0) return String(Word(meta_, i, 1));
  }
  return "";
}

Pack::Functional Pack::functional(uint32_t index) const {
  const auto word = [&](uint32_t i) { return Word(functionals_, index, i); };
  return {word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7)};
}

int64_t Pack::FindFunctional(uint64_t number) const {
  uint32_t low = 0, high = functionals_.count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (Word(functionals_, middle, 0) < number) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < functionals_.count && Word(functionals_, low, 0) == number ? int64_t{low} : -1;
}

Pack::Argument Pack::argument(uint32_t index) const {
  return {String(Word(arguments_, index, 0)), String(Word(arguments_, index, 1))};
}

Pack::Variant Pack::variant(uint32_t index) const {
  const auto word = [&](uint32_t i) { return Word(variants_, index, i); };
  return {String(word(0)), word(1), word(2), word(3), word(4), String(word(7))};
}

bool Pack::Constant(uint32_t variant, const char* name, int32_t* value) const {
  const uint32_t first = Word(variants_, variant, 5), count = Word(variants_, variant, 6);
  for (uint32_t i = first; i < first + count; ++i) {
    if (strcmp(String(Word(constants_, i, 0)), name) != 0) continue;
    *value = static_cast<int32_t>(Word(constants_, i, 1));
    return true;
  }
  return false;
}

Pack::Choice Pack::choice(const Functional& functional, uint32_t row) const {
  const auto word = [&](uint32_t i) { return Word(choices_, functional.first_choice + row, i); };
  return {word(0), word(1), word(2), functional.first_variant + word(3)};
}

std::string Pack::DescribeFunctional(uint32_t index) const {
  std::string out;
  uint64_t number = Word(functionals_, index, 0);
  for (uint32_t axis = axis_count(); axis-- > 0; number /= axis_value_count(axis)) {
    const auto digit = static_cast<uint32_t>(number % axis_value_count(axis));
    out = Text(axis_name(axis), "=", axis_value(axis, digit), out.empty() ? "" : " ", out);
  }
  return out;
}

std::string Pack::DescribeConfig(uint32_t variant) const {
  const uint32_t first = Word(variants_, variant, 5), count = Word(variants_, variant, 6);
  std::string out;
  for (uint32_t i = first; i < first + count; ++i) {
    out += Text(out.empty() ? "" : " ", String(Word(constants_, i, 0)), "=", static_cast<int32_t>(Word(constants_, i, 1)));
  }
  return out;
}

Status Pack::LoadCode(const Functional& functional, uint32_t variant, Bytes* code) const {
  const uint64_t offset = Word(blobs_, functional.blob, 0) | uint64_t{Word(blobs_, functional.blob, 1)} << 32;
  const uint32_t stored = Word(blobs_, functional.blob, 2), size = Word(blobs_, functional.blob, 3);
  const Variant wanted = this->variant(variant);

  Bytes packed = Allocate(stored), unpacked = Allocate(size), result = Allocate(wanted.size);
  if (packed.data == nullptr || unpacked.data == nullptr || result.data == nullptr) {
    return Status(kOutOfMemory, Text("there is no memory for blob ", functional.blob, " (", size, " bytes) of the pack ", path_));
  }
  std::string problem = ReadAt(offset, packed.data.get(), stored);
  if (!problem.empty()) return Status(kInvalidImage, Text("the pack ", path_, " ", problem, ". Copy or build it again"));
  problem = DecodeXz(packed.data.get(), stored, unpacked.data.get(), size);
  if (!problem.empty()) {
    return Status(kInvalidImage, Text("blob ", functional.blob, " of the pack ", path_, " cannot be unpacked: ", problem,
                                      ". Copy or build the pack again"));
  }
  memcpy(result.data.get(), unpacked.data.get() + wanted.offset, wanted.size);
  *code = std::move(result);
  return Status();
}

}  // namespace aotriton::dispatcher
