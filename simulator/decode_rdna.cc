// The encodings of gfx11 and gfx12. They differ in memory instructions only.
#include "simulator/decode.h"
#include "simulator/fault.h"
#include "simulator/program.h"

namespace simulator {
namespace {

class Rdna : Decoder {
 public:
  Rdna(const Arch& arch, const uint32_t* words, Instruction* instruction)
      : Decoder(arch.isa, *arch.opcodes, words, instruction), is_12_(arch.isa == Isa::kGfx12) {}

  void Run() {
    const uint32_t word = words_[0];
    if (word >> 23 == 0b101111101) return Sop1();
    if (word >> 23 == 0b101111110) return Sopc();
    if (word >> 23 == 0b101111111) return Sopp();
    if (word >> 28 == 0b1011) return Sopk();
    if (word >> 30 == 0b10) return Sop2();
    if (word >> 25 == 0b0111111) return NameHalves(&Rdna::Vop1);
    if (word >> 25 == 0b0111110) return NameHalves(&Rdna::CompareOfGfx11);
    if (word >> 31 == 0) return NameHalves(&Rdna::Vop2);
    if (word >> 24 == 0b11001100) return Vop3p();
    if (word >> 26 == 0b110101) return Vop3();
    if (word >> 26 == 0b110010) return Vopd();
    if (word >> 26 == 0b111101) return Smem();
    if (word >> 26 == 0b110110) return Ds();
    if (!is_12_ && word >> 26 == 0b110111) return Flat(BitsOf(word, 17, 16), BitsOf(word, 24, 18));
    if (is_12_ && word >> 26 == 0b111011) return Flat(BitsOf(word, 25, 24), BitsOf(word, 21, 14));
    if (!is_12_ && word >> 26 == 0b111000) return Buffer();
    throw Fault("unknown encoding ", Hex{word}, " ", Hex{words_[1]}, " at ", Hex{in_->address});
  }

 private:
  // In the short encodings the highest bit of a 16-bit register says which half it is.
  void NameHalves(void (Rdna::*decode)()) {
    (this->*decode)();
    const Semantics& semantics = *in_->semantics;
    NameHalf(semantics.result, &in_->destination);
    for (int i = 0; i < 3; ++i) NameHalf(semantics.sources[i], &in_->source[i]);
  }

  static void NameHalf(Type type, Operand* operand) {
    if (type != Type::kHalf || !operand->is_vgpr()) return;
    operand->high = operand->index >= 128;
    operand->index %= 128;
  }

  void CompareOfGfx11() {
    Vopc();
    if (Begins("v_cmpx")) in_->scalar_destination = SgprOperand(kExecLo);
  }

  void Vop3p() {
    Find(Format::kVop3p, BitsOf(words_[0], 22, 16), 2);
    in_->destination = VgprOperand(BitsOf(words_[0], 7, 0));
    const uint32_t codes[] = {BitsOf(words_[1], 8, 0), BitsOf(words_[1], 17, 9), BitsOf(words_[1], 26, 18)};
    for (int i = 0; i < in_->semantics->source_count; ++i) in_->source[i] = Source(codes[i]);
    in_->clamp = BitsOf(words_[0], 15, 15) != 0;
    in_->neg_hi = static_cast<uint8_t>(BitsOf(words_[0], 10, 8));
    in_->neg_lo = static_cast<uint8_t>(BitsOf(words_[1], 31, 29));
    in_->op_sel = static_cast<uint8_t>(BitsOf(words_[0], 13, 11));
    in_->op_sel_hi = static_cast<uint8_t>(BitsOf(words_[1], 28, 27) | BitsOf(words_[0], 14, 14) << 2);
  }

