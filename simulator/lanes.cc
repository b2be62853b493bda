#include "simulator/lanes.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace simulator {
namespace {

struct Crossing {
  uint8_t from[kRow];
  uint64_t valid = 0;    // the lane that it reads exists
  uint64_t enabled = 0;  // row_mask and bank_mask
  bool bound_control = false, fetch_inactive = false;
};

// DPP: which lane each lane reads.
Crossing DppCrossing(const Wave& wave, const Instruction& instruction) {
  Crossing crossing;
  const uint32_t word = instruction.crossing_word;
  if (instruction.crossing == Instruction::Crossing::kDpp8) {
    crossing.fetch_inactive = instruction.offset1 != 0;
    for (int lane = 0; lane < wave.lanes; ++lane) {
      crossing.from[lane] = static_cast<uint8_t>((lane & ~7) + (word >> (8 + 3 * (lane & 7)) & 7));
    }
    crossing.valid = crossing.enabled = wave.all();
    crossing.bound_control = true;
    return crossing;
  }
  const uint32_t control = word >> 8 & 0x1ff;
  crossing.fetch_inactive = wave.isa != Isa::kGfx9 && (word >> 18 & 1) != 0;
  crossing.bound_control = (word >> 19 & 1) != 0;
  const uint32_t bank_mask = word >> 24 & 0xf, row_mask = word >> 28 & 0xf;
  const int amount = control & 0xf;
  for (int lane = 0; lane < wave.lanes; ++lane) {
    const int row = lane & ~15, in_row = lane & 15;
    int from = lane;
    bool valid = true;
    if (control < 0x100) {
      from = (lane & ~3) + (control >> (2 * (lane & 3)) & 3);
    } else if (control < 0x110) {  // row_shl
      from = lane + amount;
      valid = in_row + amount < 16;
    } else if (control < 0x120) {  // row_shr
      from = lane - amount;
      valid = in_row >= amount;
    } else if (control < 0x130) {  // row_ror
      from = row + ((in_row - amount) & 15);
    } else if (control == 0x140) {  // row_mirror
      from = row + 15 - in_row;
    } else if (control == 0x141) {  // row_half_mirror
      from = (lane & ~7) + 7 - (lane & 7);
    } else if (control == 0x142 && wave.isa == Isa::kGfx9) {  // row_bcast:15
      from = row - 1;
      valid = row > 0;
    } else if (control == 0x143 && wave.isa == Isa::kGfx9) {  // row_bcast:31
      from = 31;
      valid = lane >= 32;
    } else if (control >= 0x150 && control < 0x160) {  // row_newbcast, row_share
      from = row + amount;
    } else if (control >= 0x160 && control < 0x170 && wave.isa != Isa::kGfx9) {  // row_xmask
      from = row + (in_row ^ amount);
    } else {
      throw Fault("DPP control ", Hex{control}, " is not known");
    }
    crossing.from[lane] = static_cast<uint8_t>(valid ? from : lane);
    crossing.valid |= uint64_t{valid} << lane;
    crossing.enabled |= uint64_t{(row_mask >> (lane / 16 & 3) & bank_mask >> (in_row / 4) & 1) != 0} << lane;
  }
  return crossing;
}

// Lanes that read an inactive lane read nothing.
uint64_t Readable(const Wave& wave, const Crossing& crossing) {
  uint64_t readable = crossing.valid;
  if (crossing.fetch_inactive) return readable;
  for (int lane = 0; lane < wave.lanes; ++lane) {
    if ((wave.exec() >> crossing.from[lane] & 1) == 0) readable &= ~(uint64_t{1} << lane);
  }
  return readable;
}

bool IsDpp(const Instruction& instruction) {
  return instruction.crossing == Instruction::Crossing::kDpp || instruction.crossing == Instruction::Crossing::kDpp8;
}

// SDWA: a byte or half of the word; 6 is the whole.
uint32_t PartOf(uint32_t word, uint32_t select, bool sign) {
  if (select < 4) {
    const uint32_t byte = word >> (8 * select) & 0xff;
    return sign ? static_cast<uint32_t>(static_cast<int8_t>(byte)) : byte;
  }
  if (select < 6) {
    const uint32_t half = word >> (16 * (select - 4)) & 0xffff;
    return sign ? static_cast<uint32_t>(static_cast<int16_t>(half)) : half;
  }
  return word;
}

uint32_t SignBit(Type type) { return type == Type::kHalf ? 0x8000u : 0x80000000u; }

bool IsNumber(Type type) { return type == Type::kFloat || type == Type::kHalf || type == Type::kDouble; }

float Scaled(float value, int scale) { return scale == 1 ? value * 2 : scale == 2 ? value * 4 : scale == 3 ? value / 2 : value; }

float Clamped(float value) { return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f; }

}  // namespace

