#include "tests/simulator/llvm.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <regex>

namespace simulator {
namespace {

// The part of LLVM's C API that is used (llvm-c/Disassembler.h).
struct Library {
  void* (*create)(const char* triple, const char* cpu, const char* features, void*, int, void*, void*);
  size_t (*disassemble)(void* context, const uint8_t* bytes, uint64_t size, uint64_t address, char* text, size_t text_size);
  void (*dispose)(void* context);

  Library() {
    const char* path = getenv("LLVM_LIBRARY");
    handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) Fail(dlerror());
    for (const char* name : {"LLVMInitializeAMDGPUTargetInfo", "LLVMInitializeAMDGPUTargetMC", "LLVMInitializeAMDGPUDisassembler"}) {
      void (*initialize)() = nullptr;
      Find(name, &initialize);
      initialize();
    }
    Find("LLVMCreateDisasmCPUFeatures", &create);
    Find("LLVMDisasmInstruction", &disassemble);
    Find("LLVMDisasmDispose", &dispose);
  }

 private:
  [[noreturn]] static void Fail(const char* what) {
    fprintf(stderr, "LLVM: %s\n", what);
    abort();
  }

  template <typename Function>
  void Find(const char* name, Function* function) const {
    *function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (*function == nullptr) Fail(name);
  }

  void* handle_;
};

const Library& Llvm() {
  static const auto* const library = new Library;
  return *library;
}

bool Contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// How many registers an operand takes, and how many digits its 1/(2 pi) has, is the opcode's and no field of the
// encoding: Print() names the first register, and one constant.
std::string Normal(std::string text) {
  static const std::regex range("([vas]|ttmp)\\[([0-9]+):[0-9]+\\]"), low("\\b(vcc|exec|flat_scratch|xnack_mask)_lo\\b"),
      tabs("\t"), ends("^ +| +$"), digits("0\\.15915494309189532");
  text = std::regex_replace(text, tabs, " ");
  text = std::regex_replace(text, ends, "");
  text = std::regex_replace(text, range, "$1$2");
  text = std::regex_replace(text, low, "$1");
  return std::regex_replace(text, digits, "0.15915494");
}

}  // namespace

// RDNA has names for the halves of registers, even where the compiler uses only the lower ones.
Disassembler::Disassembler(const std::string& arch)
    : context_(Llvm().create("amdgcn-amd-amdhsa", arch.c_str(), arch.rfind("gfx9", 0) == 0 ? "" : "+real-true16", nullptr, 0, nullptr, nullptr)) {
}

Disassembler::~Disassembler() { Llvm().dispose(context_); }

Disassembler::Result Disassembler::Disassemble(const void* bytes, size_t size) const {
  char text[512] = "";
  Result result;
  result.size = static_cast<int>(Llvm().disassemble(context_, static_cast<const uint8_t*>(bytes), size, 0, text, sizeof(text)));
  result.text = Normal(text);
  // Remarks on registers, immediates and DPP controls that the hardware does not have there.
  result.is_legal = result.size != 0 && !Contains(result.text, "Warning") && !Contains(result.text, "/*");
  return result;
}

}  // namespace simulator
