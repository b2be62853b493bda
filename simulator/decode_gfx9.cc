// The encodings of gfx9: gfx90a, gfx942, gfx950.
#include "simulator/decode.h"
#include "simulator/fault.h"
#include "simulator/program.h"

namespace simulator {
namespace {

class Gfx9 : Decoder {
 public:
  Gfx9(const Arch& arch, const uint32_t* words, Instruction* instruction)
      : Decoder(Isa::kGfx9, *arch.opcodes, words, instruction), is_gfx90a_(arch.scratch_is_buffer) {}

  void Run() {
    const uint32_t word = words_[0];
    if (word >> 23 == 0b101111101) return Sop1();
    if (word >> 23 == 0b101111110) return Sopc();
    if (word >> 23 == 0b101111111) return Sopp();
    if (word >> 28 == 0b1011) return Sopk();
    if (word >> 30 == 0b10) return Sop2();
    if (word >> 25 == 0b0111111) return Vop1();
    if (word >> 25 == 0b0111110) return Vopc();
    if (word >> 31 == 0) return Vop2();
    if (word >> 23 == 0b110100111) return Vop3p();
    if (word >> 26 == 0b110100) return Vop3();
    if (word >> 26 == 0b110000) return Smem();
    if (word >> 26 == 0b110110) return Ds();
    if (word >> 26 == 0b110111) return Flat();
    if (word >> 26 == 0b111000) return Buffer();
    throw Fault("unknown encoding ", Hex{word}, " ", Hex{words_[1]}, " at ", Hex{in_->address});
  }

 private:
  void Vop3p() {
    Find(Format::kVop3p, BitsOf(words_[0], 22, 16), 2);
    const bool is_matrix = Begins("v_mfma");
    const bool writes_acc = is_matrix ? BitsOf(words_[0], 15, 15) != 0 : Is("v_accvgpr_write_b32");
    in_->destination = VgprOperand(BitsOf(words_[0], 7, 0), writes_acc);
    const uint32_t codes[] = {BitsOf(words_[1], 8, 0), BitsOf(words_[1], 17, 9), BitsOf(words_[1], 26, 18)};
    for (int i = 0; i < in_->semantics->source_count; ++i) in_->source[i] = Source(codes[i]);
    if (is_matrix) {
      const bool acc[] = {BitsOf(words_[1], 27, 27) != 0, BitsOf(words_[1], 28, 28) != 0, writes_acc};
      for (int i = 0; i < 3; ++i) {
        if (acc[i] && in_->source[i].is_vgpr()) in_->source[i].index += kFirstAccVgpr;
      }
      in_->cbsz = static_cast<uint8_t>(BitsOf(words_[0], 10, 8));
      in_->abid = static_cast<uint8_t>(BitsOf(words_[0], 14, 11));
      in_->blgp = static_cast<uint8_t>(BitsOf(words_[1], 31, 29));
      return;
    }
    if (Is("v_accvgpr_read_b32") && in_->source[0].is_vgpr()) in_->source[0].index += kFirstAccVgpr;
    in_->clamp = !Begins("v_accvgpr") && BitsOf(words_[0], 15, 15) != 0;
    in_->neg_hi = static_cast<uint8_t>(BitsOf(words_[0], 10, 8));
    in_->neg_lo = static_cast<uint8_t>(BitsOf(words_[1], 31, 29));
    in_->op_sel = static_cast<uint8_t>(BitsOf(words_[0], 13, 11));
    in_->op_sel_hi = static_cast<uint8_t>(BitsOf(words_[1], 28, 27) | BitsOf(words_[0], 14, 14) << 2);
  }

  void Smem() {
    Find(Format::kSmem, BitsOf(words_[0], 25, 18), 2);
    in_->destination = Scalar(BitsOf(words_[0], 12, 6));
    in_->source[0] = SgprOperand(BitsOf(words_[0], 5, 0) * 2);
    const bool has_offset = BitsOf(words_[0], 17, 17) != 0, has_register = BitsOf(words_[0], 14, 14) != 0;
    if (has_offset) in_->offset = SignExtend(words_[1], 21);
    in_->offset_enable = has_offset;
    if (has_register) {
      in_->source[1] = Scalar(BitsOf(words_[1], 31, 25));
    } else if (!has_offset) {
      in_->source[1] = Scalar(BitsOf(words_[1], 6, 0));
    }
    if (BitsOf(words_[0], 16, 16)) in_->cache = Instruction::kGlc;
  }

