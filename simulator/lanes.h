// Element-wise instructions from one function on numbers:
//
//   DefineLanes({"v_add_f32"}, [](float a, float b) { return a + b; });
//
// The function's types say how sources and result lie in registers and which modifiers they take.
#ifndef AOTRITON_SIMULATOR_LANES_H_
#define AOTRITON_SIMULATOR_LANES_H_

#include <type_traits>
#include <utility>
#include <vector>

#include "simulator/instruction.h"
#include "simulator/numbers.h"
#include "simulator/wave.h"

namespace simulator {

template <typename T>
struct Lane {
  static_assert(sizeof(T) == 4, "a word");
  static constexpr Type kType = Type::kWord;
  static T Get(const uint32_t* row, int lane) { return BitCast<T>(row[lane]); }
  static void Put(uint32_t* row, int lane, T value) { row[lane] = BitCast<uint32_t>(value); }
};
template <>
struct Lane<float> {
  static constexpr Type kType = Type::kFloat;
  static float Get(const uint32_t* row, int lane) { return Float(row[lane]); }
  static void Put(uint32_t* row, int lane, float value) { row[lane] = Bits(value); }
};
template <>
struct Lane<Half> {
  static constexpr Type kType = Type::kHalf;
  static Half Get(const uint32_t* row, int lane) { return {static_cast<uint16_t>(row[lane])}; }
  static void Put(uint32_t* row, int lane, Half value) { row[lane] = value.bits; }
};
template <typename T>
struct PairLane {
  static T Get(const uint32_t* row, int lane) { return BitCast<T>(row[lane] | uint64_t{row[kRow + lane]} << 32); }
  static void Put(uint32_t* row, int lane, T value) {
    row[lane] = static_cast<uint32_t>(BitCast<uint64_t>(value));
    row[kRow + lane] = static_cast<uint32_t>(BitCast<uint64_t>(value) >> 32);
  }
};
template <>
struct Lane<uint64_t> : PairLane<uint64_t> {
  static constexpr Type kType = Type::kPair;
};
template <>
struct Lane<int64_t> : PairLane<int64_t> {
  static constexpr Type kType = Type::kSignedPair;
};
template <>
struct Lane<double> : PairLane<double> {
  static constexpr Type kType = Type::kDouble;
};
// What a comparison gives: 1 or 0.
template <>
struct Lane<bool> {
  static constexpr Type kType = Type::kWord;
  static void Put(uint32_t* row, int lane, bool value) { row[lane] = value; }
};

// The function as an object; it has no state, so any one will do.
template <typename F>
const F& Instance() {
  static_assert(std::is_empty_v<F>, "a function that captures nothing");
  static const char instance = 0;
  return reinterpret_cast<const F&>(instance);
}

template <typename F, typename R, typename A>
void RunLanes(R (*)(A), uint32_t* __restrict r, const uint32_t* a, const uint32_t*, const uint32_t*, int lanes) {
  const F& function = Instance<F>();
  for (int i = 0; i < lanes; ++i) Lane<R>::Put(r, i, function(Lane<A>::Get(a, i)));
}
template <typename F, typename R, typename A, typename B>
void RunLanes(R (*)(A, B), uint32_t* __restrict r, const uint32_t* a, const uint32_t* b, const uint32_t*, int lanes) {
  const F& function = Instance<F>();
  for (int i = 0; i < lanes; ++i) Lane<R>::Put(r, i, function(Lane<A>::Get(a, i), Lane<B>::Get(b, i)));
}
template <typename F, typename R, typename A, typename B, typename C>
void RunLanes(R (*)(A, B, C), uint32_t* __restrict r, const uint32_t* a, const uint32_t* b, const uint32_t* c, int lanes) {
  const F& function = Instance<F>();
  for (int i = 0; i < lanes; ++i) Lane<R>::Put(r, i, function(Lane<A>::Get(a, i), Lane<B>::Get(b, i), Lane<C>::Get(c, i)));
}

template <typename R, typename... Arguments>
void SetTypes(R (*)(Arguments...), Semantics* semantics) {
  const Type types[] = {Lane<Arguments>::kType...};
  semantics->source_count = sizeof...(Arguments);
  for (int i = 0; i < semantics->source_count; ++i) semantics->sources[i] = types[i];
  semantics->result = Lane<R>::kType;
}

// Sources through DPP, SDWA, op_sel and sign modifiers; clamp, output scale; the active lanes.
void ExecuteLanes(Wave& wave, const Instruction& instruction);
// Both halves of a VOPD, which read before either writes.
void ExecuteDual(Wave& wave, const Instruction& instruction);
// As ExecuteLanes up to the result, which is at `result`; what of it has no value in active lanes.
void ComputeLanes(Wave& wave, const Instruction& instruction, uint32_t* result, Unset* unset);
// One source with its modifiers.
const uint32_t* SourceRows(const Wave& wave, const Instruction& instruction, int source, Type type, uint32_t* room, uint64_t* defined);
// Its bits without a value.
void SourceUnset(const Wave& wave, const Instruction& instruction, int source, Type type, uint32_t* bits);
// Where the value of a lane goes, and which lanes a DPP with bound_ctrl 0 leaves alone.
void WriteResult(Wave& wave, const Instruction& instruction, Type type, uint32_t* result, Unset* unset);
// Of lanes that are not defined no bit is.
void WriteResult(Wave& wave, const Instruction& instruction, Type type, uint32_t* result, uint64_t defined);
// A sum's bits without a value, from those of what is added.
inline uint64_t Upwards(uint64_t unset) { return unset == 0 ? 0 : ~uint64_t{0} << __builtin_ctzll(unset); }

template <typename F>
Semantics LanesOf(F function, Execute execute) {
  Semantics semantics;
  semantics.execute = execute;
  semantics.lanes = [](uint32_t* r, const uint32_t* a, const uint32_t* b, const uint32_t* c, int lanes) {
    RunLanes<F>(decltype(+std::declval<F>())(), r, a, b, c, lanes);
  };
  SetTypes(+function, &semantics);
  return semantics;
}

template <typename F>
void DefineLanes(const std::vector<const char*>& names, F function) {
  Define(names, LanesOf(function, ExecuteLanes));
}
// Each bit of the result is made of bits at its place and below; `controls` are not added: sources, a bit for each.
template <typename F>
void DefineUpwards(const std::vector<const char*>& names, F function, int controls = 0) {
  Semantics semantics = LanesOf(function, ExecuteLanes);
  semantics.spread = Spread::kUpwards;
  semantics.controls = controls;
  Define(names, semantics);
}
// Each bit of the result is made of at most one bit of each source; `controls` say which.
template <typename F>
void DefineBits(const std::vector<const char*>& names, F function, int controls = 0) {
  Semantics semantics = LanesOf(function, ExecuteLanes);
  semantics.spread = Spread::kBits;
  semantics.controls = controls;
  Define(names, semantics);
}
// The destination is the last source too (v_fmac_f32).
template <typename F>
void DefineAccumulating(const std::vector<const char*>& names, F function) {
  Semantics semantics = LanesOf(function, ExecuteLanes);
  semantics.reads_result = true;
  Define(names, semantics);
}

}  // namespace simulator

#endif
