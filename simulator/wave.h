#ifndef AOTRITON_SIMULATOR_WAVE_H_
#define AOTRITON_SIMULATOR_WAVE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "simulator/fault.h"
#include "simulator/instruction.h"
#include "simulator/memory.h"
#include "simulator/numbers.h"

namespace simulator {

constexpr int kRow = 64;  // lanes that a row of registers has room for
constexpr int kVgprs = 512;
constexpr uint64_t kAllLanes = ~uint64_t{0};

// The bits without a value of a row of words, or of two. Mostly there are none, and then `bits` is not filled in.
struct Unset {
  bool any = false;
  alignas(64) uint32_t bits[2 * kRow];
};

// What waits for a load: the counters of s_waitcnt and, on gfx12, of s_wait_*cnt.
enum class Counter : uint8_t { kVector, kLds, kScalar };

// Local memory of a workgroup. Within one interval between barriers, what one wave writes no other may touch.
class Lds {
 public:
  Lds(uint32_t size, uint32_t waves) : bytes(size), defined(size), shadow_(size), waves_(waves) {}

  void NextInterval() { ++interval_; }
  void Read(uint32_t address, uint32_t size, uint32_t wave);
  void Write(uint32_t address, uint32_t size, uint32_t wave);

  std::vector<uint8_t> bytes, defined;  // of each byte, its bits that have a value

 private:
  struct Shadow {
    uint32_t written = 0, read = 0;  // the interval
    uint16_t writer = 0, reader = 0;
    bool several_readers = false;
  };
  void Check(uint32_t address, uint32_t size) const;

  std::vector<Shadow> shadow_;
  uint32_t interval_ = 1;
  uint32_t waves_;
};

// One wave's registers, and which of their bits were never given a value.
class Wave {
 public:
  Wave(Isa isa, int lanes, uint32_t number, Lds* lds, const Memory* memory, uint32_t scratch_size);

  const Isa isa;
  const int lanes;
  const uint32_t number;  // in its workgroup
  Lds& lds;
  const Memory& memory;
  bool flushes_matrix_subnormals = false;  // gfx90a

  uint64_t pc = 0;
  bool done = false, at_barrier = false;
  uint64_t executed = 0;

  // --- scalar registers
  uint32_t Scalar(const Operand& operand) const;
  uint64_t Scalar64(const Operand& operand, Type type = Type::kPair) const;
  uint32_t Sgpr(int index) const;
  uint64_t Sgpr64(int index) const { return Sgpr(index) | uint64_t{Sgpr(index + 1)} << 32; }
  // The bits of a scalar operand that have no value.
  uint32_t ScalarUnset(const Operand& operand) const;
  uint64_t Scalar64Unset(const Operand& operand) const;
  void SetSgpr(int index, uint32_t value, uint32_t unset = 0);
  void SetScalar(const Operand& operand, uint32_t value, uint32_t unset = 0);
  void SetScalar64(const Operand& operand, uint64_t value, uint64_t unset = 0);
  // The values that a scalar instruction read since ClearScalarRead were all defined, in all of their bits.
  bool scalar_read_defined() const { return scalar_read_defined_; }
  void ClearScalarRead() { scalar_read_defined_ = true; }
  bool scc() const;
  void SetScc(bool value, bool defined) { scc_ = value; scc_defined_ = defined; }
  bool scc_defined() const { return scc_defined_; }
  // A branch, an address: what an undefined value may not decide.
  void RequireDefinedScalars(const char* use) const {
    if (!scalar_read_defined_) throw Fault("an undefined scalar register decides ", use);
  }

  // A lane mask: 64 bits, or 32 with 32 lanes. *unset: those without a value.
  uint64_t LaneMask(const Operand& operand, uint64_t* unset) const;
  void SetLaneMask(const Operand& operand, uint64_t value, uint64_t unset);

  uint64_t exec() const { return exec_; }
  uint64_t all() const { return lanes == 64 ? kAllLanes : (uint64_t{1} << lanes) - 1; }
  void SetExec(uint64_t value);
  const uint32_t* exec_words() const { return exec_words_; }

  // --- vector registers
  const uint32_t* Vgpr(int index) const {
    if (outstanding_vgprs_ != 0 && vgpr_pending_[index] != 0) ThrowPending(index);
    return vgprs_[index];
  }
  // Without a check, for what writes a part of a register.
  uint32_t* VgprWords(int index) { return vgprs_[index]; }
  const uint32_t* SgprWords() const { return sgprs_; }
  // The lanes whose word has a value in all its bits; the bits of one that have none.
  uint64_t VgprDefined(int index) const { return vgpr_defined_[index]; }
  uint32_t VgprUnset(int index, int lane) const { return vgpr_defined_[index] >> lane & 1 ? 0 : vgpr_unset_[index][lane]; }
  // Writes the active lanes. Those outside `defined` have no value in any bit.
  void WriteVgpr(int index, const uint32_t* row, uint64_t defined) { WriteVgpr(index, row, defined, exec_); }
  void WriteVgpr(int index, const uint32_t* row, uint64_t defined, uint64_t active);
  // What the bits without a value are, in lanes that were written last.
  void SetUnset(int index, const uint32_t* unset, uint64_t active);
  void WriteWord(int index, int lane, uint32_t word, uint32_t unset);

  // As WriteVgpr, by a load: those that one counter counts return in order, so one may follow another into the same register.
  void WriteLoaded(int index, const uint32_t* row, uint64_t defined, uint64_t active, Counter counter);

  // The words of an operand in all lanes, at `room` if they are not in a register; 64-bit ones take two rows.
  // Clears in *defined the lanes that lack the value of a bit. Modifiers are not looked at.
  const uint32_t* Rows(const Operand& operand, Type type, uint32_t* room, uint64_t* defined) const;
  // Their bits without a value.
  void UnsetRows(const Operand& operand, Type type, uint32_t* bits) const;

  // Active lanes of a register that an address or a store uses must have a value.
  void RequireDefined(uint64_t defined, uint64_t active, const char* use) const;

  // --- outstanding loads
  void Issue(Counter counter, bool vgprs, int first, int count);
  // The last two were one instruction, with neighbouring registers.
  void MergeIssued(Counter counter);
  void Wait(Counter counter, unsigned remaining);
  // LDS and scalar loads share gfx9's and gfx11's lgkmcnt; scalar loads return in any order.
  void WaitLgkm(unsigned remaining);
  // Others may read after a barrier only what has arrived before it.
  void RequireStoresArrived() const;

  // --- scratch: words by lane
  std::vector<uint32_t> scratch, scratch_unset;

 private:
  struct Outstanding {
    bool vgprs;
    int first, count;
  };
  [[noreturn]] void ThrowPending(int vgpr) const;
  void Complete(const Outstanding& load);
  void SetDefined(int index, uint64_t defined, uint64_t active);

  alignas(64) uint32_t vgprs_[kVgprs][kRow];
  uint64_t vgpr_defined_[kVgprs] = {};
  uint32_t vgpr_unset_[kVgprs][kRow];  // where a lane is not defined
  uint8_t vgpr_pending_[kVgprs] = {};
  int outstanding_vgprs_ = 0;
  uint32_t sgprs_[128] = {};
  uint32_t sgpr_unset_[128];
  uint8_t sgpr_pending_[128] = {};
  mutable bool scalar_read_defined_ = true;
  bool scc_ = false, scc_defined_ = false;
  uint64_t exec_ = 0;
  alignas(64) uint32_t exec_words_[kRow];
  std::deque<Outstanding> outstanding_[3];
};

}  // namespace simulator

#endif