namespace {

// A row of words, or of their bits without a value, through what crosses lanes, and through selections of parts.
const uint32_t* Selected(const Wave& wave, const Instruction& instruction, int source, Type type, const uint32_t* rows, uint32_t* room) {
  if (source == 0 && IsDpp(instruction)) {
    const Crossing crossing = DppCrossing(wave, instruction);
    const uint64_t readable = Readable(wave, crossing);
    uint32_t values[kRow];
    for (int lane = 0; lane < wave.lanes; ++lane) values[lane] = readable >> lane & 1 ? rows[crossing.from[lane]] : 0;
    memcpy(room, values, sizeof(uint32_t) * wave.lanes);
    rows = room;
  }
  if (source < 2 && instruction.crossing == Instruction::Crossing::kSdwa) {
    const uint32_t control = instruction.crossing_word >> (source == 0 ? 16 : 24);
    for (int lane = 0; lane < wave.lanes; ++lane) room[lane] = PartOf(rows[lane], control & 7, (control >> 3 & 1) != 0);
    rows = room;
  }
  if (type == Type::kHalf && instruction.source[source].high) {
    for (int lane = 0; lane < wave.lanes; ++lane) room[lane] = rows[lane] >> 16;
    rows = room;
  }
  return rows;
}

bool ReadsResult(const Instruction& instruction, int source) {
  return instruction.semantics->reads_result && source + 1 == instruction.semantics->source_count &&
         instruction.source[source].kind == Operand::Kind::kNone;
}

// The bits of the result that have no value: `rows` are the sources, of which a lane lacks something.
void UnsetOfResult(Wave& wave, const Instruction& instruction, const uint32_t* const* rows, Unset* unset) {
  const Semantics& semantics = *instruction.semantics;
  alignas(64) uint32_t of_source[3][2 * kRow] = {};
  uint64_t whole = 0, upwards[kRow] = {};
  for (int i = 0; i < semantics.source_count; ++i) {
    if (ReadsResult(instruction, i)) {
      wave.UnsetRows(instruction.destination, semantics.sources[i], of_source[i]);
    } else {
      SourceUnset(wave, instruction, i, semantics.sources[i], of_source[i]);
    }
    const bool spreads = semantics.spread == Spread::kWhole || (semantics.controls >> i & 1) != 0;
    for (int lane = 0; lane < wave.lanes; ++lane) {
      const uint64_t bits = Lane<uint64_t>::Get(of_source[i], lane);
      whole |= uint64_t{spreads && bits != 0} << lane;
      upwards[lane] |= Upwards(bits);
    }
  }
  if (semantics.spread == Spread::kUpwards) {
    for (int lane = 0; lane < wave.lanes; ++lane) Lane<uint64_t>::Put(unset->bits, lane, upwards[lane]);
  } else {
    memset(unset->bits, 0, sizeof(unset->bits));
  }
  if (semantics.spread == Spread::kBits) {
    // All bits without a value of a source as 0, and as 1: what changes has none.
    alignas(64) uint32_t tried[3][2 * kRow], first[2 * kRow] = {}, result[2 * kRow] = {};
    for (int choice = 0; choice < 1 << semantics.source_count; ++choice) {
      for (int i = 0; i < semantics.source_count; ++i) {
        const bool two = IsPair(semantics.sources[i]);
        for (int k = 0; k < (two ? 2 * kRow : kRow); ++k) tried[i][k] = (rows[i][k] & ~of_source[i][k]) | (choice >> i & 1 ? of_source[i][k] : 0);
      }
      semantics.lanes(choice == 0 ? first : result, tried[0], tried[1], tried[2], wave.lanes);
      for (int k = 0; choice != 0 && k < 2 * kRow; ++k) unset->bits[k] |= first[k] ^ result[k];
    }
  }
  for (int lane = 0; lane < wave.lanes; ++lane) {
    if (whole >> lane & 1) unset->bits[lane] = unset->bits[kRow + lane] = ~0u;
  }
}

}  // namespace

