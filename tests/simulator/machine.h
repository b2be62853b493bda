// One simulated wave that a test gives registers and instructions, as bytes of LLVM's assembler.
#ifndef AOTRITON_TESTS_SIMULATOR_MACHINE_H_
#define AOTRITON_TESTS_SIMULATOR_MACHINE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "simulator/lanes.h"
#include "simulator/program.h"
#include "simulator/wave.h"

class Machine {
 public:
  explicit Machine(const std::string& arch, uint32_t waves = 1)
      : arch_(simulator::FindArch(arch)), lds(4096, waves), lanes(arch_.isa == simulator::Isa::kGfx9 ? 64 : 32) {
    for (uint32_t i = 0; i < waves; ++i) {
      waves_.push_back(std::make_unique<simulator::Wave>(arch_.isa, lanes, i, &lds, &memory, 64));
      waves_.back()->flushes_matrix_subnormals = arch_.flushes_matrix_subnormals;
    }
  }

  simulator::Wave& wave(uint32_t number = 0) { return *waves_[number]; }

  void Set(int vgpr, const std::function<uint32_t(int lane)>& value, uint32_t number = 0) {
    uint32_t row[simulator::kRow];
    for (int lane = 0; lane < lanes; ++lane) row[lane] = value(lane);
    wave(number).WriteVgpr(vgpr, row, simulator::kAllLanes);
  }
  uint32_t Get(int vgpr, int lane) { return wave().Vgpr(vgpr)[lane]; }
  float GetFloat(int vgpr, int lane) { return simulator::Float(Get(vgpr, lane)); }

  void Run(std::vector<uint32_t> words, uint32_t number = 0) {
    const size_t size = 4 * words.size();
    words.resize(words.size() + 4);
    simulator::Instruction instruction;
    simulator::Decode(arch_, words.data(), 0, &instruction);
    if (static_cast<size_t>(instruction.size) != size) throw simulator::Fault("the instruction has another size: ", Print(instruction));
    if (instruction.dual != nullptr) {
      simulator::ExecuteDual(wave(number), instruction);
      delete instruction.dual;
    } else {
      instruction.semantics->execute(wave(number), instruction);
    }
  }

  // What stops the instruction; "" if nothing does.
  std::string FaultOf(const std::vector<uint32_t>& words, uint32_t number = 0) {
    try {
      Run(words, number);
    } catch (const simulator::Fault& fault) {
      return fault.what();
    }
    return "";
  }

 private:
  const simulator::Arch arch_;

 public:
  simulator::Memory memory;
  simulator::Lds lds;
  const int lanes;

 private:
  std::vector<std::unique_ptr<simulator::Wave>> waves_;
};

#endif
