// bazel run //simulator:run -- CODE_OBJECT ...: what a code object consists of, by our decoder.
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

#include "simulator/fault.h"
#include "simulator/launch.h"

namespace simulator {
namespace {

// The first words of a name say its class: v_mfma, global_load.
std::string ClassOf(const std::string& name) {
  const size_t first = name.find('_');
  if (name[0] == 'v' || name[0] == 's') {
    for (const char* matrix : {"v_mfma", "v_wmma", "v_cmp", "v_cvt", "s_load", "s_wait", "s_cbranch", "s_cmp"}) {
      if (name.compare(0, std::string(matrix).size(), matrix) == 0) return matrix;
    }
    return name.substr(0, first) + "_*";
  }
  return name.substr(0, name.find('_', first + 1));
}

bool ShowOne(const char* path, bool print) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::cerr << path << ": cannot be read\n";
    return false;
  }
  std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  try {
    Program program{CodeObject(std::move(bytes))};
    const CodeObject& object = program.object();
    for (const Kernel& kernel : object.kernels()) {
      std::cout << path << ": " << object.arch() << " " << kernel.name << ", " << kernel.vgpr_count << " VGPRs, " << kernel.sgpr_count
                << " SGPRs, " << kernel.private_segment_size << " bytes of scratch, " << kernel.kernarg_size << " bytes of arguments\n";
    }
    std::map<std::string, int> counts;
    int total = 0;
    for (uint64_t at = object.code_begin(); at < object.code_end();) {
      const Instruction& instruction = program.At(at);
      if (print) std::cout << std::hex << at << std::dec << "\t" << Print(instruction) << "\n";
      // Behind the kernel only padding follows.
      if (instruction.semantics->name == "s_code_end") break;
      ++counts[ClassOf(instruction.semantics->name)];
      ++total;
      at += static_cast<uint64_t>(instruction.size);
    }
    for (const auto& [name, count] : counts) std::cout << "  " << name << "\t" << count << "\n";
    std::cout << "  all\t" << total << "\n";
    return true;
  } catch (const Fault& fault) {
    std::cerr << path << ": " << fault.what() << "\n";
    return false;
  }
}

}  // namespace
}  // namespace simulator

int main(int argc, char** argv) {
  bool print = false, ok = true;
  int objects = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--print") {
      print = true;
    } else {
      ok &= simulator::ShowOne(argv[i], print);
      ++objects;
    }
  }
  if (objects == 0) {
    std::cerr << "usage: run [--print] CODE_OBJECT...\n";
    return 2;
  }
  return ok ? 0 : 1;
}