  // Two instructions of few operands in one; they read before either writes.
  void Vopd() {
    in_->format = Format::kVopd;
    in_->size = 8;
    auto* second = new Instruction(*in_);  // as long-lived as the program
    in_->dual = second;
    const uint32_t opcodes[] = {BitsOf(words_[0], 25, 22), BitsOf(words_[0], 21, 17)};
    const Semantics* const meanings[] = {DualMeaning(opcodes[0]), DualMeaning(opcodes[1])};
    Half(meanings[0], in_, BitsOf(words_[0], 8, 0), BitsOf(words_[0], 16, 9));
    in_->destination = VgprOperand(BitsOf(words_[1], 31, 24));
    Half(meanings[1], second, BitsOf(words_[1], 8, 0), BitsOf(words_[1], 16, 9));
    // The lowest bit of its destination is the opposite of the other's.
    second->destination = VgprOperand(BitsOf(words_[1], 23, 17) << 1 | (~BitsOf(words_[1], 24, 24) & 1));
    in_->size = has_literal_ ? 12 : 8;
  }

  const Semantics* DualMeaning(uint32_t opcode) const {
    const Semantics* semantics = table_.Find(Format::kVopd, opcode).semantics;
    if (semantics == nullptr) Unknown(Format::kVopd, opcode);
    return semantics;
  }

  void Half(const Semantics* semantics, Instruction* half, uint32_t first, uint32_t second) {
    half->semantics = semantics;
    half->source[0] = DualSource(first);
    if (semantics->name == "v_mov_b32") return;
    half->source[1] = VgprOperand(second);
    if (semantics->name == "v_cndmask_b32") half->source[2] = Vcc();
    if (semantics->name == "v_fmaak_f32") half->source[2] = DualSource(255);
    if (semantics->name == "v_fmamk_f32") {
      half->source[2] = half->source[1];
      half->source[1] = DualSource(255);
    }
  }

  Operand DualSource(uint32_t code) {
    if (code != 255) return Source(code);
    has_literal_ = true;
    Operand literal = ConstantOperand(words_[2]);
    literal.code = 255;
    return literal;
  }

  void Smem() {
    Find(Format::kSmem, is_12_ ? BitsOf(words_[0], 18, 13) : BitsOf(words_[0], 25, 18), 2);
    in_->destination = Scalar(BitsOf(words_[0], 12, 6));
    in_->source[0] = Scalar(BitsOf(words_[0], 5, 0) * 2);
    in_->offset = is_12_ ? SignExtend(words_[1], 24) : SignExtend(words_[1], 21);
    in_->source[1] = Scalar(BitsOf(words_[1], 31, 25));
    if (is_12_) {
      in_->scope = static_cast<uint8_t>(BitsOf(words_[0], 22, 21));
      const bool has_hint = BitsOf(words_[0], 25, 23) != 0;
      const bool has_reserved = BitsOf(words_[0], 20, 19) != 0 || BitsOf(words_[1], 24, 24) != 0;
      if (has_hint || has_reserved) Unknown(Format::kSmem, BitsOf(words_[0], 18, 13));
    } else {
      SetCache(BitsOf(words_[0], 14, 14), 0, BitsOf(words_[0], 13, 13));
    }
  }

  void Ds() {
    Find(Format::kDs, BitsOf(words_[0], 25, 18), 2);
    if (BitsOf(words_[0], 17, 17)) throw Fault("GDS at ", Hex{in_->address}, " is not modelled");
    if (in_->semantics->parameter[3] != 0) {  // two offsets
      in_->offset = static_cast<int32_t>(BitsOf(words_[0], 7, 0));
      in_->offset1 = static_cast<int32_t>(BitsOf(words_[0], 15, 8));
    } else {
      in_->offset = static_cast<int32_t>(BitsOf(words_[0], 15, 0));
    }
    in_->source[0] = VgprOperand(BitsOf(words_[1], 7, 0));
    in_->source[1] = VgprOperand(BitsOf(words_[1], 15, 8));
    in_->source[2] = VgprOperand(BitsOf(words_[1], 23, 16));
    in_->destination = VgprOperand(BitsOf(words_[1], 31, 24));
  }

