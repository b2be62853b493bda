// A decoded instruction, and the table of what instructions mean.
#ifndef AOTRITON_SIMULATOR_INSTRUCTION_H_
#define AOTRITON_SIMULATOR_INSTRUCTION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace simulator {

class Wave;
struct Instruction;

enum class Isa : uint8_t { kGfx9, kGfx11, kGfx12 };

enum class Format : uint8_t {
  kSop1, kSop2, kSopk, kSopc, kSopp, kSmem, kVop1, kVop2, kVop3, kVopc, kVop3p, kVopd, kDs, kBuffer, kFlat, kScratch, kGlobal
};

// Numbers of scalar operands that have a name.
constexpr int kVccLo = 106, kTtmp0 = 108, kExecLo = 126, kExecHi = 127;
constexpr int kFirstAccVgpr = 256;

struct Operand {
  enum class Kind : uint8_t { kNone, kVgpr, kSgpr, kConstant, kScc, kVccIsZero, kExecIsZero, kNull };
  Kind kind = Kind::kNone;
  uint16_t index = 0;   // of the first register; accumulation VGPRs follow the 256 others
  uint16_t code = 0;    // of an inline constant, as encoded: what it is depends on the operand's type
  uint32_t value = 0;   // of a constant, as 32 bits
  bool negate = false, absolute = false;
  bool high = false;    // op_sel: the upper half of a 16-bit source

  bool is_vgpr() const { return kind == Kind::kVgpr; }
};

// How a source or result lies in registers, and what its modifiers change.
enum class Type : uint8_t { kNone, kWord, kFloat, kHalf, kPair, kSignedPair, kDouble };
inline bool IsPair(Type type) { return type >= Type::kPair; }

// 16 bits of a register; arithmetic says whether they are a number.
struct Half {
  uint16_t bits;
};

using Execute = void (*)(Wave&, const Instruction&);
// One element-wise operation over all lanes: rows of 64 words, two for a pair.
using LaneFunction = void (*)(uint32_t* result, const uint32_t* a, const uint32_t* b, const uint32_t* c, int lanes);

// How far a bit without a value spreads: to all of the result; to the bits from its place on upwards (a sum); or to the bits
// that are made of it (a move, a shift, an and).
enum class Spread : uint8_t { kWhole, kUpwards, kBits };

// What an instruction means. `execute` does all of it.
struct Semantics {
  std::string name;
  Execute execute = nullptr;
  LaneFunction lanes = nullptr;
  Type sources[3] = {Type::kNone, Type::kNone, Type::kNone};
  int source_count = 0;
  Type result = Type::kNone;
  Spread spread = Spread::kWhole;
  int controls = 0;  // a bit for each source that says where the others' bits go
  bool reads_result = false;  // the destination is the third source
  int parameter[4] = {};      // what differs between the instructions of one `execute`
};

// The lane mask that many instructions read or write without naming it.
inline Operand Vcc() {
  Operand vcc;
  vcc.kind = Operand::Kind::kSgpr;
  vcc.index = kVccLo;
  return vcc;
}

struct Instruction {
  const Semantics* semantics = nullptr;
  Isa isa = Isa::kGfx9;
  Format format = Format::kSopp;
  bool has_two_forms = false;  // of the vector ALU: VOP3 and a shorter one
  uint64_t address = 0;
  int size = 0;  // bytes
  Operand destination, scalar_destination, source[4];
  int32_t offset = 0, offset1 = 0;  // of memory instructions; the immediate of SOPK and SOPP
  // Modifiers of the vector ALU.
  bool clamp = false;
  uint8_t output_scale = 0;                          // 1: *2, 2: *4, 3: /2
  uint8_t op_sel = 0, op_sel_hi = 0, neg_lo = 0, neg_hi = 0;  // a bit for each source, bit 3 the destination
  uint8_t cbsz = 0, abid = 0, blgp = 0;  // of MFMA
  enum class Crossing : uint8_t { kNone, kDpp, kDpp8, kSdwa } crossing = Crossing::kNone;
  uint32_t crossing_word = 0;
  // Modifiers of memory instructions.
  bool returns = false, lds = false, offset_enable = false, index_enable = false;
  // How caches treat the access, which changes nothing that is modelled.
  enum Cache : uint8_t { kGlc = 1, kSc0 = 2, kSlc = 4, kNt = 8, kDlc = 16, kScc = 32, kSc1 = 64 };
  uint8_t cache = 0;
  uint8_t temporal_hint = 0, scope = 0;  // gfx12
  const Instruction* dual = nullptr;  // the other half of a VOPD

  int immediate() const { return offset; }
};

// Finds what `name` means, or nullptr.
const Semantics* FindSemantics(const std::string& name);
// Adds to the table. Each file of instructions does, before the first look-up.
void Define(const std::vector<const char*>& names, Semantics semantics);

void DefineScalarInstructions();
void DefineScalarMemoryInstructions();
void DefineVectorInstructions();
void DefineCompareInstructions();
void DefineCarryInstructions();
void DefinePackedInstructions();
void DefineMatrixInstructions();
void DefineLaneInstructions();
void DefineLdsInstructions();
void DefineMemoryInstructions();
void DefineControlInstructions();

// The instruction in assembly, as our decoder understood it.
std::string Print(const Instruction& instruction);

}  // namespace simulator

#endif
