#include "simulator/launch.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "simulator/lanes.h"
#include "simulator/wave.h"

namespace simulator {
namespace {

// Bits of the kernel descriptor's properties: the user SGPRs that come first.
constexpr uint32_t kPrivateSegmentBuffer = 1 << 0, kDispatchPtr = 1 << 1, kQueuePtr = 1 << 2, kKernargPtr = 1 << 3, kDispatchId = 1 << 4,
                   kFlatScratchInit = 1 << 5, kPrivateSegmentSize = 1 << 6;
// What a preloading kernel begins with, for firmware that does not preload.
constexpr uint64_t kPreloadPrologue = 256;

class Group {
 public:
  Group(Program& program, const Kernel& kernel, Memory& memory, Dim3 number, Dim3 block, uint32_t lds_size,
        const std::vector<uint8_t>& kernargs, uint64_t index)
      : program_(program), kernel_(kernel), kernargs_(kernargs), number_(number), lds_(lds_size, Waves(kernel, block)) {
    // Every other group finds its arguments preloaded.
    const bool preloads = program.arch().has_preload && kernel.preload_words != 0 && index % 2 == 0;
    for (uint32_t i = 0; i < Waves(kernel, block); ++i) {
      auto wave = std::make_unique<Wave>(program.arch().isa, static_cast<int>(kernel.wavefront_size), i, &lds_, &memory,
                                         kernel.private_segment_size);
      wave->flushes_matrix_subnormals = program.arch().flushes_matrix_subnormals;
      wave->pc = kernel.entry + (preloads ? kPreloadPrologue : 0);
      SetScalars(wave.get(), preloads);
      SetLanes(wave.get(), block);
      waves_.push_back(std::move(wave));
    }
  }

  void Run(const LaunchOptions& options, std::mt19937_64* random, LaunchCounts* counts) {
    std::vector<Wave*> live;
    for (const auto& wave : waves_) live.push_back(wave.get());
    while (!live.empty()) {
      if (options.seed != 0) std::shuffle(live.begin(), live.end(), *random);
      size_t at_barrier = 0;
      for (Wave* wave : live) {
        RunToBarrier(wave, options);
        at_barrier += wave->at_barrier;
        wave->at_barrier = false;
      }
      live.erase(std::remove_if(live.begin(), live.end(), [](const Wave* wave) { return wave->done; }), live.end());
      if (at_barrier != live.size()) throw Fault("some waves wait at a barrier, others do not");
      lds_.NextInterval();
    }
    for (const auto& wave : waves_) counts->wave_instructions += wave->executed;
  }

 private:
  static uint32_t Waves(const Kernel& kernel, Dim3 block) { return (block.x + kernel.wavefront_size - 1) / kernel.wavefront_size; }

  void SetScalars(Wave* wave, bool preloads) {
    int next = 0;
    const uint32_t properties = kernel_.properties;
    const auto address = reinterpret_cast<uintptr_t>(kernargs_.data());
    if (properties & kPrivateSegmentBuffer) {
      wave->SetSgpr(next, kScratchDescriptor[0]);
      wave->SetSgpr(next + 1, kScratchDescriptor[1]);
      wave->SetSgpr(next + 2, ~0u);
      wave->SetSgpr(next + 3, 0);
      next += 4;
    }
    // Those that no kernel of ours reads stay undefined.
    if (properties & kDispatchPtr) next += 2;
    if (properties & kQueuePtr) next += 2;
    if (properties & kKernargPtr) {
      wave->SetSgpr(next, static_cast<uint32_t>(address));
      wave->SetSgpr(next + 1, static_cast<uint32_t>(address >> 32));
      next += 2;
    }
    if (properties & kDispatchId) next += 2;
    if (properties & kFlatScratchInit) next += 2;
    if (properties & kPrivateSegmentSize) next += 1;
    if (preloads) {
      for (uint32_t i = 0; i < kernel_.preload_words; ++i) {
        uint32_t word;
        memcpy(&word, &kernargs_.at(4 * size_t{kernel_.preload_offset + i}), sizeof(word));
        wave->SetSgpr(next + static_cast<int>(i), word);
      }
    }
    next = static_cast<int>(kernel_.user_sgprs());
    const uint32_t group[3] = {number_.x, number_.y, number_.z};
    if (wave->isa == Isa::kGfx12) {
      wave->SetSgpr(kTtmp0 + 9, number_.x);
      wave->SetSgpr(kTtmp0 + 7, (number_.y & 0xffff) | number_.z << 16);
      wave->SetSgpr(kTtmp0 + 8, wave->number << 25);
    } else {
      for (int i = 0; i < 3; ++i) {
        if (kernel_.rsrc2 >> (7 + i) & 1) wave->SetSgpr(next++, group[i]);
      }
      if (kernel_.rsrc2 >> 10 & 1) next++;
      // Where this wave's scratch begins in the buffer.
      if (program_.arch().scratch_is_buffer && (kernel_.rsrc2 & 1) != 0) wave->SetSgpr(next++, 0);
    }
  }