  void Flat(uint32_t segment, uint32_t number) {
    if (segment == 0 || segment == 3) Unknown(Format::kFlat, number);
    const bool is_scratch = segment == 1;
    Find(is_scratch ? Format::kScratch : Format::kGlobal, number, is_12_ ? 3 : 2);
    uint32_t base;
    bool has_address = !is_scratch;
    if (is_12_) {
      base = BitsOf(words_[0], 6, 0);
      in_->offset = SignExtend(words_[2] >> 8, 24);
      in_->source[0] = VgprOperand(BitsOf(words_[2], 7, 0));
      in_->source[1] = VgprOperand(BitsOf(words_[1], 30, 23));
      in_->destination = VgprOperand(BitsOf(words_[1], 7, 0));
      in_->returns = BitsOf(words_[1], 20, 20) != 0;
      in_->scope = static_cast<uint8_t>(BitsOf(words_[1], 19, 18));
      in_->temporal_hint = static_cast<uint8_t>(BitsOf(words_[1], 22, 20));
      const bool is_cascade = in_->semantics->name.find("_atomic") != std::string::npos && in_->temporal_hint >= 4;
      const bool has_reserved = BitsOf(words_[0], 7, 7) != 0 || BitsOf(words_[1], 16, 16) != 0 || in_->temporal_hint == 7;
      if (is_cascade || has_reserved) Unknown(in_->format, number);
      has_address |= BitsOf(words_[1], 17, 17) != 0;
    } else {
      base = BitsOf(words_[1], 22, 16);
      in_->offset = SignExtend(words_[0], 13);
      in_->source[0] = VgprOperand(BitsOf(words_[1], 7, 0));
      in_->source[1] = VgprOperand(BitsOf(words_[1], 15, 8));
      in_->destination = VgprOperand(BitsOf(words_[1], 31, 24));
      in_->returns = BitsOf(words_[0], 14, 14) != 0;
      SetCache(BitsOf(words_[0], 14, 14), BitsOf(words_[0], 15, 15), BitsOf(words_[0], 13, 13));
      has_address |= BitsOf(words_[1], 23, 23) != 0;
    }
    if (base != 124) in_->source[2] = Scalar(base);
    if (!has_address) in_->source[0] = Operand();
  }

  void Buffer() {
    const uint32_t number = BitsOf(words_[0], 25, 18);
    Find(Format::kBuffer, number, 2);
    const bool has_tfe = BitsOf(words_[1], 21, 21) != 0, is_null = BitsOf(words_[1], 20, 16) == 31;
    if ((has_tfe || is_null) && !Begins("buffer_gl")) Unknown(Format::kBuffer, number);
    in_->offset = static_cast<int32_t>(BitsOf(words_[0], 11, 0));
    in_->returns = BitsOf(words_[0], 14, 14) != 0;
    SetCache(BitsOf(words_[0], 14, 14), BitsOf(words_[0], 12, 12), BitsOf(words_[0], 13, 13));
    in_->offset_enable = BitsOf(words_[1], 22, 22) != 0;
    in_->index_enable = BitsOf(words_[1], 23, 23) != 0;
    in_->source[0] = VgprOperand(BitsOf(words_[1], 7, 0));
    in_->source[1] = in_->destination = VgprOperand(BitsOf(words_[1], 15, 8));
    in_->source[2] = SgprOperand(BitsOf(words_[1], 20, 16) * 4);
    if (!Begins("buffer_gl")) in_->source[3] = Source(BitsOf(words_[1], 31, 24));
  }

  void SetCache(uint32_t coherent, uint32_t streaming, uint32_t device) {
    if (coherent) in_->cache |= Instruction::kGlc;
    if (streaming) in_->cache |= Instruction::kSlc;
    if (device) in_->cache |= Instruction::kDlc;
  }

  const bool is_12_;
  bool has_literal_ = false;
};

}  // namespace

void DecodeRdna(const Arch& arch, const uint32_t* words, Instruction* instruction) { Rdna(arch, words, instruction).Run(); }

}  // namespace simulator
