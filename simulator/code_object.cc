#include "simulator/code_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "simulator/arch.h"
#include "simulator/fault.h"

namespace simulator {
namespace {

class Bytes {
 public:
  explicit Bytes(const std::vector<uint8_t>& bytes) : bytes_(bytes) {}

  template <typename T>
  T At(uint64_t offset) const {
    T value;
    memcpy(&value, Range(offset, sizeof(T)), sizeof(T));
    return value;
  }

  const uint8_t* Range(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      throw Fault("code object: ", size, " bytes at offset ", offset, " lie outside its ", bytes_.size(), " bytes");
    }
    return bytes_.data() + offset;
  }

  std::string String(uint64_t offset) const {
    const uint8_t* begin = Range(offset, 1);
    return std::string(reinterpret_cast<const char*>(begin), strnlen(reinterpret_cast<const char*>(begin), bytes_.size() - offset));
  }

 private:
  const std::vector<uint8_t>& bytes_;
};

// A value of MessagePack, as far as the metadata use it.
struct Value {
  int64_t number = 0;
  std::string text;
  std::vector<Value> list;
  std::map<std::string, Value> map;

  const Value& operator[](const char* key) const {
    const auto found = map.find(key);
    if (found == map.end()) throw Fault("code object: its metadata have no ", key);
    return found->second;
  }
  int64_t Number(const char* key, int64_t otherwise) const {
    const auto found = map.find(key);
    return found == map.end() ? otherwise : found->second.number;
  }
};

class MessagePack {
 public:
  MessagePack(const uint8_t* begin, size_t size) : at_(begin), end_(begin + size) {}

  Value Read() {
    Value value;
    const uint8_t type = static_cast<uint8_t>(Unsigned(1));
    if (type < 0x80) {
      value.number = type;
    } else if (type < 0x90) {
      ReadMap(type & 0xf, &value);
    } else if (type < 0xa0) {
      ReadList(type & 0xf, &value);
    } else if (type < 0xc0) {
      value.text = Text(type & 0x1f);
    } else if (type >= 0xe0) {
      value.number = static_cast<int8_t>(type);
    } else {
      switch (type) {
        case 0xc0: case 0xc2: break;  // nil, false
        case 0xc3: value.number = 1; break;
        case 0xcc: case 0xcd: case 0xce: case 0xcf: value.number = static_cast<int64_t>(Unsigned(1 << (type - 0xcc))); break;
        case 0xd0: value.number = static_cast<int8_t>(Unsigned(1)); break;
        case 0xd1: value.number = static_cast<int16_t>(Unsigned(2)); break;
        case 0xd2: value.number = static_cast<int32_t>(Unsigned(4)); break;
        case 0xd3: value.number = static_cast<int64_t>(Unsigned(8)); break;
        case 0xd9: case 0xda: case 0xdb: value.text = Text(Unsigned(1 << (type - 0xd9))); break;
        case 0xdc: case 0xdd: ReadList(Unsigned(2 << (type - 0xdc)), &value); break;
        case 0xde: case 0xdf: ReadMap(Unsigned(2 << (type - 0xde)), &value); break;
        default: throw Fault("code object: its metadata have a value of type ", int{type});
      }
    }
    return value;
  }

 private:
  uint64_t Unsigned(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | *Take(1);
    return value;
  }

  const uint8_t* Take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_)) throw Fault("code object: its metadata end too early");
    at_ += size;
    return at_ - size;
  }

  std::string Text(uint64_t size) { return std::string(reinterpret_cast<const char*>(Take(size)), size); }

  void ReadList(uint64_t size, Value* value) {
    for (uint64_t i = 0; i < size; ++i) value->list.push_back(Read());
  }

  void ReadMap(uint64_t size, Value* value) {
    for (uint64_t i = 0; i < size; ++i) {
      const std::string key = Read().text;
      value->map[key] = Read();
    }
  }

  const uint8_t* at_;
  const uint8_t* const end_;
};

constexpr uint32_t kMetadataNote = 32;

Value Metadata(const Bytes& file, const Elf64_Phdr& notes) {
  for (uint64_t at = notes.p_offset; at + sizeof(Elf64_Nhdr) <= notes.p_offset + notes.p_filesz;) {
    const auto note = file.At<Elf64_Nhdr>(at);
    const uint64_t name = at + sizeof(note);
    const uint64_t content = name + (note.n_namesz + 3) / 4 * 4;
    if (note.n_type == kMetadataNote && file.String(name) == "AMDGPU") {
      return MessagePack(file.Range(content, note.n_descsz), note.n_descsz).Read();
    }
    at = content + (note.n_descsz + 3) / 4 * 4;
  }
  throw Fault("code object: it has no AMDGPU metadata");
}

// amdgcn-amd-amdhsa--gfx942:sramecc+ and amdgcn-amd-amdhsa-unknown-gfx942 say gfx942.
std::string ArchOf(const std::string& target) {
  std::string name = target.substr(target.rfind('-') + 1);
  if (name == "generic") {
    const size_t begin = target.rfind("gfx");
    name = target.substr(begin == std::string::npos ? 0 : begin);
  }
  return name.substr(0, name.find(':'));
}

