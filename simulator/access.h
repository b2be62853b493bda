// What loads and stores of LDS, global memory and scratch have in common: how a lane's bytes lie in registers.
#ifndef AOTRITON_SIMULATOR_ACCESS_H_
#define AOTRITON_SIMULATOR_ACCESS_H_

#include <cstring>

#include "simulator/wave.h"

namespace simulator {

struct Access {
  enum class Part : uint8_t { kWhole, kLowHalf, kHighHalf };
  int bytes = 4;
  bool sign = false;          // a short load extends its sign
  Part part = Part::kWhole;   // of the register that a short access uses; the other half stays

  int words() const { return (bytes + 3) / 4; }

  static Access Of(const int* parameter) {
    Access access;
    access.bytes = parameter[0];
    access.sign = parameter[1] != 0;
    access.part = static_cast<Part>(parameter[2]);
    return access;
  }
  Semantics ToSemantics(Execute execute) const {
    Semantics semantics;
    semantics.execute = execute;
    semantics.parameter[0] = bytes;
    semantics.parameter[1] = sign;
    semantics.parameter[2] = static_cast<int>(part);
    return semantics;
  }
};

// Puts what a load gives into the registers from `first` on, lane by lane.
class LoadedRows {
 public:
  LoadedRows(Wave& wave, const Access& access, int first) : wave_(wave), access_(access), first_(first) {
    for (uint64_t& lanes : defined_) lanes = 0;
  }

  void Set(int lane, const void* bytes, bool defined) {
    const uint64_t bit = uint64_t{1} << lane;
    if (access_.bytes >= 4) {
      uint32_t words[4];
      memcpy(words, bytes, static_cast<size_t>(access_.bytes));
      for (int i = 0; i < access_.words(); ++i) rows_[i][lane] = words[i];
    } else {
      uint32_t word = 0;
      memcpy(&word, bytes, static_cast<size_t>(access_.bytes));
      if (access_.sign) {
        const int unused = 32 - 8 * access_.bytes;
        word = static_cast<uint32_t>(static_cast<int32_t>(word << unused) >> unused);
      }
      const uint32_t before = wave_.VgprWords(first_)[lane];
      if (access_.part == Access::Part::kLowHalf) word = (before & 0xffff0000) | (word & 0xffff);
      if (access_.part == Access::Part::kHighHalf) word = (before & 0xffff) | word << 16;
      rows_[0][lane] = word;
    }
    for (int i = 0; i < access_.words(); ++i) defined_[i] |= defined ? bit : 0;
  }

  // One word of what Set gave has no value.
  void Undefine(int lane, int word) { defined_[word] &= ~(uint64_t{1} << lane); }

  // Writes the registers and lets them wait for `counter`.
  void Finish(uint64_t active, Counter counter) {
    for (int i = 0; i < access_.words(); ++i) {
      wave_.WriteLoaded(first_ + i, rows_[i], defined_[i], active);
    }
    wave_.Issue(counter, true, first_, access_.words());
  }

 private:
  Wave& wave_;
  const Access access_;
  const int first_;
  alignas(64) uint32_t rows_[4][kRow];
  uint64_t defined_[4];
};

// The bytes that a store takes from a lane.
class StoredRows {
 public:
  StoredRows(Wave& wave, const Access& access, int first) : access_(access) {
    for (int i = 0; i < access.words(); ++i) {
      rows_[i] = wave.Vgpr(first + i);
      defined_[i] = wave.VgprDefined(first + i);
    }
  }
  uint64_t defined(int word) const { return defined_[word]; }
  uint64_t defined() const { return defined_[0] & defined_[1] & defined_[2] & defined_[3]; }

  void Get(int lane, uint8_t* bytes) const {
    if (access_.bytes >= 4) {
      for (int i = 0; i < access_.words(); ++i) memcpy(bytes + 4 * i, &rows_[i][lane], 4);
      return;
    }
    const uint32_t word = access_.part == Access::Part::kHighHalf ? rows_[0][lane] >> 16 : rows_[0][lane];
    memcpy(bytes, &word, static_cast<size_t>(access_.bytes));
  }

 private:
  const Access access_;
  const uint32_t* rows_[4] = {};
  uint64_t defined_[4] = {kAllLanes, kAllLanes, kAllLanes, kAllLanes};
};

}  // namespace simulator

#endif
