// Our decoder against LLVM's disassembler: address, size, mnemonic, operands and modifiers of every instruction of every
// code object in the packs at hand.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <unordered_set>

#include "dispatcher/pack.h"
#include "simulator/fault.h"
#include "simulator/program.h"
#include "tests/simulator/llvm.h"

namespace simulator {
namespace {

using aotriton::dispatcher::Bytes;
using aotriton::dispatcher::Pack;

class Comparison {
 public:
  explicit Comparison(const std::string& arch) : arch_(FindArch(arch)), llvm_(arch) {}

  void Compare(const std::string& what, const CodeObject& object) {
    const uint8_t* image = object.image().data();
    std::vector<uint8_t> code(image + object.code_begin(), image + object.code_end());
    const size_t end = code.size();
    code.resize(end + kLongest);
    ++code_objects_;
    for (size_t at = 0; at < end;) {
      Instruction instruction;
      const std::string error = DecodeAt(&code[at], object.code_begin() + at, &instruction);
      ++instructions_;
      // Most have been seen before.
      std::string bytes(reinterpret_cast<const char*>(&code[at]), static_cast<size_t>(instruction.size));
      size_t size = bytes.size();
      if (!error.empty() || agreed_.count(bytes) == 0) {
        const Disassembler::Result want = llvm_.Disassemble(&code[at], end - at);
        const std::string got = error.empty() ? Print(instruction) : error;
        if (want.is_legal && instruction.size == want.size && got == want.text) {
          agreed_.insert(std::move(bytes));
        } else if (++disagreements_ <= 10) {
          ADD_FAILURE() << what << " at " << std::hex << object.code_begin() + at << std::dec << "\n  ours: " << got << " ("
                        << instruction.size << " bytes)\n  LLVM: " << want.text << " (" << want.size << " bytes)";
        }
        size = static_cast<size_t>(want.size != 0 ? want.size : 4);
      }
      delete instruction.dual;
      // Behind the kernel only padding follows.
      if (error.empty() && instruction.semantics->name == "s_code_end") return;
      at += size;
    }
  }

  void Report() const {
    printf("%s: %d code objects, %lld instructions compared, %zu different ones, %lld disagree\n", arch_.name.c_str(), code_objects_,
           static_cast<long long>(instructions_), agreed_.size(), static_cast<long long>(disagreements_));
    EXPECT_GT(instructions_, 0);
    EXPECT_EQ(disagreements_, 0);
  }

 private:
  static constexpr size_t kLongest = 16;

  std::string DecodeAt(const uint8_t* bytes, uint64_t address, Instruction* instruction) const {
    uint32_t words[kLongest / 4];
    memcpy(words, bytes, sizeof(words));
    try {
      Decode(arch_, words, address, instruction);
    } catch (const Fault& fault) {
      return fault.what();
    }
    return "";
  }

  const Arch arch_;
  const Disassembler llvm_;
  std::unordered_set<std::string> agreed_;
  int code_objects_ = 0;
  int64_t instructions_ = 0, disagreements_ = 0;
};

void CompareAll(const Pack& pack, std::map<std::string, Comparison>* comparisons) {
  for (uint32_t index = 0; index < pack.functional_count(); ++index) {
    const Pack::Functional functional = pack.functional(index);
    for (uint32_t i = 0; i < functional.variant_count; ++i) {
      const uint32_t variant = functional.first_variant + i;
      Bytes code;
      ASSERT_TRUE(pack.LoadCode(functional, variant, &code).ok()) << pack.path();
      const CodeObject object(std::vector<uint8_t>(code.data.get(), code.data.get() + code.size));
      comparisons->try_emplace(object.arch(), object.arch())
          .first->second.Compare(pack.path() + ", " + pack.DescribeFunctional(index) + ", " + pack.DescribeConfig(variant), object);
    }
  }
}

TEST(Disassembler, AgreesOnEveryCodeObject) {
  std::map<std::string, Comparison> comparisons;
  for (const auto& file : std::filesystem::recursive_directory_iterator("aotriton.images")) {
    const std::string path = file.path().string();
    if (file.path().extension() != ".pack" || path.find("/amd-") == std::string::npos) continue;
    std::shared_ptr<const Pack> pack;
    ASSERT_TRUE(Pack::Open(path, &pack).ok()) << path;
    CompareAll(*pack, &comparisons);
  }
  EXPECT_FALSE(comparisons.empty());
  for (const auto& [arch, comparison] : comparisons) comparison.Report();
}

}  // namespace
}  // namespace simulator
