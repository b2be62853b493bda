// What the decoders of all families share.
#ifndef AOTRITON_SIMULATOR_DECODE_H_
#define AOTRITON_SIMULATOR_DECODE_H_

#include <cstdint>

#include "simulator/instruction.h"
#include "simulator/opcodes.h"

namespace simulator {

inline uint32_t BitsOf(uint32_t word, int high, int low) { return word >> low & ((2u << (high - low)) - 1); }

inline int32_t SignExtend(uint32_t value, int bits) { return static_cast<int32_t>(value << (32 - bits)) >> (32 - bits); }

Operand VgprOperand(uint32_t number, bool accumulation = false);
Operand SgprOperand(uint32_t number);
Operand ConstantOperand(uint32_t value);

class Decoder {
 public:
  Decoder(Isa isa, const OpcodeTable& table, const uint32_t* words, Instruction* instruction)
      : isa_(isa), table_(table), words_(words), in_(instruction) {}

 protected:
  // Looks the instruction up; throws with its bytes if there is none.
  void Find(Format format, uint32_t number, int words);
  [[noreturn]] void Unknown(Format format, uint32_t number) const;
  bool Is(const char* name) const;
  bool Begins(const char* prefix) const;

  // A source of 8 or 9 bits. A literal is the word behind the instruction, which gets longer by it.
  Operand Source(uint32_t code);
  bool TakesLiteral() const;
  Operand Scalar(uint32_t code) const;

  void Sop1();
  void Sop2();
  void Sopk();
  void Sopc();
  void Sopp();
  void Vop1();
  void Vop2();
  void Vopc();
  void Vop3();
  // The sign modifiers, bits as in `neg` and `abs`.
  void Modify(uint32_t negate, uint32_t absolute);
  void RefuseSignsOfIntegers() const;
  // For op_sel: which halves of 16-bit sources.
  void SelectHalves(uint32_t op_sel);
  // Sources 249 and 250: the word behind says what crosses lanes.
  bool Crossing(uint32_t code);
  void ReadDppWord();
  void ReadSdwaWord(bool compares);
  Operand Vcc() const { return SgprOperand(kVccLo); }

  const Isa isa_;
  const OpcodeTable& table_;
  const uint32_t* const words_;
  Instruction* const in_;
};

}  // namespace simulator

#endif
