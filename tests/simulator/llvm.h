// LLVM's disassembler.
#ifndef AOTRITON_TESTS_SIMULATOR_LLVM_H_
#define AOTRITON_TESTS_SIMULATOR_LLVM_H_

#include <cstdint>
#include <string>

namespace simulator {

class Disassembler {
 public:
  explicit Disassembler(const std::string& arch);
  ~Disassembler();
  Disassembler(const Disassembler&) = delete;
  Disassembler& operator=(const Disassembler&) = delete;

  struct Result {
    int size = 0;      // in bytes; 0: no instruction begins here
    bool is_legal = false;
    std::string text;  // as Print() writes it
  };
  Result Disassemble(const void* bytes, size_t size) const;

 private:
  void* const context_;
};

}  // namespace simulator

#endif
