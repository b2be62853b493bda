// bazel run //simulator:run -- CODE_OBJECT ...: what a code object consists of, and what it does.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

#include "simulator/fault.h"
#include "simulator/launch.h"
#include "simulator/run_arguments.h"
#include "simulator/wave.h"

namespace simulator {
namespace {

constexpr const char* kHelp = R"(usage: run CODE_OBJECT [--print]
       run CODE_OBJECT --grid X[,Y[,Z]] [options] ARGUMENT...

Without --grid: the kernels of the code object and its instructions by class; --print: all of them in assembly.
With --grid: runs the kernel, prints the instructions that its waves ran by class, and the first elements of each
buffer that it wrote. What stops it is one line on stderr, and the exit status is 1.

The ARGUMENTs are those of the kernel in their order (Triton appends two pointers to scratch: null null):
  TYPE=NUMBER          a scalar: i32=7, fp32=0.125; TYPE is fp32, fp16, bf16, i8, i32 or i64
  TYPE:COUNT:CONTENT   a pointer to a buffer of COUNT elements; CONTENT is random, undefined, a number for all of
                       them, or @FILE with their bytes
  null                 a null pointer
Options:
  --kernel NAME        of several kernels; default: the first
  --block N            threads of a workgroup; default: what the kernel was compiled for
  --lds BYTES          local memory on top of the kernel's own (Triton: `shared`)
  --seed N             waves run in an order of its own between barriers
  --trace              each instruction, and the registers that it changed (of vector registers the first lanes)
  --workgroup X[,Y[,Z]], --wave N   of this workgroup, this wave only
)";

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

std::vector<uint8_t> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Fault("it cannot be read");
  return std::vector<uint8_t>((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

void PrintCounts(const std::map<std::string, uint64_t>& counts) {
  uint64_t total = 0;
  for (const auto& [name, count] : counts) {
    std::cout << "  " << name << "\t" << count << "\n";
    total += count;
  }
  std::cout << "  all\t" << total << "\n";
}

void Show(const std::string& path, Program& program, bool print) {
  const CodeObject& object = program.object();
  for (const Kernel& kernel : object.kernels()) {
    std::cout << path << ": " << object.arch() << " " << kernel.name << ", " << kernel.vgpr_count << " VGPRs, " << kernel.sgpr_count
              << " SGPRs, " << kernel.private_segment_size << " bytes of scratch, " << kernel.kernarg_size << " bytes of arguments\n";
  }
  std::map<std::string, uint64_t> counts;
  for (uint64_t at = object.code_begin(); at < object.code_end();) {
    const Instruction& instruction = program.At(at);
    if (print) std::cout << std::hex << at << std::dec << "\t" << Print(instruction) << "\n";
    // Behind the kernel only padding follows.
    if (instruction.semantics->name == "s_code_end") break;
    ++counts[ClassOf(instruction.semantics->name)];
    at += static_cast<uint64_t>(instruction.size);
  }
  PrintCounts(counts);
}

struct Options {
  std::string path, kernel;
  bool print = false, runs = false, trace = false, one_workgroup = false;
  Dim3 grid{1, 1, 1}, workgroup{0, 0, 0};
  uint32_t block = 0, lds = 0;
  int wave = -1;
  uint64_t seed = 0;
  std::vector<std::string> arguments;
};

// Prints the instructions of the waves that were chosen and, before a wave's next one, what its last one changed.
class Tracer {
 public:
  explicit Tracer(const Options& options) : options_(options) {}

  void operator()(Dim3 group, Wave& wave, const Instruction& instruction) {
    const Dim3& wanted = options_.workgroup;
    if (options_.one_workgroup && (group.x != wanted.x || group.y != wanted.y || group.z != wanted.z)) return;
    if (options_.wave >= 0 && wave.number != static_cast<uint32_t>(options_.wave)) return;
    State& before = states_[&wave];
    // A new wave may lie where one lay that has ended.
    if (wave.executed > 1 && !before.vgprs.empty()) PrintChanges(before, wave);
    before = StateOf(wave);
    std::cout << "(" << group.x << "," << group.y << "," << group.z << ") wave " << wave.number << "  " << std::hex << instruction.address
              << std::dec << "  " << Print(instruction) << "\n";
  }

 private:
  static constexpr int kSgprs = 128, kShownLanes = 4;
  struct State {
    std::vector<uint32_t> vgprs, sgprs;
  };

  static State StateOf(Wave& wave) {
    return {std::vector<uint32_t>(wave.VgprWords(0), wave.VgprWords(0) + kVgprs * kRow),
            std::vector<uint32_t>(wave.SgprWords(), wave.SgprWords() + kSgprs)};
  }

  static void PrintChanges(const State& before, Wave& wave) {
    for (int i = 0; i < kSgprs; ++i) {
      const uint32_t now = wave.SgprWords()[i];
      if (now != before.sgprs[i]) std::cout << "    s" << i << " = " << std::hex << "0x" << now << std::dec << "\n";
    }
    for (int i = 0; i < kVgprs; ++i) {
      const uint32_t* const now = wave.VgprWords(i);
      if (memcmp(now, &before.vgprs[static_cast<size_t>(i) * kRow], static_cast<size_t>(wave.lanes) * sizeof(*now)) == 0) continue;
      std::cout << "    " << (i < kFirstAccVgpr ? "v" : "a") << i % kFirstAccVgpr << " =" << std::hex;
      for (int lane = 0; lane < kShownLanes; ++lane) std::cout << " 0x" << now[lane];
      std::cout << std::dec << " ...\n";
    }
  }

  const Options& options_;
  std::map<const Wave*, State> states_;
};

void Run(Program& program, const Options& options) {
  const Kernel* chosen = nullptr;
  for (const Kernel& kernel : program.object().kernels()) {
    if (chosen == nullptr && (options.kernel.empty() || kernel.name == options.kernel)) chosen = &kernel;
  }
  if (chosen == nullptr) throw Fault("it has no kernel ", options.kernel);
  Memory memory;
  std::vector<RunArgument> arguments;
  for (const std::string& text : options.arguments) arguments.push_back(ReadArgument(text, &memory));
  const std::vector<uint8_t> kernargs = PackArguments(*chosen, arguments);
  std::map<const Semantics*, uint64_t> executed;
  Tracer tracer(options);
  LaunchOptions launch;
  launch.seed = options.seed;
  launch.trace = [&](Dim3 group, Wave& wave, const Instruction& instruction) {
    ++executed[instruction.semantics];
    if (options.trace) tracer(group, wave, instruction);
  };
  Launch(program, *chosen, memory, options.grid, {options.block == 0 ? chosen->max_workgroup_size : options.block, 1, 1}, options.lds,
         kernargs, launch);
  std::map<std::string, uint64_t> counts;
  for (const auto& [semantics, count] : executed) counts[ClassOf(semantics->name)] += count;
  PrintCounts(counts);
  PrintResults(std::cout, arguments);
}

uint64_t Number(const std::string& option, const std::string& text) {
  char* end;
  const uint64_t number = strtoull(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || number > ~uint32_t{0}) throw Fault(option, " ", text, ": no number");
  return number;
}

Dim3 Numbers(const std::string& option, const std::string& text, uint32_t otherwise) {
  uint32_t numbers[3] = {otherwise, otherwise, otherwise};
  size_t begin = 0;
  for (int i = 0; begin <= text.size(); ++i) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (i == 3) throw Fault(option, " ", text, ": more than three numbers");
    numbers[i] = static_cast<uint32_t>(Number(option, text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return {numbers[0], numbers[1], numbers[2]};
}

Options Read(const std::vector<std::string>& words) {
  Options options;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) throw Fault(word, " has no value; --help tells more");
      return words[++i];
    };
    if (word == "--print") {
      options.print = true;
    } else if (word == "--grid") {
      options.runs = true;
      options.grid = Numbers(word, value(), 1);
    } else if (word == "--kernel") {
      options.kernel = value();
    } else if (word == "--block") {
      options.block = static_cast<uint32_t>(Number(word, value()));
    } else if (word == "--lds") {
      options.lds = static_cast<uint32_t>(Number(word, value()));
    } else if (word == "--seed") {
      options.seed = Number(word, value());
    } else if (word == "--trace") {
      options.trace = true;
    } else if (word == "--workgroup") {
      options.one_workgroup = true;
      options.workgroup = Numbers(word, value(), 0);
    } else if (word == "--wave") {
      options.wave = static_cast<int>(Number(word, value()));
    } else if (word.compare(0, 2, "--") == 0) {
      throw Fault("there is no option ", word, "; --help tells which there are");
    } else if (options.path.empty()) {
      options.path = word;
    } else {
      options.arguments.push_back(word);
    }
  }
  if (options.path.empty()) throw Fault("no CODE_OBJECT is given; --help tells more");
  if (!options.runs && !options.arguments.empty()) throw Fault("arguments of a kernel without --grid; --help tells more");
  return options;
}

int Main(const std::vector<std::string>& words) {
  std::string what = "run";
  try {
    const Options options = Read(words);
    what = options.path;
    Program program{CodeObject(ReadFile(options.path))};
    if (options.runs) {
      Run(program, options);
    } else {
      Show(options.path, program, options.print);
    }
    return 0;
  } catch (const Fault& fault) {
    std::cout.flush();
    std::cerr << what << ": " << fault.what() << "\n";
    return 1;
  }
}

}  // namespace
}  // namespace simulator

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  for (const std::string& word : words) {
    if (word != "--help" && word != "-h") continue;
    std::cout << simulator::kHelp;
    return 0;
  }
  return simulator::Main(words);
}
