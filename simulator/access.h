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
  // The part of a register that a short load writes from `bytes`; the rest is as before. For values, and for which of
  // their bits have none.
  uint32_t Short(const void* from, uint32_t before) const {
    uint32_t word = 0;
    memcpy(&word, from, static_cast<size_t>(bytes));
    if (sign) {
      const int unused = 32 - 8 * bytes;
      word = static_cast<uint32_t>(static_cast<int32_t>(word << unused) >> unused);
    }
    if (part == Part::kLowHalf) return (before & 0xffff0000) | (word & 0xffff);
    if (part == Part::kHighHalf) return (before & 0xffff) | word << 16;
    return word;
  }
  // The bits of a register that a short store takes.
  uint32_t ShortMask() const { return (bytes == 1 ? 0xffu : 0xffffu) << (part == Part::kHighHalf ? 16 : 0); }

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

// Memory has a byte for each of its bytes: the bits that have a value. nullptr: all.
inline bool AllDefined(const uint8_t* defined, int bytes) {
  if (defined == nullptr) return true;
  uint8_t all = 0xff;
  for (int i = 0; i < bytes; ++i) all &= defined[i];
  return all == 0xff;
}

// Puts what a load gives into the registers from `first` on, lane by lane.
class LoadedRows {
 public:
  LoadedRows(Wave& wave, const Access& access, int first) : wave_(wave), access_(access), first_(first) {}

  void Set(int lane, const void* bytes, const uint8_t* defined) {
    uint32_t words[4];
    if (access_.bytes >= 4) {
      memcpy(words, bytes, static_cast<size_t>(access_.bytes));
    } else {
      words[0] = access_.Short(bytes, wave_.VgprWords(first_)[lane]);
    }
    for (int i = 0; i < access_.words(); ++i) rows_[i][lane] = words[i];
    const uint64_t bit = uint64_t{1} << lane;
    if (AllDefined(defined, access_.bytes) && (access_.part == Access::Part::kWhole || (wave_.VgprDefined(first_) & bit) != 0)) return;
    uint8_t unset[16] = {};
    for (int i = 0; defined != nullptr && i < access_.bytes; ++i) unset[i] = static_cast<uint8_t>(~defined[i]);
    if (access_.bytes < 4) {
      unset_[0][lane] = access_.Short(unset, wave_.VgprUnset(first_, lane));
    } else {
      for (int i = 0; i < access_.words(); ++i) memcpy(&unset_[i][lane], unset + 4 * i, sizeof(uint32_t));
    }
    undefined_ |= bit;
  }
  void Set(int lane, uint32_t word, uint32_t unset) {
    const uint32_t defined = ~unset;
    Set(lane, &word, reinterpret_cast<const uint8_t*>(&defined));
  }

  // Writes the registers and lets them wait for `counter`.
  void Finish(uint64_t active, Counter counter) {
    for (int i = 0; i < access_.words(); ++i) {
      wave_.WriteLoaded(first_ + i, rows_[i], kAllLanes, active, counter);
      if ((undefined_ & active) != 0) wave_.SetUnset(first_ + i, unset_[i], undefined_ & active);
    }
    wave_.Issue(counter, true, first_, access_.words());
  }

 private:
  Wave& wave_;
  const Access access_;
  const int first_;
  alignas(64) uint32_t rows_[4][kRow];
  uint64_t undefined_ = 0;     // lanes of which a bit has no value
  uint32_t unset_[4][kRow];    // their bits
};

// The bytes that a store takes from a lane.
class StoredRows {
 public:
  StoredRows(Wave& wave, const Access& access, int first) : wave_(wave), access_(access), first_(first) {
    for (int i = 0; i < access.words(); ++i) {
      rows_[i] = wave.Vgpr(first + i);
      defined_ &= wave.VgprDefined(first + i);
    }
    for (uint64_t rest = access.bytes < 4 ? ~defined_ & wave.exec() : 0; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctzll(rest);
      if ((wave.VgprUnset(first, lane) & access.ShortMask()) == 0) defined_ |= uint64_t{1} << lane;
    }
  }
  // The lanes whose bytes all have values.
  uint64_t defined() const { return defined_; }

  void Get(int lane, uint8_t* bytes) const {
    uint32_t words[4];
    for (int i = 0; i < access_.words(); ++i) words[i] = rows_[i][lane];
    Take(words, bytes);
  }
  // The bits that have a value, as memory notes them.
  void GetDefined(int lane, uint8_t* bytes) const {
    if (defined_ >> lane & 1) {
      memset(bytes, 0xff, static_cast<size_t>(access_.bytes));
      return;
    }
    uint32_t words[4];
    for (int i = 0; i < access_.words(); ++i) words[i] = ~wave_.VgprUnset(first_ + i, lane);
    Take(words, bytes);
  }

 private:
  void Take(uint32_t* words, uint8_t* bytes) const {
    if (access_.part == Access::Part::kHighHalf) words[0] >>= 16;
    memcpy(bytes, words, static_cast<size_t>(access_.bytes));
  }

  const Wave& wave_;
  const Access access_;
  const int first_;
  const uint32_t* rows_[4] = {};
  uint64_t defined_ = kAllLanes;
};

}  // namespace simulator

#endif
