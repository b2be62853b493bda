// LDS: loads, stores, atomics, and moves between lanes that go through its crossbar.
#include "simulator/access.h"
#include "simulator/lanes.h"

namespace simulator {
namespace {

using Part = Access::Part;

const uint32_t* Addresses(Wave& wave, const Operand& operand) {
  const int index = operand.index;
  const uint32_t* rows = wave.Vgpr(index);
  wave.RequireDefined(wave.VgprDefined(index), wave.exec(), "an LDS address");
  return rows;
}

void ReadInto(Wave& wave, const Access& access, const uint32_t* addresses, uint32_t offset, int first) {
  LoadedRows rows(wave, access, first);
  for (int lane = 0; lane < wave.lanes; ++lane) {
    if ((wave.exec() >> lane & 1) == 0) continue;
    const uint32_t address = addresses[lane] + offset;
    wave.lds.Read(address, static_cast<uint32_t>(access.bytes), wave.number);
    rows.Set(lane, &wave.lds.bytes[address], &wave.lds.defined[address]);
  }
  rows.Finish(wave.exec(), Counter::kLds);
}

void WriteFrom(Wave& wave, const Access& access, const uint32_t* addresses, uint32_t offset, int first) {
  const StoredRows rows(wave, access, first);
  for (int lane = 0; lane < wave.lanes; ++lane) {
    if ((wave.exec() >> lane & 1) == 0) continue;
    const uint32_t address = addresses[lane] + offset;
    wave.lds.Write(address, static_cast<uint32_t>(access.bytes), wave.number);
    rows.Get(lane, &wave.lds.bytes[address]);
    rows.GetDefined(lane, &wave.lds.defined[address]);
  }
}

void Read(Wave& wave, const Instruction& instruction) {
  const Access access = Access::Of(instruction.semantics->parameter);
  ReadInto(wave, access, Addresses(wave, instruction.source[0]), static_cast<uint32_t>(instruction.offset), instruction.destination.index);
}

void Write(Wave& wave, const Instruction& instruction) {
  const Access access = Access::Of(instruction.semantics->parameter);
  WriteFrom(wave, access, Addresses(wave, instruction.source[0]), static_cast<uint32_t>(instruction.offset), instruction.source[1].index);
  wave.Issue(Counter::kLds, true, 0, 0);
}

// Two accesses, whose offsets count elements; parameter[3] is the stride between elements.
uint32_t Offset2(const Instruction& instruction, int offset) {
  const int* parameter = instruction.semantics->parameter;
  return static_cast<uint32_t>(offset * parameter[0] * parameter[3]);
}

void Read2(Wave& wave, const Instruction& instruction) {
  const Access access = Access::Of(instruction.semantics->parameter);
  // The destination may hold the addresses.
  uint32_t addresses[kRow];
  memcpy(addresses, Addresses(wave, instruction.source[0]), sizeof(addresses));
  const int first = instruction.destination.index;
  ReadInto(wave, access, addresses, Offset2(instruction, instruction.offset), first);
  ReadInto(wave, access, addresses, Offset2(instruction, instruction.offset1), first + access.words());
  wave.MergeIssued(Counter::kLds);
}

void Write2(Wave& wave, const Instruction& instruction) {
  const Access access = Access::Of(instruction.semantics->parameter);
  const uint32_t* addresses = Addresses(wave, instruction.source[0]);
  WriteFrom(wave, access, addresses, Offset2(instruction, instruction.offset), instruction.source[1].index);
  WriteFrom(wave, access, addresses, Offset2(instruction, instruction.offset1), instruction.source[2].index);
  wave.Issue(Counter::kLds, true, 0, 0);
}

// gfx950: sixteen lanes load 4 rows of 16 elements of 16 bits each and get its columns.
void ReadTransposed(Wave& wave, const Instruction& instruction) {
  if (wave.exec() != wave.all()) throw Fault("ds_read_b64_tr_b16 with inactive lanes is not defined");
  const uint32_t* addresses = Addresses(wave, instruction.source[0]);
  uint16_t loaded[kRow][4], loaded_defined[kRow][4];
  for (int lane = 0; lane < wave.lanes; ++lane) {
    const uint32_t address = addresses[lane] + static_cast<uint32_t>(instruction.offset);
    wave.lds.Read(address, 8, wave.number);
    memcpy(loaded[lane], &wave.lds.bytes[address], 8);
    memcpy(loaded_defined[lane], &wave.lds.defined[address], 8);
  }
  Access access;
  access.bytes = 8;
  LoadedRows rows(wave, access, instruction.destination.index);
  for (int lane = 0; lane < wave.lanes; ++lane) {
    const int block = lane / 16 * 16, column = lane % 16;
    uint16_t values[4], defined[4];
    for (int k = 0; k < 4; ++k) {
      const int from = block + k * 4 + column / 4;
      values[k] = loaded[from][column % 4];
      defined[k] = loaded_defined[from][column % 4];
    }
    rows.Set(lane, values, reinterpret_cast<const uint8_t*>(defined));
  }
  rows.Finish(wave.exec(), Counter::kLds);
}

// Each lane reads a lane that it names, by four times its number.
void BackwardPermute(Wave& wave, const Instruction& instruction) {
  const uint32_t* addresses = Addresses(wave, instruction.source[0]);
  const int source = instruction.source[1].index;
  const uint32_t* words = wave.Vgpr(source);
  LoadedRows rows(wave, Access(), instruction.destination.index);
  for (int lane = 0; lane < wave.lanes; ++lane) {
    const uint32_t from = (addresses[lane] + static_cast<uint32_t>(instruction.offset)) / 4 % static_cast<uint32_t>(wave.lanes);
    const bool active = (wave.exec() >> from & 1) != 0;
    rows.Set(lane, active ? words[from] : 0, active ? wave.VgprUnset(source, static_cast<int>(from)) : 0);
  }
  rows.Finish(wave.exec(), Counter::kLds);
}

// Each lane writes to a lane that it names; the highest wins.
void ForwardPermute(Wave& wave, const Instruction& instruction) {
  const uint32_t* addresses = Addresses(wave, instruction.source[0]);
  const int source = instruction.source[1].index;
  const uint32_t* words = wave.Vgpr(source);
  uint32_t result[kRow] = {}, unset[kRow] = {};
  for (int lane = 0; lane < wave.lanes; ++lane) {
    if ((wave.exec() >> lane & 1) == 0) continue;
    const uint32_t to = (addresses[lane] + static_cast<uint32_t>(instruction.offset)) / 4 % static_cast<uint32_t>(wave.lanes);
    result[to] = words[lane];
    unset[to] = wave.VgprUnset(source, lane);
  }
  LoadedRows rows(wave, Access(), instruction.destination.index);
  for (int lane = 0; lane < wave.lanes; ++lane) rows.Set(lane, result[lane], unset[lane]);
  rows.Finish(wave.exec(), Counter::kLds);
}

// The offset says how lanes are exchanged within four, or within 32.
void Swizzle(Wave& wave, const Instruction& instruction) {
  const int pattern = instruction.offset;
  const int source = instruction.source[0].index;
  const uint32_t* words = wave.Vgpr(source);
  LoadedRows rows(wave, Access(), instruction.destination.index);
  for (int lane = 0; lane < wave.lanes; ++lane) {
    int from;
    if ((pattern & 0xff00) == 0x8000) {
      from = (lane & ~3) + (pattern >> (2 * (lane & 3)) & 3);
    } else if ((pattern & 0x8000) == 0) {
      const int keep = pattern & 0x1f, set = pattern >> 5 & 0x1f, flip = pattern >> 10 & 0x1f;
      from = (lane & ~31) | ((((lane & 31) & keep) | set) ^ flip);
    } else {
      throw Fault("ds_swizzle pattern ", Hex{static_cast<uint64_t>(pattern)}, " is not modelled");
    }
    const bool active = (wave.exec() >> from & 1) != 0;
    rows.Set(lane, active ? words[from] : 0, active ? wave.VgprUnset(source, from) : 0);
  }
  rows.Finish(wave.exec(), Counter::kLds);
}

void DefineAccesses() {
  const auto access = [](int bytes, Part part = Part::kWhole, bool sign = false) {
    Access a;
    a.bytes = bytes;
    a.part = part;
    a.sign = sign;
    return a;
  };
  Define({"ds_read_u8", "ds_load_u8"}, access(1).ToSemantics(Read));
  Define({"ds_read_i8", "ds_load_i8"}, access(1, Part::kWhole, true).ToSemantics(Read));
  Define({"ds_read_u16", "ds_load_u16"}, access(2).ToSemantics(Read));
  Define({"ds_read_i16", "ds_load_i16"}, access(2, Part::kWhole, true).ToSemantics(Read));
  Define({"ds_read_u16_d16", "ds_load_u16_d16"}, access(2, Part::kLowHalf).ToSemantics(Read));
  Define({"ds_read_u16_d16_hi", "ds_load_u16_d16_hi"}, access(2, Part::kHighHalf).ToSemantics(Read));
  Define({"ds_read_b32", "ds_load_b32"}, access(4).ToSemantics(Read));
  Define({"ds_read_b64", "ds_load_b64"}, access(8).ToSemantics(Read));
  Define({"ds_read_b96", "ds_load_b96"}, access(12).ToSemantics(Read));
  Define({"ds_read_b128", "ds_load_b128"}, access(16).ToSemantics(Read));
  Define({"ds_write_b8", "ds_store_b8"}, access(1).ToSemantics(Write));
  Define({"ds_write_b16", "ds_store_b16"}, access(2).ToSemantics(Write));
  Define({"ds_write_b8_d16_hi", "ds_store_b8_d16_hi"}, access(1, Part::kHighHalf).ToSemantics(Write));
  Define({"ds_write_b16_d16_hi", "ds_store_b16_d16_hi"}, access(2, Part::kHighHalf).ToSemantics(Write));
  Define({"ds_write_b32", "ds_store_b32"}, access(4).ToSemantics(Write));
  Define({"ds_write_b64", "ds_store_b64"}, access(8).ToSemantics(Write));
  Define({"ds_write_b96", "ds_store_b96"}, access(12).ToSemantics(Write));
  Define({"ds_write_b128", "ds_store_b128"}, access(16).ToSemantics(Write));
  const auto two = [&](const char* old_name, const char* name, Execute execute, int bytes, int stride) {
    Semantics semantics = access(bytes).ToSemantics(execute);
    semantics.parameter[3] = stride;
    Define({old_name, name}, semantics);
  };
  two("ds_read2_b32", "ds_load_2addr_b32", Read2, 4, 1);
  two("ds_read2st64_b32", "ds_load_2addr_stride64_b32", Read2, 4, 64);
  two("ds_read2_b64", "ds_load_2addr_b64", Read2, 8, 1);
  two("ds_read2st64_b64", "ds_load_2addr_stride64_b64", Read2, 8, 64);
  two("ds_write2_b32", "ds_store_2addr_b32", Write2, 4, 1);
  two("ds_write2st64_b32", "ds_store_2addr_stride64_b32", Write2, 4, 64);
  two("ds_write2_b64", "ds_store_2addr_b64", Write2, 8, 1);
  two("ds_write2st64_b64", "ds_store_2addr_stride64_b64", Write2, 8, 64);
}

}  // namespace

void DefineLdsInstructions() {
  DefineAccesses();
  Semantics semantics;
  semantics.execute = ReadTransposed;
  semantics.parameter[0] = 8;
  Define({"ds_read_b64_tr_b16"}, semantics);
  semantics.parameter[0] = 4;
  semantics.execute = BackwardPermute;
  Define({"ds_bpermute_b32"}, semantics);
  semantics.execute = ForwardPermute;
  Define({"ds_permute_b32"}, semantics);
  semantics.execute = Swizzle;
  Define({"ds_swizzle_b32"}, semantics);
}

}  // namespace simulator