const uint32_t* SourceRows(const Wave& wave, const Instruction& instruction, int source, Type type, uint32_t* room, uint64_t* defined) {
  const Operand& operand = instruction.source[source];
  uint64_t here = kAllLanes;
  const uint32_t* rows = wave.Rows(operand, type, room, &here);
  // Lanes may read others.
  *defined &= IsDpp(instruction) && source == 0 && (~here & wave.all()) != 0 ? 0 : here;
  rows = Selected(wave, instruction, source, type, rows, room);
  if ((operand.negate || operand.absolute) && type != Type::kWord) {
    if (!IsNumber(type)) throw Fault("a sign modifier on what is no number");
    const uint32_t sign = SignBit(type);
    const int high = type == Type::kDouble ? kRow : 0;
    if (high != 0) memmove(room, rows, sizeof(uint32_t) * kRow);
    const uint32_t keep = operand.absolute ? ~sign : ~0u, flip = operand.negate ? sign : 0;
    for (int lane = 0; lane < wave.lanes; ++lane) room[high + lane] = (rows[high + lane] & keep) ^ flip;
    rows = room;
  }
  return rows;
}

void SourceUnset(const Wave& wave, const Instruction& instruction, int source, Type type, uint32_t* bits) {
  const Operand& operand = instruction.source[source];
  wave.UnsetRows(operand, type, bits);
  Selected(wave, instruction, source, type, bits, bits);
  const uint32_t read = (type == Type::kHalf ? 0xffffu : ~0u) & ~(operand.absolute && IsNumber(type) ? SignBit(type) : 0u);
  const int last = IsPair(type) ? kRow : 0;
  for (int lane = 0; lane < wave.lanes; ++lane) bits[last + lane] &= read;
}

void ComputeLanes(Wave& wave, const Instruction& instruction, uint32_t* result, Unset* unset) {
  const Semantics& semantics = *instruction.semantics;
  alignas(64) uint32_t room[3][2 * kRow];
  const uint32_t* rows[3] = {};
  uint64_t defined = kAllLanes;
  for (int i = 0; i < semantics.source_count; ++i) {
    if (ReadsResult(instruction, i)) {
      rows[i] = wave.Rows(instruction.destination, semantics.sources[i], room[i], &defined);
    } else {
      rows[i] = SourceRows(wave, instruction, i, semantics.sources[i], room[i], &defined);
    }
  }
  semantics.lanes(result, rows[0], rows[1], rows[2], wave.lanes);
  unset->any = (~defined & wave.exec()) != 0;
  if (unset->any) UnsetOfResult(wave, instruction, rows, unset);
}

namespace {

// Lanes whose DPP source is there; all without DPP.
uint64_t WrittenLanes(const Wave& wave, const Instruction& instruction) {
  if (!IsDpp(instruction)) return kAllLanes;
  const Crossing crossing = DppCrossing(wave, instruction);
  return crossing.enabled & (crossing.bound_control ? kAllLanes : Readable(wave, crossing));
}

// The result, or its bits without a value, at its place in the register; what else that keeps is in `before`.
void Place(const Wave& wave, const Instruction& instruction, Type type, uint32_t* row, const uint32_t* before) {
  const int lanes = wave.lanes;
  if (instruction.crossing == Instruction::Crossing::kSdwa) {
    const uint32_t select = instruction.crossing_word >> 8 & 7, unused = instruction.crossing_word >> 11 & 3;
    if (select == 6) return;
    const int shift = static_cast<int>(select < 4 ? 8 * select : 16 * (select - 4));
    const uint32_t part = (select < 4 ? 0xffu : 0xffffu) << shift;
    if (unused == 1) throw Fault("SDWA that extends the sign of its result is not modelled");
    for (int i = 0; i < lanes; ++i) row[i] = (row[i] << shift & part) | (unused == 2 ? before[i] & ~part : 0);
  } else if (instruction.destination.high) {
    for (int i = 0; i < lanes; ++i) row[i] = row[i] << 16 | (before[i] & 0xffff);
  } else {
    const uint32_t kept = wave.isa == Isa::kGfx9 ? 0 : 0xffff0000;
    for (int i = 0; type == Type::kHalf && i < lanes; ++i) row[i] = (row[i] & 0xffff) | (before[i] & kept);
  }
}

bool IsPlaced(const Wave& wave, const Instruction& instruction, Type type) {
  if (instruction.crossing == Instruction::Crossing::kSdwa) return (instruction.crossing_word >> 8 & 7) != 6;
  return type == Type::kHalf && (wave.isa != Isa::kGfx9 || instruction.destination.high);
}

}  // namespace

