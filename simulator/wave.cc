#include "simulator/wave.h"

#include <cstring>

namespace simulator {
namespace {

// Inline constants 240 to 248 in the three widths; the last is 1/(2 pi).
constexpr uint32_t kFloats[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
constexpr uint32_t kHalves[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
constexpr uint64_t kDoubles[] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x4000000000000000,
                                 0xc000000000000000, 0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};

bool IsInlineFloat(int code) { return code >= 240 && code <= 248; }

uint64_t ConstantAs(const Operand& operand, Type type) {
  if (IsInlineFloat(operand.code)) {
    if (type == Type::kHalf) return kHalves[operand.code - 240];
    if (type == Type::kDouble) return kDoubles[operand.code - 240];
    return kFloats[operand.code - 240];
  }
  if (operand.code == 255 && type == Type::kDouble) return uint64_t{operand.value} << 32;
  if (operand.code == 255 && type == Type::kPair) return operand.value;
  return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(operand.value)));
}

}  // namespace

void Lds::Check(uint32_t address, uint32_t size) const {
  if (address > bytes.size() || size > bytes.size() - address) {
    throw Fault("an LDS access of ", size, " bytes at ", Hex{address}, " lies outside the workgroup's ", bytes.size(), " bytes");
  }
}

void Lds::Read(uint32_t address, uint32_t size, uint32_t wave) {
  Check(address, size);
  if (waves_ == 1) return;
  for (uint32_t i = address; i < address + size; ++i) {
    Shadow& shadow = shadow_[i];
    if (shadow.written == interval_ && shadow.writer != wave) {
      throw Fault("LDS race: wave ", wave, " reads byte ", Hex{i}, " that wave ", shadow.writer, " wrote with no barrier between");
    }
    if (shadow.read != interval_) {
      shadow.read = interval_;
      shadow.reader = static_cast<uint16_t>(wave);
      shadow.several_readers = false;
    } else if (shadow.reader != wave) {
      shadow.several_readers = true;
    }
  }
}

void Lds::Write(uint32_t address, uint32_t size, uint32_t wave) {
  Check(address, size);
  if (waves_ == 1) return;
  for (uint32_t i = address; i < address + size; ++i) {
    Shadow& shadow = shadow_[i];
    if (shadow.read == interval_ && (shadow.several_readers || shadow.reader != wave)) {
      throw Fault("LDS race: wave ", wave, " writes byte ", Hex{i}, " that another wave read with no barrier between");
    }
    shadow.written = interval_;
    shadow.writer = static_cast<uint16_t>(wave);
  }
}

Wave::Wave(Isa isa, int lanes, uint32_t number, Lds* lds, const Memory* memory, uint32_t scratch_size)
    : isa(isa), lanes(lanes), number(number), lds(*lds), memory(*memory),
      scratch(size_t{scratch_size + 3} / 4 * kRow), scratch_unset(scratch.size(), ~0u) {
  // A number that no sum survives.
  for (auto& row : vgprs_) {
    for (uint32_t& word : row) word = 0x7fc0dead;
  }
  memset(vgpr_unset_, 0xff, sizeof(vgpr_unset_));
  memset(sgpr_unset_, 0xff, sizeof(sgpr_unset_));
  SetExec(all());
  sgpr_unset_[kExecLo] = sgpr_unset_[kExecHi] = 0;
}

uint32_t Wave::Sgpr(int index) const {
  if (sgpr_pending_[index] != 0) throw Fault("s", index, " is read while a load into it is outstanding");
  scalar_read_defined_ &= sgpr_unset_[index] == 0;
  return sgprs_[index];
}

bool Wave::scc() const {
  scalar_read_defined_ &= scc_defined_;
  return scc_;
}

uint32_t Wave::Scalar(const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::kSgpr: return Sgpr(operand.index);
    case Operand::Kind::kConstant: return operand.value;
    case Operand::Kind::kScc: return scc();
    case Operand::Kind::kNull: return 0;
    case Operand::Kind::kVccIsZero: {
      uint64_t unset;
      const uint64_t vcc = LaneMask(Vcc(), &unset);
      scalar_read_defined_ &= unset == 0;
      return vcc == 0;
    }
    case Operand::Kind::kExecIsZero: return exec_ == 0;
    case Operand::Kind::kVgpr:
    case Operand::Kind::kNone: break;
  }
  throw Fault("a scalar operand is a vector register");
}

