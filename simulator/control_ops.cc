// The flow of a program: branches, barriers, waits, and what changes nothing that is modelled.
#include "simulator/wave.h"

namespace simulator {
namespace {

void Jump(Wave& wave, const Instruction& instruction) {
  wave.pc = instruction.address + static_cast<uint64_t>(instruction.size) + static_cast<uint64_t>(int64_t{4} * instruction.immediate());
}

template <bool kWanted>
void BranchScc(Wave& wave, const Instruction& instruction) {
  wave.ClearScalarRead();
  const bool scc = wave.scc();
  wave.RequireDefinedScalars("a branch");
  if (scc == kWanted) Jump(wave, instruction);
}

template <bool kZero>
void BranchVcc(Wave& wave, const Instruction& instruction) {
  uint64_t unset;
  const uint64_t vcc = wave.LaneMask(Vcc(), &unset);
  // One bit that is set suffices.
  if (unset != 0 && (vcc & ~unset) == 0) throw Fault("an undefined scalar register decides a branch");
  if ((vcc == 0) == kZero) Jump(wave, instruction);
}

template <bool kZero>
void BranchExec(Wave& wave, const Instruction& instruction) {
  if ((wave.exec() == 0) == kZero) Jump(wave, instruction);
}

void GetPc(Wave& wave, const Instruction& instruction) {
  wave.SetScalar64(instruction.destination, instruction.address + static_cast<uint64_t>(instruction.size));
}

void SetPc(Wave& wave, const Instruction& instruction) {
  wave.ClearScalarRead();
  const uint64_t target = wave.Scalar64(instruction.source[0]);
  wave.RequireDefinedScalars("a jump");
  wave.pc = target;
}

void SwapPc(Wave& wave, const Instruction& instruction) {
  wave.ClearScalarRead();
  const uint64_t target = wave.Scalar64(instruction.source[0]);
  wave.RequireDefinedScalars("a jump");
  GetPc(wave, instruction);
  wave.pc = target;
}

void Signal(Wave& wave, const Instruction&) { wave.RequireStoresArrived(); }

void Barrier(Wave& wave, const Instruction& instruction) {
  Signal(wave, instruction);
  wave.at_barrier = true;
}

void WaitCounters(Wave& wave, const Instruction& instruction) {
  const auto counts = static_cast<unsigned>(instruction.immediate());
  if (wave.isa == Isa::kGfx9) {
    wave.Wait(Counter::kVector, (counts & 0xf) | (counts >> 14 & 3) << 4);
    wave.WaitLgkm(counts >> 8 & 0xf);
  } else {
    wave.Wait(Counter::kVector, counts >> 10 & 0x3f);
    wave.WaitLgkm(counts >> 4 & 0x3f);
  }
}

// gfx12 has an instruction for each counter.
void WaitLoads(Wave& wave, const Instruction& instruction) { wave.Wait(Counter::kVector, static_cast<unsigned>(instruction.immediate()) & 0x3f); }
void WaitLds(Wave& wave, const Instruction& instruction) { wave.Wait(Counter::kLds, static_cast<unsigned>(instruction.immediate()) & 0x3f); }
void WaitScalars(Wave& wave, const Instruction& instruction) { wave.Wait(Counter::kScalar, static_cast<unsigned>(instruction.immediate()) & 0x3f); }
void WaitLoadsAndLds(Wave& wave, const Instruction& instruction) {
  wave.Wait(Counter::kVector, static_cast<unsigned>(instruction.immediate()) >> 8 & 0x3f);
  WaitLds(wave, instruction);
}
void WaitStoresAndLds(Wave& wave, const Instruction& instruction) { WaitLds(wave, instruction); }

void Nothing(Wave&, const Instruction&) {}

void DefineOne(const std::vector<const char*>& names, Execute execute, int sources = 0) {
  Semantics semantics;
  semantics.execute = execute;
  semantics.source_count = sources;
  Define(names, semantics);
}

}  // namespace

void DefineControlInstructions() {
  DefineOne({"s_branch"}, Jump);
  DefineOne({"s_cbranch_scc0"}, BranchScc<false>);
  DefineOne({"s_cbranch_scc1"}, BranchScc<true>);
  DefineOne({"s_cbranch_vccz"}, BranchVcc<true>);
  DefineOne({"s_cbranch_vccnz"}, BranchVcc<false>);
  DefineOne({"s_cbranch_execz"}, BranchExec<true>);
  DefineOne({"s_cbranch_execnz"}, BranchExec<false>);
  DefineOne({"s_getpc_b64"}, GetPc);
  DefineOne({"s_setpc_b64"}, SetPc, 1);
  DefineOne({"s_swappc_b64"}, SwapPc, 1);
  DefineOne({"s_endpgm"}, [](Wave& wave, const Instruction&) { wave.done = true; });
  // Waves run one after another, so a signal has nobody to wake.
  DefineOne({"s_barrier"}, Barrier);
  DefineOne({"s_barrier_wait"}, [](Wave& wave, const Instruction&) { wave.at_barrier = true; });
  DefineOne({"s_waitcnt"}, WaitCounters);
  DefineOne({"s_wait_loadcnt"}, WaitLoads);
  DefineOne({"s_wait_dscnt"}, WaitLds);
  DefineOne({"s_wait_kmcnt"}, WaitScalars);
  DefineOne({"s_wait_loadcnt_dscnt"}, WaitLoadsAndLds);
  DefineOne({"s_wait_storecnt_dscnt"}, WaitStoresAndLds);
  DefineOne({"s_barrier_signal"}, Signal);
  DefineOne({"s_nop", "s_sleep", "s_setprio", "s_sendmsg", "s_clause", "s_delay_alu", "s_waitcnt_depctr",
             "s_wait_alu", "s_wait_idle", "s_waitcnt_vscnt", "s_wait_storecnt", "s_wait_samplecnt", "s_wait_bvhcnt", "s_wait_expcnt",
             "s_set_inst_prefetch_distance", "s_icache_inv", "s_code_end", "buffer_wbl2", "buffer_inv", "buffer_wbinvl1_vol",
             "buffer_gl0_inv", "buffer_gl1_inv", "global_inv", "global_wb", "global_wbinv"},
            Nothing);
}

}  // namespace simulator