void WriteResult(Wave& wave, const Instruction& instruction, Type type, uint32_t* result, Unset* unset) {
  const int lanes = wave.lanes;
  if (instruction.output_scale != 0 || instruction.clamp) {
    if (type == Type::kFloat) {
      for (int i = 0; i < lanes; ++i) {
        const float value = Scaled(Float(result[i]), instruction.output_scale);
        result[i] = Bits(instruction.clamp ? Clamped(value) : value);
      }
    } else if (type == Type::kHalf) {
      for (int i = 0; i < lanes; ++i) {
        const float value = Scaled(HalfToFloat(result[i]), instruction.output_scale);
        result[i] = FloatToHalf(instruction.clamp ? Clamped(value) : value);
      }
    } else {
      throw Fault("clamp of an integer is not modelled");
    }
  }
  const int destination = instruction.destination.index;
  if (IsPlaced(wave, instruction, type)) {
    const uint32_t* before = wave.Vgpr(destination);
    Place(wave, instruction, type, result, before);
    if (unset->any || (~wave.VgprDefined(destination) & wave.exec()) != 0) {
      alignas(64) uint32_t bits[kRow];
      wave.UnsetRows(instruction.destination, Type::kWord, bits);
      if (!unset->any) memset(unset->bits, 0, sizeof(unset->bits));
      unset->any = true;
      Place(wave, instruction, type, unset->bits, bits);
    }
  } else if (unset->any && type == Type::kHalf) {
    for (int i = 0; i < lanes; ++i) unset->bits[i] &= 0xffff;
  }
  const uint64_t active = IsDpp(instruction) ? wave.exec() & WrittenLanes(wave, instruction) : wave.exec();
  const int words = IsPair(type) ? 2 : 1;
  for (int i = 0; i < words; ++i) {
    wave.WriteVgpr(destination + i, result + i * kRow, kAllLanes, active);
    if (unset->any) wave.SetUnset(destination + i, unset->bits + i * kRow, active);
  }
}

void WriteResult(Wave& wave, const Instruction& instruction, Type type, uint32_t* result, uint64_t defined) {
  Unset unset;
  unset.any = (~defined & wave.exec()) != 0;
  for (int i = 0; unset.any && i < kRow; ++i) unset.bits[i] = unset.bits[kRow + i] = defined >> i & 1 ? 0 : ~0u;
  WriteResult(wave, instruction, type, result, &unset);
}

void ExecuteLanes(Wave& wave, const Instruction& instruction) {
  alignas(64) uint32_t result[2 * kRow];
  Unset unset;
  ComputeLanes(wave, instruction, result, &unset);
  WriteResult(wave, instruction, instruction.semantics->result, result, &unset);
}

void ExecuteDual(Wave& wave, const Instruction& instruction) {
  const int first = instruction.destination.index;
  const auto is_first = [first](const Operand& operand) { return operand.is_vgpr() && operand.index == first; };
  const Instruction& second = *instruction.dual;
  if (std::none_of(std::begin(second.source), std::end(second.source), is_first)) {
    instruction.semantics->execute(wave, instruction);
    second.semantics->execute(wave, second);
    return;
  }
  // The second half still reads what was there.
  struct Saved {
    uint32_t words[kRow], unset[kRow];
  };
  const auto save = [&](Saved* saved) {
    memcpy(saved->words, wave.Vgpr(first), sizeof(saved->words));
    wave.UnsetRows(instruction.destination, Type::kWord, saved->unset);
  };
  const auto restore = [&](const Saved& saved) {
    wave.WriteVgpr(first, saved.words, kAllLanes, wave.all());
    wave.SetUnset(first, saved.unset, wave.all());
  };
  Saved before, after;
  save(&before);
  instruction.semantics->execute(wave, instruction);
  save(&after);
  restore(before);
  second.semantics->execute(wave, second);
  restore(after);
}

}  // namespace simulator
