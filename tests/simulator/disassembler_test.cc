// Our decoder against LLVM's disassembler: address, size, mnemonic, operands and modifiers of every instruction of every
// code object in the packs at hand.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "dispatcher/pack.h"
#include "simulator/fault.h"
#include "simulator/program.h"
#include "tests/simulator/llvm.h"

namespace simulator {
namespace {

using aotriton::dispatcher::Bytes;
using aotriton::dispatcher::Pack;

struct Count {
  int code_objects = 0;
  int64_t instructions = 0, disagreements = 0;
};

std::string Printed(const Arch& arch, const uint32_t* words, uint64_t address, int* size) {
  Instruction instruction;
  try {
    Decode(arch, words, address, &instruction);
  } catch (const Fault& fault) {
    return fault.what();
  }
  *size = instruction.size;
  const std::string text = Print(instruction);
  delete instruction.dual;
  return text;
}

void CompareOne(const std::string& what, const CodeObject& object, Count* count) {
  const Arch arch = FindArch(object.arch());
  const Disassembler llvm(object.arch());
  std::vector<uint8_t> code(object.image().begin() + static_cast<long>(object.code_begin()),
                            object.image().begin() + static_cast<long>(object.code_end()));
  const size_t end = code.size();
  code.resize(end + 4 * sizeof(uint32_t));
  ++count->code_objects;
  for (size_t at = 0; at < end;) {
    const Disassembler::Result want = llvm.Disassemble(&code[at], end - at);
    int size = 0;
    const std::string got = Printed(arch, reinterpret_cast<const uint32_t*>(&code[at]), object.code_begin() + at, &size);
    ++count->instructions;
    if (!want.is_legal || size != want.size || got != want.text) {
      if (++count->disagreements <= 10) {
        ADD_FAILURE() << what << " at " << std::hex << object.code_begin() + at << std::dec << "\n  ours: " << got << " (" << size
                      << " bytes)\n  LLVM: " << want.text << " (" << want.size << " bytes)";
      }
    }
    // Behind the kernel only padding follows.
    if (want.text == "s_code_end") return;
    at += static_cast<size_t>(want.size != 0 ? want.size : 4);
  }
}

void CompareAll(const Pack& pack, std::map<std::string, Count>* counts) {
  for (uint32_t index = 0; index < pack.functional_count(); ++index) {
    const Pack::Functional functional = pack.functional(index);
    for (uint32_t i = 0; i < functional.variant_count; ++i) {
      const uint32_t variant = functional.first_variant + i;
      Bytes code;
      ASSERT_TRUE(pack.LoadCode(functional, variant, &code).ok()) << pack.path();
      const CodeObject object(std::vector<uint8_t>(code.data.get(), code.data.get() + code.size));
      CompareOne(pack.path() + ", " + pack.DescribeFunctional(index) + ", " + pack.DescribeConfig(variant), object,
                 &(*counts)[object.arch()]);
    }
  }
}

TEST(Disassembler, AgreesOnEveryCodeObject) {
  std::map<std::string, Count> counts;
  for (const auto& file : std::filesystem::recursive_directory_iterator("aotriton.images")) {
    const std::string path = file.path().string();
    if (file.path().extension() != ".pack" || path.find("/amd-") == std::string::npos) continue;
    std::shared_ptr<const Pack> pack;
    ASSERT_TRUE(Pack::Open(path, &pack).ok()) << path;
    CompareAll(*pack, &counts);
  }
  EXPECT_FALSE(counts.empty());
  for (const auto& [arch, count] : counts) {
    printf("%s: %d code objects, %lld instructions compared, %lld disagree\n", arch.c_str(), count.code_objects,
           static_cast<long long>(count.instructions), static_cast<long long>(count.disagreements));
    EXPECT_GT(count.instructions, 0);
    EXPECT_EQ(count.disagreements, 0);
  }
}

}  // namespace
}  // namespace simulator
