// Drives a fuzz target where there is no libFuzzer: a fixed number of mutations of given files, the same
// ones each time. By hand, for longer: bazel run //tests/dispatch:pack_fuzzer_address_test -- 10000000 1
//
//   pack_fuzzer [RUNS [SEED]]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/dispatch/support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
extern int opened_packs, bound_packs, planned_launches;

int main(int argc, char** argv) {
  const long runs = argc > 1 ? atol(argv[1]) : 20000;
  std::mt19937 random(argc > 2 ? static_cast<unsigned>(atol(argv[2])) : 20240229);
  std::vector<std::string> files;
  for (const char* kernel : support::kKernels) files.push_back(support::ReadFile(support::PackOf("gfx942", kernel)));
  files.push_back(support::ReadFile(support::BadPack("tuned")));
  for (const std::string& file : files) LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(file.data()), file.size());
  const int intact = bound_packs;
  for (long i = 0; i < runs; ++i) {
    const std::string& file = files[random() % files.size()];
    std::vector<uint8_t> bytes(file.begin(), file.end());
    bytes.resize(file.size() + 128);
    const size_t size = LLVMFuzzerCustomMutator(bytes.data(), file.size(), bytes.size(), static_cast<unsigned>(random()));
    // In memory of its exact size: a sanitizer sees one byte too far.
    const std::vector<uint8_t> input(bytes.begin(), bytes.begin() + static_cast<long>(size));
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  printf("%ld inputs: %d packs opened, %d bound, %d launches planned; no finding\n", runs, opened_packs, bound_packs, planned_launches);
  // A target that lets nothing in, or everything, tests nothing.
  const bool is_useful = intact == static_cast<int>(files.size()) && bound_packs > intact && opened_packs > bound_packs && opened_packs < runs;
  if (!is_useful) fprintf(stderr, "fuzz_main: of %zu intact files %d were bound\n", files.size(), intact);
  return is_useful ? 0 : 1;
}
