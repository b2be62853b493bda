#include "simulator/lanes.h"

#include <cstring>

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
uint32_t Selected(uint32_t word, uint32_t select, bool sign) {
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

const uint32_t* SourceRows(const Wave& wave, const Instruction& instruction, int source, Type type, uint32_t* room, uint64_t* defined) {
  const Operand& operand = instruction.source[source];
  uint64_t here = kAllLanes;
  const uint32_t* rows = wave.Rows(operand, type, room, &here);
  if (source == 0 && IsDpp(instruction)) {
    const Crossing crossing = DppCrossing(wave, instruction);
    const uint64_t readable = Readable(wave, crossing);
    uint64_t moved = ~readable;
    uint32_t values[kRow];
    for (int lane = 0; lane < wave.lanes; ++lane) {
      values[lane] = readable >> lane & 1 ? rows[crossing.from[lane]] : 0;
      moved |= (here >> crossing.from[lane] & 1) << lane;
    }
    memcpy(room, values, sizeof(uint32_t) * wave.lanes);
    rows = room;
    here = moved;
  }
  if (source < 2 && instruction.crossing == Instruction::Crossing::kSdwa) {
    const uint32_t control = instruction.crossing_word >> (source == 0 ? 16 : 24);
    for (int lane = 0; lane < wave.lanes; ++lane) room[lane] = Selected(rows[lane], control & 7, (control >> 3 & 1) != 0);
    rows = room;
  }
  *defined &= here;
  if (type == Type::kHalf && operand.high) {
    for (int lane = 0; lane < wave.lanes; ++lane) room[lane] = rows[lane] >> 16;
    rows = room;
  }
  if ((operand.negate || operand.absolute) && type != Type::kWord && type != Type::kPair) {
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

uint64_t ComputeLanes(Wave& wave, const Instruction& instruction, uint32_t* result) {
  const Semantics& semantics = *instruction.semantics;
  alignas(64) uint32_t room[3][2 * kRow];
  const uint32_t* rows[3] = {};
  uint64_t defined = kAllLanes;
  for (int i = 0; i < semantics.source_count; ++i) {
    if (semantics.reads_result && i + 1 == semantics.source_count && instruction.source[i].kind == Operand::Kind::kNone) {
      rows[i] = wave.Rows(instruction.destination, semantics.sources[i], room[i], &defined);
    } else {
      rows[i] = SourceRows(wave, instruction, i, semantics.sources[i], room[i], &defined);
    }
  }
  semantics.lanes(result, rows[0], rows[1], rows[2], wave.lanes);
  return defined;
}

uint64_t WrittenLanes(const Wave& wave, const Instruction& instruction) {
  if (!IsDpp(instruction)) return kAllLanes;
  const Crossing crossing = DppCrossing(wave, instruction);
  return crossing.enabled & (crossing.bound_control ? kAllLanes : Readable(wave, crossing));
}

void WriteResult(Wave& wave, const Instruction& instruction, Type type, uint32_t* result, uint64_t defined) {
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
  if (instruction.crossing == Instruction::Crossing::kSdwa) {
    const uint32_t select = instruction.crossing_word >> 8 & 7, unused = instruction.crossing_word >> 11 & 3;
    if (select != 6) {
      const int shift = static_cast<int>(select < 4 ? 8 * select : 16 * (select - 4));
      const uint32_t part = (select < 4 ? 0xffu : 0xffffu) << shift;
      if (unused == 1) throw Fault("SDWA that extends the sign of its result is not modelled");
      const uint32_t* before = wave.Vgpr(destination);
      if (unused == 2) defined &= wave.VgprDefined(destination);
      for (int i = 0; i < lanes; ++i) result[i] = (result[i] << shift & part) | (unused == 2 ? before[i] & ~part : 0);
    }
  } else if (type == Type::kHalf && (wave.isa != Isa::kGfx9 || instruction.destination.high)) {
    // The other half stays.
    const uint32_t* before = wave.Vgpr(destination);
    if (instruction.destination.high) {
      for (int i = 0; i < lanes; ++i) result[i] = result[i] << 16 | (before[i] & 0xffff);
    } else {
      for (int i = 0; i < lanes; ++i) result[i] = (result[i] & 0xffff) | (before[i] & 0xffff0000);
    }
  }
  const uint64_t active = IsDpp(instruction) ? wave.exec() & WrittenLanes(wave, instruction) : wave.exec();
  wave.WriteVgpr(destination, result, defined, active);
  if (type == Type::kPair || type == Type::kDouble) wave.WriteVgpr(destination + 1, result + kRow, defined, active);
}

uint64_t LowWordsDefined(const Wave& wave, const Instruction& instruction) {
  uint64_t defined = kAllLanes;
  for (int i = 0; i < instruction.semantics->source_count; ++i) {
    alignas(64) uint32_t room[2 * kRow];
    wave.Rows(instruction.source[i], Type::kWord, room, &defined);
  }
  return defined;
}

void SetLowWordDefined(Wave& wave, const Instruction& instruction, uint64_t low_words_defined) {
  const int low = instruction.destination.index;
  wave.SetVgprDefined(low, (wave.VgprDefined(low) & ~wave.exec()) | (low_words_defined & wave.exec()));
}

void ExecuteLanes(Wave& wave, const Instruction& instruction) {
  alignas(64) uint32_t result[2 * kRow];
  const uint64_t defined = ComputeLanes(wave, instruction, result);
  const bool low_differs = instruction.semantics->carries_upwards && (~defined & wave.exec()) != 0;
  const uint64_t low_defined = low_differs ? LowWordsDefined(wave, instruction) : defined;
  WriteResult(wave, instruction, instruction.semantics->result, result, defined);
  if (low_differs) SetLowWordDefined(wave, instruction, low_defined);
}

void ExecuteDual(Wave& wave, const Instruction& instruction) {
  const int first = instruction.destination.index;
  uint32_t before[kRow], after[kRow];
  memcpy(before, wave.Vgpr(first), sizeof(before));
  const uint64_t defined_before = wave.VgprDefined(first);
  instruction.semantics->execute(wave, instruction);
  memcpy(after, wave.Vgpr(first), sizeof(after));
  const uint64_t defined_after = wave.VgprDefined(first);
  // The second half still reads what was there.
  wave.WriteVgpr(first, before, defined_before, wave.all());
  instruction.dual->semantics->execute(wave, *instruction.dual);
  wave.WriteVgpr(first, after, defined_after, wave.all());
}

}  // namespace simulator