uint64_t Wave::Scalar64(const Operand& operand) const {
  if (operand.kind == Operand::Kind::kSgpr) return Sgpr64(operand.index);
  if (operand.kind == Operand::Kind::kConstant) return ConstantAs(operand, Type::kPair);
  return Scalar(operand);
}

uint32_t Wave::ScalarUnset(const Operand& operand) const {
  if (operand.kind == Operand::Kind::kSgpr) return sgpr_unset_[operand.index];
  const bool before = scalar_read_defined_;
  scalar_read_defined_ = true;
  Scalar(operand);
  const bool defined = scalar_read_defined_;
  scalar_read_defined_ = before;
  return defined ? 0 : ~0u;
}

uint64_t Wave::Scalar64Unset(const Operand& operand) const {
  if (operand.kind == Operand::Kind::kSgpr) return sgpr_unset_[operand.index] | uint64_t{sgpr_unset_[operand.index + 1]} << 32;
  return ScalarUnset(operand);
}

void Wave::SetSgpr(int index, uint32_t value, uint32_t unset) {
  if (sgpr_pending_[index] != 0) throw Fault("s", index, " is written while a load into it is outstanding");
  sgprs_[index] = value;
  sgpr_unset_[index] = unset;
  if (index == kExecLo || index == kExecHi) {
    if (unset != 0) throw Fault("exec is given an undefined value");
    SetExec(sgprs_[kExecLo] | uint64_t{sgprs_[kExecHi]} << 32);
  }
}

void Wave::SetScalar(const Operand& operand, uint32_t value, uint32_t unset) {
  if (operand.kind == Operand::Kind::kSgpr) SetSgpr(operand.index, value, unset);
}

void Wave::SetScalar64(const Operand& operand, uint64_t value, uint64_t unset) {
  if (operand.kind != Operand::Kind::kSgpr) return;
  SetSgpr(operand.index, static_cast<uint32_t>(value), static_cast<uint32_t>(unset));
  SetSgpr(operand.index + 1, static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(unset >> 32));
}

uint64_t Wave::LaneMask(const Operand& operand, uint64_t* unset) const {
  const bool before = scalar_read_defined_;
  const uint64_t mask = lanes == 64 ? Scalar64(operand) : Scalar(operand);
  *unset = lanes == 64 ? Scalar64Unset(operand) : ScalarUnset(operand);
  scalar_read_defined_ = before;
  return mask;
}

void Wave::SetLaneMask(const Operand& operand, uint64_t value, uint64_t unset) {
  if (lanes == 64) {
    SetScalar64(operand, value, unset);
  } else {
    SetScalar(operand, static_cast<uint32_t>(value), static_cast<uint32_t>(unset));
  }
}

void Wave::SetExec(uint64_t value) {
  exec_ = value & all();
  sgprs_[kExecLo] = static_cast<uint32_t>(exec_);
  sgprs_[kExecHi] = static_cast<uint32_t>(exec_ >> 32);
  for (int i = 0; i < kRow; ++i) exec_words_[i] = -static_cast<uint32_t>(exec_ >> i & 1);
}

void Wave::ThrowPending(int vgpr) const {
  throw Fault(vgpr < kFirstAccVgpr ? "v" : "a", vgpr % kFirstAccVgpr, " is used while a load into it is outstanding");
}

void Wave::SetUnset(int index, const uint32_t* unset, uint64_t active) {
  uint64_t whole = 0;
  for (int i = 0; i < lanes; ++i) {
    whole |= static_cast<uint64_t>(unset[i] == 0) << i;
    if (active >> i & 1) vgpr_unset_[index][i] = unset[i];
  }
  vgpr_defined_[index] = (vgpr_defined_[index] & ~active) | (whole & active);
}

void Wave::WriteWord(int index, int lane, uint32_t word, uint32_t unset) {
  Vgpr(index);
  const uint64_t bit = uint64_t{1} << lane;
  vgprs_[index][lane] = word;
  vgpr_unset_[index][lane] = unset;
  vgpr_defined_[index] = unset == 0 ? vgpr_defined_[index] | bit : vgpr_defined_[index] & ~bit;
}

void Wave::SetDefined(int index, uint64_t defined, uint64_t active) {
  for (uint64_t missing = active & ~defined & all(); missing != 0; missing &= missing - 1) {
    vgpr_unset_[index][__builtin_ctzll(missing)] = ~0u;
  }
  vgpr_defined_[index] = (vgpr_defined_[index] & ~active) | (defined & active);
}