  void Ds() {
    Find(Format::kDs, BitsOf(words_[0], 24, 17), 2);
    if (BitsOf(words_[0], 16, 16)) throw Fault("GDS at ", Hex{in_->address}, " is not modelled");
    const bool acc = BitsOf(words_[0], 25, 25) != 0;
    if (in_->semantics->parameter[3] != 0) {  // two offsets
      in_->offset = static_cast<int32_t>(BitsOf(words_[0], 7, 0));
      in_->offset1 = static_cast<int32_t>(BitsOf(words_[0], 15, 8));
    } else {
      in_->offset = static_cast<int32_t>(BitsOf(words_[0], 15, 0));
    }
    in_->source[0] = VgprOperand(BitsOf(words_[1], 7, 0));
    in_->source[1] = VgprOperand(BitsOf(words_[1], 15, 8), acc);
    in_->source[2] = VgprOperand(BitsOf(words_[1], 23, 16), acc);
    in_->destination = VgprOperand(BitsOf(words_[1], 31, 24), acc);
  }

  void Flat() {
    const uint32_t segment = BitsOf(words_[0], 15, 14), number = BitsOf(words_[0], 24, 18);
    const bool to_lds = is_gfx90a_ && BitsOf(words_[0], 13, 13) != 0;
    if (segment == 0 || segment == 3 || to_lds) Unknown(Format::kFlat, number);
    const bool is_scratch = segment == 1;
    Find(is_scratch ? Format::kScratch : Format::kGlobal, number, 2);
    const bool acc = BitsOf(words_[1], 23, 23) != 0;
    const uint32_t base = BitsOf(words_[1], 22, 16);
    in_->offset = SignExtend(words_[0], 13);
    in_->returns = BitsOf(words_[0], 16, 16) != 0;
    SetCache(BitsOf(words_[0], 16, 16), BitsOf(words_[0], 17, 17), BitsOf(words_[0], 25, 25));
    if (base != 0x7f) in_->source[2] = Scalar(base);
    const bool has_address = !is_scratch || (is_gfx90a_ ? base == 0x7f : BitsOf(words_[0], 13, 13) != 0);
    if (has_address) in_->source[0] = VgprOperand(BitsOf(words_[1], 7, 0));
    in_->source[1] = VgprOperand(BitsOf(words_[1], 15, 8), acc);
    in_->destination = VgprOperand(BitsOf(words_[1], 31, 24), acc);
  }

  void Buffer() {
    Find(Format::kBuffer, BitsOf(words_[0], 24, 18), 2);
    const bool acc = BitsOf(words_[1], 23, 23) != 0;
    in_->offset = static_cast<int32_t>(BitsOf(words_[0], 11, 0));
    in_->offset_enable = BitsOf(words_[0], 12, 12) != 0;
    in_->index_enable = BitsOf(words_[0], 13, 13) != 0;
    in_->returns = BitsOf(words_[0], 14, 14) != 0;
    SetCache(BitsOf(words_[0], 14, 14), BitsOf(words_[0], 17, 17), BitsOf(words_[0], 15, 15));
    in_->lds = BitsOf(words_[0], 16, 16) != 0;
    in_->source[0] = VgprOperand(BitsOf(words_[1], 7, 0));
    in_->source[1] = in_->destination = VgprOperand(BitsOf(words_[1], 15, 8), acc);
    in_->source[2] = SgprOperand(BitsOf(words_[1], 20, 16) * 4);
    if (!Begins("buffer_inv") && !Begins("buffer_wb")) in_->source[3] = Source(BitsOf(words_[1], 31, 24));
  }

  // gfx940 has other names for the same bits.
  void SetCache(uint32_t coherent, uint32_t streaming, uint32_t system) {
    if (coherent) in_->cache |= is_gfx90a_ ? Instruction::kGlc : Instruction::kSc0;
    if (streaming) in_->cache |= is_gfx90a_ ? Instruction::kSlc : Instruction::kNt;
    if (system) in_->cache |= is_gfx90a_ ? Instruction::kScc : Instruction::kSc1;
  }

  const bool is_gfx90a_;
};

}  // namespace

void DecodeGfx9(const Arch& arch, const uint32_t* words, Instruction* instruction) { Gfx9(arch, words, instruction).Run(); }

}  // namespace simulator