  void SetLanes(Wave* wave, Dim3 block) {
    uint32_t numbers[kRow];
    uint64_t active = 0;
    for (int lane = 0; lane < wave->lanes; ++lane) {
      numbers[lane] = wave->number * static_cast<uint32_t>(wave->lanes) + static_cast<uint32_t>(lane);
      active |= static_cast<uint64_t>(numbers[lane] < block.x) << lane;
    }
    wave->WriteVgpr(0, numbers, active);
    wave->SetExec(active);
  }

  void RunToBarrier(Wave* wave, const LaunchOptions& options) {
    while (!wave->done && !wave->at_barrier) {
      const uint64_t at = wave->pc;
      try {
        const Instruction& instruction = program_.At(at);
        wave->pc = at + static_cast<uint64_t>(instruction.size);
        ++wave->executed;
        if (options.trace) options.trace(number_, *wave, instruction);
        if (instruction.dual != nullptr) {
          ExecuteDual(*wave, instruction);
        } else {
          instruction.semantics->execute(*wave, instruction);
        }
        if (wave->executed > options.endless) throw Fault("the wave ran ", options.endless, " instructions and did not end");
      } catch (const Fault& fault) {
        std::string text;
        try {
          text = Print(program_.At(at));
        } catch (const Fault&) {
          text = "an unknown instruction";
        }
        throw Fault(kernel_.name, ", workgroup (", number_.x, ", ", number_.y, ", ", number_.z, "), wave ", wave->number, ", instruction ",
                    wave->executed, " at ", Hex{at}, ", ", text, ": ", fault.what());
      }
    }
  }

  Program& program_;
  const Kernel& kernel_;
  const std::vector<uint8_t>& kernargs_;
  const Dim3 number_;
  Lds lds_;
  std::vector<std::unique_ptr<Wave>> waves_;
};

}  // namespace

LaunchCounts Launch(Program& program, const Kernel& kernel, Memory& memory, Dim3 grid, Dim3 block, uint32_t dynamic_lds,
                    const std::vector<uint8_t>& kernargs, const LaunchOptions& options) {
  if (block.y != 1 || block.z != 1) throw Fault("blocks of more than one dimension are not modelled");
  if (block.x == 0 || block.x > kernel.max_workgroup_size) {
    throw Fault(kernel.name, ": a block of ", block.x, " threads; the kernel was compiled for at most ", kernel.max_workgroup_size);
  }
  if (kernargs.size() != kernel.kernarg_size) {
    throw Fault(kernel.name, ": ", kernargs.size(), " bytes of arguments; the kernel has ", kernel.kernarg_size);
  }
  memory.Register(kernargs.data(), kernargs.size());
  std::mt19937_64 random(options.seed);
  LaunchCounts counts;
  uint64_t index = 0;
  try {
    for (uint32_t z = 0; z < grid.z; ++z) {
      for (uint32_t y = 0; y < grid.y; ++y) {
        for (uint32_t x = 0; x < grid.x; ++x) {
          Group(program, kernel, memory, {x, y, z}, block, kernel.group_segment_size + dynamic_lds, kernargs, index++)
              .Run(options, &random, &counts);
        }
      }
    }
  } catch (...) {
    memory.Free(reinterpret_cast<uintptr_t>(kernargs.data()));
    throw;
  }
  memory.Free(reinterpret_cast<uintptr_t>(kernargs.data()));
  return counts;
}

}  // namespace simulator