void Wave::WriteVgpr(int index, const uint32_t* row, uint64_t defined, uint64_t active) {
  if (outstanding_vgprs_ != 0 && vgpr_pending_[index] != 0) ThrowPending(index);
  uint32_t* const words = vgprs_[index];
  if (active == all()) {
    memcpy(words, row, sizeof(uint32_t) * lanes);
  } else if (active == exec_) {
    for (int i = 0; i < lanes; ++i) words[i] = (words[i] & ~exec_words_[i]) | (row[i] & exec_words_[i]);
  } else {
    for (int i = 0; i < lanes; ++i) words[i] = active >> i & 1 ? row[i] : words[i];
  }
  SetDefined(index, defined, active);
}

void Wave::WriteLoaded(int index, const uint32_t* row, uint64_t defined, uint64_t active) {
  uint32_t* const words = vgprs_[index];
  for (int i = 0; i < lanes; ++i) words[i] = active >> i & 1 ? row[i] : words[i];
  SetDefined(index, defined, active);
}

void Wave::UnsetRows(const Operand& operand, Type type, uint32_t* bits) const {
  const bool two = type == Type::kPair || type == Type::kDouble;
  const uint64_t scalar = operand.is_vgpr() ? 0 : two ? Scalar64Unset(operand) : ScalarUnset(operand);
  for (int word = 0; word <= (two ? 1 : 0); ++word) {
    for (int i = 0; i < kRow; ++i) {
      bits[word * kRow + i] = operand.is_vgpr() ? VgprUnset(operand.index + word, i) : static_cast<uint32_t>(scalar >> (32 * word));
    }
  }
}

const uint32_t* Wave::Rows(const Operand& operand, Type type, uint32_t* room, uint64_t* defined) const {
  const bool two = type == Type::kPair || type == Type::kDouble;
  if (operand.is_vgpr()) {
    *defined &= vgpr_defined_[operand.index];
    if (two) {
      *defined &= vgpr_defined_[operand.index + 1];
      Vgpr(operand.index + 1);
    }
    return Vgpr(operand.index);
  }
  uint64_t value;
  if (operand.kind == Operand::Kind::kConstant) {
    value = ConstantAs(operand, type);
  } else {
    const bool before = scalar_read_defined_;
    scalar_read_defined_ = true;
    value = two ? Scalar64(operand) : Scalar(operand);
    if (!scalar_read_defined_) *defined = 0;
    scalar_read_defined_ = before;
  }
  for (int i = 0; i < kRow; ++i) room[i] = static_cast<uint32_t>(value);
  if (two) {
    for (int i = 0; i < kRow; ++i) room[kRow + i] = static_cast<uint32_t>(value >> 32);
  }
  return room;
}

void Wave::RequireDefined(uint64_t defined, uint64_t active, const char* use) const {
  const uint64_t missing = active & ~defined;
  if (missing == 0) return;
  throw Fault("lane ", __builtin_ctzll(missing), " uses an undefined value as ", use);
}

void Wave::Issue(Counter counter, bool vgprs, int first, int count) {
  outstanding_[static_cast<int>(counter)].push_back({vgprs, first, count});
  for (int i = first; i < first + count; ++i) {
    ++(vgprs ? vgpr_pending_ : sgpr_pending_)[i];
    outstanding_vgprs_ += vgprs;
  }
}

void Wave::MergeIssued(Counter counter) {
  auto& queue = outstanding_[static_cast<int>(counter)];
  const Outstanding last = queue.back();
  queue.pop_back();
  queue.back().count += last.count;
}

void Wave::Complete(const Outstanding& load) {
  for (int i = load.first; i < load.first + load.count; ++i) {
    --(load.vgprs ? vgpr_pending_ : sgpr_pending_)[i];
    outstanding_vgprs_ -= load.vgprs;
  }
}

void Wave::Wait(Counter counter, unsigned remaining) {
  auto& queue = outstanding_[static_cast<int>(counter)];
  // Scalar loads return in any order: only when none remains are they known to have.
  if (counter == Counter::kScalar && remaining != 0) return;
  while (queue.size() > remaining) {
    Complete(queue.front());
    queue.pop_front();
  }
}

void Wave::WaitLgkm(unsigned remaining) {
  Wait(Counter::kLds, remaining);
  Wait(Counter::kScalar, remaining);
}

void Wave::RequireStoresArrived() const {
  for (const Outstanding& access : outstanding_[static_cast<int>(Counter::kLds)]) {
    if (access.count == 0) throw Fault("a barrier is passed while a store to LDS is outstanding");
  }
}

}  // namespace simulator