// What a runtime goes by.
void CheckFlags(const Arch& arch, uint32_t flags) {
  const uint32_t machine = flags & 0xff, generic_version = flags >> 24;
  if (machine != arch.machine) {
    throw Fault("code object: its metadata say ", arch.name, ", which is machine ", Hex{arch.machine}, ", its ELF flags machine ", Hex{machine});
  }
  if (arch.is_family() != (generic_version != 0)) {
    throw Fault("code object: it is for ", arch.name, " and has version ", generic_version, " of a generic target");
  }
}

}  // namespace

bool CodeObject::RunsOn(const std::string& device) const { return arch_ == device || FindArch(device).family == arch_; }

size_t CodeObject::SizeOf(const void* bytes) {
  Elf64_Ehdr header;
  memcpy(&header, bytes, sizeof(header));
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) throw Fault("code object: it does not begin like an ELF file");
  return header.e_shoff + size_t{header.e_shentsize} * header.e_shnum;
}

CodeObject::CodeObject(std::vector<uint8_t> bytes) {
  constexpr uint16_t kAmdGpu = 224;
  const Bytes file(bytes);
  const auto header = file.At<Elf64_Ehdr>(0);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kAmdGpu) {
    throw Fault("code object: it is no 64-bit ELF file for AMD GPUs");
  }
  Value metadata;
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto segment = file.At<Elf64_Phdr>(header.e_phoff + uint64_t{header.e_phentsize} * i);
    if (segment.p_type == PT_NOTE) metadata = Metadata(file, segment);
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t end = segment.p_vaddr + segment.p_memsz;
    if (segment.p_filesz > segment.p_memsz || end > 1u << 30) throw Fault("code object: segment ", i, " has no sound size");
    if (image_.size() < end) image_.resize(end);
    memcpy(image_.data() + segment.p_vaddr, file.Range(segment.p_offset, segment.p_filesz), segment.p_filesz);
    if (segment.p_flags & PF_X) {
      code_begin_ = segment.p_vaddr;
      code_end_ = segment.p_vaddr + segment.p_filesz;
    }
  }
  std::map<std::string, uint64_t> symbols;
  for (int i = 0; i < header.e_shnum; ++i) {
    const auto section = file.At<Elf64_Shdr>(header.e_shoff + uint64_t{header.e_shentsize} * i);
    if (section.sh_type != SHT_DYNSYM) continue;
    const auto names = file.At<Elf64_Shdr>(header.e_shoff + uint64_t{header.e_shentsize} * section.sh_link);
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = file.At<Elf64_Sym>(section.sh_offset + at);
      symbols[file.String(names.sh_offset + symbol.st_name)] = symbol.st_value;
    }
  }
  arch_ = ArchOf(metadata["amdhsa.target"].text);
  CheckFlags(FindArch(arch_), header.e_flags);
  const Bytes memory(image_);
  for (const Value& entry : metadata["amdhsa.kernels"].list) {
    Kernel kernel;
    kernel.name = entry[".name"].text;
    kernel.kernarg_size = static_cast<uint32_t>(entry[".kernarg_segment_size"].number);
    kernel.group_segment_size = static_cast<uint32_t>(entry[".group_segment_fixed_size"].number);
    kernel.private_segment_size = static_cast<uint32_t>(entry[".private_segment_fixed_size"].number);
    kernel.max_workgroup_size = static_cast<uint32_t>(entry[".max_flat_workgroup_size"].number);
    kernel.wavefront_size = static_cast<uint32_t>(entry[".wavefront_size"].number);
    kernel.vgpr_count = static_cast<uint32_t>(entry[".vgpr_count"].number);
    kernel.agpr_count = static_cast<uint32_t>(entry.Number(".agpr_count", 0));
    kernel.sgpr_count = static_cast<uint32_t>(entry[".sgpr_count"].number);
    for (const Value& argument : entry[".args"].list) {
      kernel.arguments.push_back({static_cast<uint32_t>(argument[".offset"].number), static_cast<uint32_t>(argument[".size"].number),
                                  argument[".value_kind"].text.compare(0, 7, "hidden_") == 0});
    }
    const std::string symbol = entry[".symbol"].text;
    if (symbols.count(symbol) == 0) throw Fault("code object: it has no symbol ", symbol);
    const uint64_t descriptor = symbols[symbol];
    kernel.entry = descriptor + memory.At<uint64_t>(descriptor + 16);
    kernel.rsrc3 = memory.At<uint32_t>(descriptor + 44);
    kernel.rsrc1 = memory.At<uint32_t>(descriptor + 48);
    kernel.rsrc2 = memory.At<uint32_t>(descriptor + 52);
    kernel.properties = memory.At<uint16_t>(descriptor + 56);
    const auto preload = memory.At<uint16_t>(descriptor + 58);
    kernel.preload_words = preload & 0x7f;
    kernel.preload_offset = preload >> 7;
    kernels_.push_back(std::move(kernel));
  }
}

}  // namespace simulator
