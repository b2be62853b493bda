#include "simulator/decode.h"

#include <cstring>

#include "simulator/fault.h"
#include "simulator/program.h"

namespace simulator {
namespace {

constexpr const char* kFormats[] = {"SOP1", "SOP2", "SOPK", "SOPC", "SOPP", "SMEM", "VOP1", "VOP2", "VOP3", "VOPC",
                                    "VOP3P", "VOPD", "DS", "buffer", "flat", "scratch", "global"};

}  // namespace

Operand VgprOperand(uint32_t number, bool accumulation) {
  Operand operand;
  operand.kind = Operand::Kind::kVgpr;
  operand.index = static_cast<uint16_t>(number + (accumulation ? kFirstAccVgpr : 0));
  return operand;
}

Operand SgprOperand(uint32_t number) {
  Operand operand;
  operand.kind = Operand::Kind::kSgpr;
  operand.index = static_cast<uint16_t>(number);
  return operand;
}

Operand ConstantOperand(uint32_t value) {
  Operand operand;
  operand.kind = Operand::Kind::kConstant;
  operand.value = value;
  return operand;
}

void Decoder::Unknown(Format format, uint32_t number) const {
  throw Fault("unknown instruction ", Hex{words_[0]}, " ", Hex{words_[1]}, " at ", Hex{in_->address}, ": ",
              kFormats[static_cast<int>(format)], " opcode ", number);
}

void Decoder::Find(Format format, uint32_t number, int words) {
  in_->format = format;
  in_->size = 4 * words;
  const Opcode opcode = table_.Find(format, number);
  in_->semantics = opcode.semantics;
  in_->has_two_forms = opcode.has_two_forms;
  if (in_->semantics == nullptr) Unknown(format, number);
}

bool Decoder::Is(const char* name) const { return in_->semantics->name == name; }

bool Decoder::Begins(const char* prefix) const { return in_->semantics->name.compare(0, strlen(prefix), prefix) == 0; }

Operand Decoder::Scalar(uint32_t code) const {
  const uint32_t null = isa_ == Isa::kGfx9 ? 125 : 124;
  Operand operand;
  if (code == null) {
    operand.kind = Operand::Kind::kNull;
    return operand;
  }
  if (code < 128) return SgprOperand(code);
  throw Fault("scalar register ", code, " at ", Hex{in_->address}, " does not exist");
}

bool Decoder::TakesLiteral() const {
  switch (in_->format) {
    case Format::kSop1: case Format::kSop2: case Format::kSopc: case Format::kVop1: case Format::kVop2: case Format::kVopc: return true;
    case Format::kVop3: case Format::kVop3p: return isa_ != Isa::kGfx9;
    default: return false;
  }
}

Operand Decoder::Source(uint32_t code) {
  if (code >= 256) return VgprOperand(code - 256);
  if (code < 128) return Scalar(code);
  Operand operand;
  operand.kind = Operand::Kind::kConstant;
  operand.code = static_cast<uint16_t>(code);
  if (code <= 192) {
    operand.value = code - 128;
  } else if (code <= 208) {
    operand.value = 192 - code;
  } else if (code >= 240 && code <= 248) {
    static constexpr uint32_t kFloats[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                           0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
    operand.value = kFloats[code - 240];
  } else if (code == 251) {
    operand.kind = Operand::Kind::kVccIsZero;
  } else if (code == 252) {
    operand.kind = Operand::Kind::kExecIsZero;
  } else if (code == 253) {
    operand.kind = Operand::Kind::kScc;
  } else if (code == 255 && TakesLiteral()) {
    operand.value = words_[in_->size / 4];
    in_->size += 4;
  } else {
    throw Fault("source ", code, " of ", in_->semantics->name, " at ", Hex{in_->address}, " is not modelled");
  }
  return operand;
}

void Decoder::Sop1() {
  Find(Format::kSop1, BitsOf(words_[0], 15, 8), 1);
  if (!Begins("s_barrier") && !Is("s_setpc_b64")) in_->destination = Scalar(BitsOf(words_[0], 22, 16));
  if (in_->semantics->source_count > 0 || Is("s_barrier_signal")) in_->source[0] = Source(BitsOf(words_[0], 7, 0));
}

void Decoder::Sop2() {
  Find(Format::kSop2, BitsOf(words_[0], 29, 23), 1);
  in_->destination = Scalar(BitsOf(words_[0], 22, 16));
  in_->source[0] = Source(BitsOf(words_[0], 7, 0));
  const Operand first = in_->source[0];
  const uint32_t second = BitsOf(words_[0], 15, 8);
  // One literal serves both.
  in_->source[1] = second == 255 && first.code == 255 ? first : Source(second);
}

void Decoder::Sopk() {
  Find(Format::kSopk, BitsOf(words_[0], 27, 23), 1);
  in_->offset = SignExtend(words_[0], 16);
  in_->destination = Scalar(BitsOf(words_[0], 22, 16));
  const Operand immediate = ConstantOperand(static_cast<uint32_t>(in_->offset));
  if (in_->semantics->source_count == 1) {
    in_->source[0] = immediate;
  } else if (in_->semantics->source_count == 2) {
    in_->source[0] = in_->destination;
    in_->source[1] = immediate;
  }
}

void Decoder::Sopc() {
  Find(Format::kSopc, BitsOf(words_[0], 22, 16), 1);
  in_->source[0] = Source(BitsOf(words_[0], 7, 0));
  in_->source[1] = Source(BitsOf(words_[0], 15, 8));
}

void Decoder::Sopp() {
  constexpr uint32_t kDeallocVgprs = 3;
  Find(Format::kSopp, BitsOf(words_[0], 22, 16), 1);
  if (Is("s_sendmsg") && BitsOf(words_[0], 15, 0) != kDeallocVgprs) Unknown(Format::kSopp, BitsOf(words_[0], 22, 16));
  in_->offset = SignExtend(words_[0], 16);
}

void Decoder::Modify(uint32_t negate, uint32_t absolute) {
  for (int i = 0; i < 3; ++i) {
    in_->source[i].negate = (negate >> i & 1) != 0;
    in_->source[i].absolute = (absolute >> i & 1) != 0;
  }
}

void Decoder::RefuseSignsOfIntegers() const {
  if (Begins("v_cndmask")) return;  // it takes both
  const bool has_short_numbers = in_->semantics->name.find("f16") != std::string::npos;
  for (int i = 0; i < 3; ++i) {
    const Type type = in_->semantics->sources[i];
    const bool is_number = type == Type::kHalf ? has_short_numbers : type != Type::kWord && type != Type::kPair;
    if (!is_number && (in_->source[i].negate || in_->source[i].absolute)) {
      throw Fault(in_->semantics->name, " at ", Hex{in_->address}, ": a sign modifier on an integer");
    }
  }
}

void Decoder::SelectHalves(uint32_t op_sel) {
  const Semantics& semantics = *in_->semantics;
  uint32_t halves = semantics.result == Type::kHalf ? 8 : 0;
  for (uint32_t i = 0; i < 3; ++i) halves |= semantics.sources[i] == Type::kHalf ? 1u << i : 0;
  if (Begins("v_permlane")) halves = 3;  // other modifiers
  // gfx9 has it where VOP3 is the only form.
  if (Begins("v_align") || (isa_ == Isa::kGfx9 && in_->has_two_forms)) halves = 0;
  if ((op_sel & ~halves) != 0) throw Fault(semantics.name, " at ", Hex{in_->address}, ": op_sel ", op_sel, " of operands without halves");
  in_->op_sel = static_cast<uint8_t>(op_sel);
  for (int i = 0; i < 3; ++i) in_->source[i].high = (op_sel >> i & 1) != 0;
  in_->destination.high = (op_sel >> 3 & 1) != 0;
}

void Decoder::ReadDppWord() {
  const uint32_t word = words_[in_->size / 4];
  in_->size += 4;
  in_->crossing = Instruction::Crossing::kDpp;
  in_->crossing_word = word;
  in_->source[0] = VgprOperand(BitsOf(word, 7, 0));
  Modify(BitsOf(word, 20, 20) | BitsOf(word, 22, 22) << 1, BitsOf(word, 21, 21) | BitsOf(word, 23, 23) << 1);
}

void Decoder::ReadSdwaWord(bool compares) {
  const uint32_t word = words_[in_->size / 4];
  in_->size += 4;
  in_->crossing = Instruction::Crossing::kSdwa;
  const bool sources_reserved = BitsOf(word, 18, 16) == 7 || BitsOf(word, 26, 24) == 7;
  const bool result_reserved = !compares && (BitsOf(word, 10, 8) == 7 || BitsOf(word, 12, 11) == 3);
  if (sources_reserved || result_reserved) throw Fault("the SDWA word ", Hex{word}, " at ", Hex{in_->address}, " has a reserved value");
  // A comparison has its destination where the others say which part is written: it writes no VGPR.
  in_->crossing_word = compares ? (word & ~0x3f00u) | 6 << 8 : word;
  if (compares) {
    in_->scalar_destination = BitsOf(word, 15, 15) ? Scalar(BitsOf(word, 14, 8)) : Vcc();
  } else {
    in_->clamp = BitsOf(word, 13, 13) != 0;
    in_->output_scale = static_cast<uint8_t>(BitsOf(word, 15, 14));
  }
  const uint32_t first = BitsOf(word, 7, 0);
  in_->source[0] = BitsOf(word, 23, 23) ? Scalar(first) : VgprOperand(first);
  if (BitsOf(word, 31, 31) && in_->source[1].is_vgpr()) in_->source[1] = Scalar(in_->source[1].index);
  Modify(BitsOf(word, 20, 20) | BitsOf(word, 28, 28) << 1, BitsOf(word, 21, 21) | BitsOf(word, 29, 29) << 1);
}

bool Decoder::Crossing(uint32_t code) {
  if (isa_ == Isa::kGfx9 && code == 249) {
    ReadSdwaWord(in_->format == Format::kVopc);
    RefuseSignsOfIntegers();
    return true;
  }
  if (code == 250) {
    ReadDppWord();
    RefuseSignsOfIntegers();
    return true;
  }
  if (isa_ != Isa::kGfx9 && (code == 233 || code == 234)) {
    const uint32_t word = words_[in_->size / 4];
    in_->size += 4;
    in_->crossing = Instruction::Crossing::kDpp8;
    in_->crossing_word = word;
    in_->offset1 = code == 234;
    in_->source[0] = VgprOperand(BitsOf(word, 7, 0));
    return true;
  }
  return false;
}

void Decoder::Vop1() {
  Find(Format::kVop1, BitsOf(words_[0], 16, 9), 1);
  const uint32_t destination = BitsOf(words_[0], 24, 17), code = BitsOf(words_[0], 8, 0);
  if (Is("v_nop")) return;
  if (Is("v_readfirstlane_b32")) {
    in_->scalar_destination = Scalar(destination);
  } else {
    in_->destination = VgprOperand(destination, Is("v_accvgpr_mov_b32"));
  }
  if (!Crossing(code)) in_->source[0] = Source(code);
  if (Is("v_accvgpr_mov_b32")) in_->source[0].index += kFirstAccVgpr;
}

void Decoder::Vop2() {
  Find(Format::kVop2, BitsOf(words_[0], 30, 25), 1);
  in_->destination = VgprOperand(BitsOf(words_[0], 24, 17));
  const uint32_t code = BitsOf(words_[0], 8, 0);
  const Operand second = VgprOperand(BitsOf(words_[0], 16, 9));
  in_->source[1] = second;
  if (Is("v_fmamk_f32") || Is("v_fmaak_f32")) {
    in_->size += 4;
    Operand literal = ConstantOperand(words_[1]);
    literal.code = 255;
    // The first source may be the same literal.
    in_->source[0] = code == 255 ? literal : Source(code);
    in_->source[1] = Is("v_fmamk_f32") ? literal : second;
    in_->source[2] = Is("v_fmamk_f32") ? second : literal;
    return;
  }
  if (!Crossing(code)) in_->source[0] = Source(code);
  // What VOP3 says in words of its own is vcc here.
  if (Begins("v_cndmask") || (in_->semantics->source_count == 3 && !in_->semantics->reads_result)) in_->source[2] = Vcc();
  if (in_->semantics->name.find("_co_") != std::string::npos) in_->scalar_destination = Vcc();
}

void Decoder::Vopc() {
  Find(Format::kVopc, BitsOf(words_[0], 24, 17), 1);
  const uint32_t code = BitsOf(words_[0], 8, 0);
  in_->source[1] = VgprOperand(BitsOf(words_[0], 16, 9));
  in_->scalar_destination = Vcc();
  if (!Crossing(code)) in_->source[0] = Source(code);
}

void Decoder::Vop3() {
  Find(Format::kVop3, BitsOf(words_[0], 25, 16), 2);
  const bool compares = Begins("v_cmp");
  const bool has_scalar = in_->semantics->name.find("_co_") != std::string::npos || Begins("v_div_scale") || Begins("v_mad_u64") ||
                          Begins("v_mad_i64");
  const uint32_t destination = BitsOf(words_[0], 7, 0);
  if (compares || Is("v_readlane_b32") || Is("v_readfirstlane_b32")) {
    in_->scalar_destination = Scalar(destination);
  } else {
    in_->destination = VgprOperand(destination);
  }
  const uint32_t codes[] = {BitsOf(words_[1], 8, 0), BitsOf(words_[1], 17, 9), BitsOf(words_[1], 26, 18)};
  int sources = in_->semantics->source_count;
  if (in_->semantics->reads_result) --sources;
  for (int i = 0; i < sources; ++i) {
    if (i == 0 && isa_ != Isa::kGfx9 && Crossing(codes[0])) continue;
    in_->source[i] = codes[i] == 255 && i > 0 && in_->source[i - 1].code == 255 ? in_->source[i - 1] : Source(codes[i]);
  }
  if (Begins("v_bitop3")) {
    // The truth table lies where sign modifiers and output scale would.
    in_->offset = static_cast<int32_t>(BitsOf(words_[1], 28, 27) << 6 | BitsOf(words_[0], 10, 8) << 3 | BitsOf(words_[1], 31, 29));
    SelectHalves(BitsOf(words_[0], 14, 11));
    return;
  }
  in_->output_scale = static_cast<uint8_t>(BitsOf(words_[1], 28, 27));
  in_->clamp = BitsOf(words_[0], 15, 15) != 0;
  if (has_scalar) {
    in_->scalar_destination = Scalar(BitsOf(words_[0], 14, 8));
    Modify(BitsOf(words_[1], 31, 29), 0);
  } else {
    Modify(BitsOf(words_[1], 31, 29), BitsOf(words_[0], 10, 8));
    RefuseSignsOfIntegers();
    SelectHalves(BitsOf(words_[0], 14, 11));
  }
}

}  // namespace simulator
