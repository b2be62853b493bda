// Instructions in the assembly of LLVM, but for registers: of a range, the first is named.
#include <cstring>
#include <sstream>

#include "simulator/instruction.h"

namespace simulator {
namespace {

bool Contains(const std::string& name, const char* part) { return name.find(part) != std::string::npos; }
bool Begins(const std::string& name, const char* prefix) { return name.compare(0, strlen(prefix), prefix) == 0; }

class Printer {
 public:
  explicit Printer(const Instruction& instruction) : in_(instruction), name_(instruction.semantics->name) {}

  std::string Run() {
    switch (in_.format) {
      case Format::kSopp: Sopp(); break;
      case Format::kSopk: Sopk(); break;
      case Format::kSmem: Smem(); break;
      case Format::kDs: Ds(); break;
      case Format::kBuffer: Buffer(); break;
      case Format::kFlat:
      case Format::kScratch:
      case Format::kGlobal: Flat(); break;
      case Format::kVopd: Vopd(); break;
      case Format::kSop1:
      case Format::kSop2:
      case Format::kSopc: Scalars(); break;
      case Format::kVop1:
      case Format::kVop2:
      case Format::kVopc:
      case Format::kVop3:
      case Format::kVop3p: Vop(); break;
    }
    return out_.str();
  }

 private:
  bool is_gfx9() const { return in_.isa == Isa::kGfx9; }

  void Text(const std::string& text) {
    out_ << separator_ << text;
    separator_ = ", ";
  }

  void Hexadecimal(uint32_t value) {
    std::ostringstream text;
    text << "0x" << std::hex << value;
    Text(text.str());
  }

  static std::string SignedHexadecimal(int64_t value) {
    std::ostringstream text;
    text << (value < 0 ? "-" : "") << "0x" << std::hex << (value < 0 ? -value : value);
    return text.str();
  }

  // As inline constants are.
  static std::string Short(uint32_t value) { return value <= 64 ? std::to_string(value) : SignedHexadecimal(value); }

  void Modifier(const char* name, int64_t value) { out_ << " " << name << ":" << value; }

  // [1,0,1]: a bit for each operand.
  void Bits(const char* name, int bits, int count) {
    out_ << " " << name << ":[";
    for (int i = 0; i < count; ++i) out_ << (i == 0 ? "" : ",") << (bits >> i & 1);
    out_ << "]";
  }

  static const char* NameOfScalar(int index, bool is_gfx9) {
    switch (index) {
      case kVccLo: return "vcc";
      case kVccLo + 1: return "vcc_hi";
      case kExecLo: return "exec";
      case kExecHi: return "exec_hi";
      case 102: return is_gfx9 ? "flat_scratch" : nullptr;
      case 103: return is_gfx9 ? "flat_scratch_hi" : nullptr;
      case 104: return is_gfx9 ? "xnack_mask" : nullptr;
      case 105: return is_gfx9 ? "xnack_mask_hi" : nullptr;
      case 124:
      case 125: return "m0";
      default: return nullptr;
    }
  }

  int CodeOfLiteral(uint32_t value) const {
    static constexpr uint32_t kFloatBits[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                              0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
    if (name_ == "v_fmamk_f32" || name_ == "v_fmaak_f32") return 255;  // they take nothing else
    if (const auto number = static_cast<int32_t>(value); number >= -16 && number <= 64) return 0;
    for (int i = 0; i < 9; ++i) {
      if (value == kFloatBits[i] && !Contains(name_, "64")) return 240 + i;
    }
    return 255;
  }

  std::string Register(const Operand& operand) const {
    static constexpr const char* kFloats[] = {"0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494"};
    std::ostringstream text;
    switch (operand.kind) {
      case Operand::Kind::kVgpr:
        text << (operand.index < kFirstAccVgpr ? "v" : "a") << operand.index % kFirstAccVgpr;
        break;
      case Operand::Kind::kSgpr:
        if (const char* name = NameOfScalar(operand.index, is_gfx9())) {
          text << name;
        } else if (operand.index >= kTtmp0) {
          text << "ttmp" << operand.index - kTtmp0;
        } else {
          text << "s" << operand.index;
        }
        break;
      case Operand::Kind::kConstant:
        // A literal that could have been an inline constant is printed as that.
        if (const int code = operand.code == 255 ? CodeOfLiteral(operand.value) : operand.code; code == 255) {
          text << "0x" << std::hex << operand.value;
        } else if (code >= 240) {
          text << kFloats[code - 240];
        } else {
          text << static_cast<int32_t>(operand.value);
        }
        break;
      case Operand::Kind::kScc: text << "src_scc"; break;
      case Operand::Kind::kVccIsZero: text << "src_vccz"; break;
      case Operand::Kind::kExecIsZero: text << "src_execz"; break;
      case Operand::Kind::kNull: text << "null"; break;
      case Operand::Kind::kNone: break;
    }
    return text.str();
  }

  void Print(const Operand& operand) {
    if (operand.kind != Operand::Kind::kNone) Text(Register(operand));
  }

  // Of a literal 16 bits are used; integers name the bits of a number.
  std::string ShortConstant(const Operand& operand, const std::string& text) const {
    static constexpr const char* kFloatBits[] = {"0x3800", "0xb800", "0x3c00", "0xbc00", "0x4000",
                                                 "0xc000", "0x4400", "0xc400", "0x3118"};
    if (operand.code == 255) return SignedHexadecimal(operand.value & 0xffff);
    return operand.code >= 240 && !Contains(name_, "f16") ? kFloatBits[operand.code - 240] : text;
  }

  // An operand of the vector ALU. 16-bit registers have names on RDNA.
  void Print(const Operand& operand, Type type, bool extends_sign = false) {
    if (operand.kind == Operand::Kind::kNone) return;
    std::string text = Register(operand);
    const bool is_short = type == Type::kHalf && in_.format != Format::kVop3p && !(is_gfx9() && Begins(name_, "v_align"));
    if (is_short && operand.kind == Operand::Kind::kConstant) text = ShortConstant(operand, text);
    if (is_short && operand.is_vgpr() && !is_gfx9()) text += operand.high ? ".h" : ".l";
    if (extends_sign) text = "sext(" + text + ")";
    if (operand.absolute) text = "|" + text + "|";
    if (operand.negate) text = operand.kind == Operand::Kind::kConstant && !operand.absolute ? "neg(" + text + ")" : "-" + text;
    Text(text);
  }

  void Scalars() {
    out_ << name_;
    Print(in_.destination);
    for (const Operand& source : in_.source) Print(source);
  }

  void Sopk() {
    out_ << name_;
    Print(in_.destination);
    Hexadecimal(static_cast<uint16_t>(in_.offset));
  }

  void Sopp() {
    const auto immediate = static_cast<uint16_t>(in_.offset);
    out_ << name_;
    if (name_ == "s_waitcnt") {
      WaitCounts(immediate);
    } else if (name_ == "s_delay_alu") {
      Delay(immediate);
    } else if (name_ == "s_sendmsg") {
      Text("sendmsg(MSG_DEALLOC_VGPRS)");  // the only one that is decoded
    } else if (Contains(name_, "branch") || (name_ == "s_endpgm" && immediate != 0)) {
      Text(std::to_string(immediate));
    } else if (name_ == "s_nop" || name_ == "s_sleep" || name_ == "s_setprio" || name_ == "s_barrier_wait") {
      Text(Short(immediate));
    } else if (Begins(name_, "s_wait") || name_ == "s_clause" || name_ == "s_set_inst_prefetch_distance") {
      if (name_ != "s_wait_idle") Hexadecimal(immediate);
    }
  }

  // Counters that are not waited for are at their highest.
  void WaitCounts(uint32_t counts) {
    struct Field {
      const char* name;
      uint32_t value, highest;
    };
    const Field gfx9[] = {{"vmcnt", (counts & 0xf) | (counts >> 14 & 3) << 4, 0x3f}, {"expcnt", counts >> 4 & 7, 7},
                          {"lgkmcnt", counts >> 8 & 0xf, 0xf}};
    const Field gfx11[] = {{"vmcnt", counts >> 10 & 0x3f, 0x3f}, {"expcnt", counts & 7, 7}, {"lgkmcnt", counts >> 4 & 0x3f, 0x3f}};
    for (const Field& field : is_gfx9() ? gfx9 : gfx11) {
      if (field.value != field.highest) out_ << " " << field.name << "(" << field.value << ")";
    }
  }

  void Delay(uint32_t delays) {
    static constexpr const char* kInstructions[] = {
        "NO_DEP", "VALU_DEP_1", "VALU_DEP_2", "VALU_DEP_3", "VALU_DEP_4", "TRANS32_DEP_1", "TRANS32_DEP_2", "TRANS32_DEP_3",
        "FMA_ACCUM_CYCLE_1", "SALU_CYCLE_1", "SALU_CYCLE_2", "SALU_CYCLE_3", "12", "13", "14", "15"};
    static constexpr const char* kSkips[] = {"SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4", "6", "7"};
    const uint32_t first = delays & 15, skip = delays >> 4 & 7, second = delays >> 7 & 15;
    const char* separator = " ";
    const auto print = [&](const char* field, const char* value) {
      out_ << separator << field << "(" << value << ")";
      separator = " | ";
    };
    if (first == 0 && skip == 0 && second == 0) Text("0");
    if (first != 0) print("instid0", kInstructions[first]);
    if (skip != 0) print("instskip", kSkips[skip]);
    if (second != 0) print("instid1", kInstructions[second]);
  }

  void Smem() {
    out_ << name_;
    Print(in_.destination);
    Print(in_.source[0]);
    const bool has_register = in_.source[1].kind == Operand::Kind::kSgpr;
    if (in_.isa == Isa::kGfx11 && !has_register && in_.offset == 0) {
      Text("null");
    } else if (!has_register) {
      Text(SignedHexadecimal(in_.offset));
    } else {
      Print(in_.source[1]);
      if (in_.offset != 0 || in_.offset_enable || in_.isa == Isa::kGfx12) out_ << " offset:" << SignedHexadecimal(in_.offset);
    }
    Cache();
  }

  void Ds() {
    out_ << name_;
    const bool permutes = Contains(name_, "permute");
    if (permutes || Contains(name_, "_read") || Contains(name_, "_load") || name_ == "ds_swizzle_b32") Print(in_.destination);
    Print(in_.source[0]);
    if (permutes || Contains(name_, "_write") || Contains(name_, "_store")) Print(in_.source[1]);
    const bool has_two = in_.semantics->parameter[3] != 0;
    if (has_two && (Contains(name_, "_write") || Contains(name_, "_store"))) Print(in_.source[2]);
    if (name_ == "ds_swizzle_b32") {
      Swizzle(static_cast<uint32_t>(in_.offset));
    } else if (in_.offset != 0) {
      Modifier(has_two ? "offset0" : "offset", in_.offset);
    }
    if (has_two && in_.offset1 != 0) Modifier("offset1", in_.offset1);
  }

  void Swizzle(uint32_t pattern) {
    if (pattern == 0) return;
    out_ << " offset:";
    const uint32_t keep = pattern & 31, set = pattern >> 5 & 31, flip = pattern >> 10 & 31;
    if ((pattern & 0xff00) == 0x8000) {
      out_ << "swizzle(QUAD_PERM";
      for (int i = 0; i < 4; ++i) out_ << "," << (pattern >> (2 * i) & 3);
      out_ << ")";
    } else if (pattern >= 0xe000) {
      out_ << "swizzle(FFT," << (pattern & 31) << ")";
    } else if (pattern >= 0xc000) {
      out_ << "swizzle(ROTATE," << (pattern >> 10 & 1) << "," << (pattern >> 5 & 31) << ")";
    } else if (pattern >= 0x8000) {
      out_ << pattern;
    } else if (keep == 31 && set == 0 && flip != 0 && (flip & (flip - 1)) == 0) {
      out_ << "swizzle(SWAP," << flip << ")";
    } else if (keep == 31 && set == 0 && flip != 0 && (flip & (flip + 1)) == 0) {
      out_ << "swizzle(REVERSE," << flip + 1 << ")";
    } else if (const uint32_t group = 32 - keep; group > 1 && (group & (group - 1)) == 0 && set < group && flip == 0) {
      out_ << "swizzle(BROADCAST," << group << "," << set << ")";
    } else {
      out_ << "swizzle(BITMASK_PERM,\"";
      for (int bit = 4; bit >= 0; --bit) {
        const uint32_t from_0 = (set >> bit & 1) ^ (flip >> bit & 1);
        const uint32_t from_1 = (((keep >> bit & 1) | (set >> bit & 1)) ^ (flip >> bit & 1));
        out_ << (from_0 == from_1 ? (from_0 != 0 ? '1' : '0') : (from_0 != 0 ? 'i' : 'p'));
      }
      out_ << "\")";
    }
  }

  void Flat() {
    out_ << name_;
    const bool is_load = Contains(name_, "_load"), is_atomic = Contains(name_, "_atomic");
    if (!is_load && !is_atomic && !Contains(name_, "_store")) {
      Cache();
      return;
    }
    const auto address = [&](const Operand& operand) {
      if (operand.kind == Operand::Kind::kNone) {
        Text("off");
      } else {
        Print(operand);
      }
    };
    if (is_load || (is_atomic && in_.returns)) Print(in_.destination);
    address(in_.source[0]);
    if (!is_load) Print(in_.source[1]);
    address(in_.source[2]);
    if (in_.offset != 0) Modifier("offset", in_.offset);
    Cache();
  }

  void Buffer() {
    out_ << name_;
    if (in_.source[3].kind == Operand::Kind::kNone) {
      if ((in_.cache & Instruction::kSc0) != 0) out_ << " sc0";
      if ((in_.cache & Instruction::kSc1) != 0) out_ << " sc1";
      return;
    }
    if (!in_.lds) Print(in_.source[1]);
    if (in_.offset_enable || in_.index_enable) {
      Print(in_.source[0]);
    } else {
      Text("off");
    }
    Print(in_.source[2]);
    Print(in_.source[3]);
    if (in_.index_enable) out_ << " idxen";
    if (in_.offset_enable) out_ << " offen";
    if (in_.offset != 0) Modifier("offset", in_.offset);
    Cache();
    if (in_.lds) out_ << " lds";
  }

  void Cache() {
    if (in_.isa == Isa::kGfx12) {
      CacheOfGfx12();
      return;
    }
    static constexpr const char* kNames[] = {"glc", "sc0", "slc", "nt", "dlc", "scc", "sc1"};
    for (int i = 0; i < 7; ++i) {
      if ((in_.cache >> i & 1) != 0) out_ << " " << kNames[i];
    }
  }

  void CacheOfGfx12() {
    static constexpr const char* kLoads[] = {"", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT", ""};
    static constexpr const char* kStores[] = {"", "NT", "HT", "WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB"};
    static constexpr const char* kScopes[] = {"", "SE", "DEV", "SYS"};
    const int temporal = in_.temporal_hint, scope = in_.scope;
    if (Contains(name_, "_atomic")) {
      if (temporal != 0) out_ << " th:TH_ATOMIC" << ((temporal & 2) != 0 ? "_NT" : "") << ((temporal & 1) != 0 ? "_RETURN" : "");
    } else if (temporal != 0) {
      const bool stores = Contains(name_, "_store");
      const bool bypasses = temporal == 3 && scope == 3;
      out_ << " th:TH_" << (stores ? "STORE_" : "LOAD_") << (bypasses ? "BYPASS" : (stores ? kStores : kLoads)[temporal]);
    }
    if (scope != 0) out_ << " scope:SCOPE_" << kScopes[scope];
  }

  // The two halves of a VOPD name no vcc.
  void Vopd() {
    DualHalf();
    if (in_.dual == nullptr) return;
    Printer second(*in_.dual);
    second.DualHalf();
    out_ << " :: " << second.out_.str();
  }

  void DualHalf() {
    out_ << "v_dual_" << name_.substr(2);
    Print(in_.destination);
    for (const Operand& source : in_.source) {
      if (source.kind != Operand::Kind::kSgpr || source.index != kVccLo || &source != &in_.source[2]) Print(source);
    }
  }

  // v_add_f32 exists in a short and a long encoding.
  const char* Suffix() const {
    const bool crosses = in_.crossing == Instruction::Crossing::kDpp || in_.crossing == Instruction::Crossing::kDpp8;
    if (in_.crossing == Instruction::Crossing::kSdwa) return "_sdwa";
    if (in_.format == Format::kVop3) return crosses ? "_e64_dpp" : in_.has_two_forms ? "_e64" : "";
    if (in_.format == Format::kVop3p) return "";
    if (crosses) return in_.format == Format::kVopc && !is_gfx9() ? "" : "_dpp";
    return in_.has_two_forms ? "_e32" : "";
  }

  void Vop() {
    const Semantics& semantics = *in_.semantics;
    const bool is_sdwa = in_.crossing == Instruction::Crossing::kSdwa;
    out_ << name_ << Suffix();
    Print(in_.destination, semantics.result);
    // On RDNA exec is where v_cmpx always writes.
    if (is_gfx9() || !Begins(name_, "v_cmpx")) Print(in_.scalar_destination);
    for (int i = 0; i < 3; ++i) {
      const bool extends_sign = is_sdwa && i < 2 && (in_.crossing_word >> (i == 0 ? 19 : 27) & 1) != 0;
      Operand source = in_.source[i];
      if (Begins(name_, "v_fma_mix")) {
        source.negate = (in_.neg_lo >> i & 1) != 0;
        source.absolute = (in_.neg_hi >> i & 1) != 0;
      }
      Print(source, semantics.sources[i], extends_sign);
    }
    if (Begins(name_, "v_bitop3")) {
      if (in_.offset != 0) out_ << " bitop3:" << (in_.offset < 10 ? std::to_string(in_.offset) : SignedHexadecimal(in_.offset));
    }
    if (in_.format == Format::kVop3p) {
      Vop3pModifiers();
    } else if (in_.op_sel != 0) {
      Halves();
    }
    if (in_.clamp) out_ << " clamp";
    if (in_.output_scale != 0) out_ << (in_.output_scale == 1 ? " mul:2" : in_.output_scale == 2 ? " mul:4" : " div:2");
    if (in_.crossing == Instruction::Crossing::kDpp) Dpp();
    if (in_.crossing == Instruction::Crossing::kDpp8) Dpp8();
    if (is_sdwa) Sdwa();
  }

  // op_sel of VOP3: a bit for each source, then one for the result.
  void Halves() {
    if (name_ == "v_cndmask_b16") return;  // its registers say all
    const int sources = in_.semantics->source_count - (in_.semantics->reads_result ? 1 : 0);
    const int of_sources = in_.op_sel & ((1 << sources) - 1), of_result = in_.op_sel >> 3;
    if (Begins(name_, "v_permlane")) {
      Bits("op_sel", of_sources, 2);
    } else if (!is_gfx9() && Begins(name_, "v_cmpx")) {
      Bits("op_sel", of_sources, sources);
    } else {
      Bits("op_sel", of_sources | of_result << sources, sources + 1);
    }
  }

  void Vop3pModifiers() {
    const int sources = in_.semantics->source_count, all = (1 << sources) - 1;
    if (Begins(name_, "v_mfma")) {
      const int cbsz = in_.cbsz, abid = in_.abid, blgp = in_.blgp;
      if (cbsz != 0) Modifier("cbsz", cbsz);
      if (abid != 0) Modifier("abid", abid);
      if (blgp != 0) Modifier("blgp", blgp);
      return;
    }
    if (Begins(name_, "v_accvgpr") || Begins(name_, "v_wmma")) {
      if (in_.neg_lo != 0) Bits("neg_lo", in_.neg_lo, sources);
      if (in_.neg_hi != 0) Bits("neg_hi", in_.neg_hi, sources);
      return;
    }
    const bool is_mixed = Begins(name_, "v_fma_mix");
    if ((in_.op_sel & all) != 0) Bits("op_sel", in_.op_sel, sources);
    if ((in_.op_sel_hi & all) != (is_mixed ? 0 : all)) Bits("op_sel_hi", in_.op_sel_hi, sources);
    if (is_mixed) return;
    if ((in_.neg_lo & all) != 0) Bits("neg_lo", in_.neg_lo, sources);
    if ((in_.neg_hi & all) != 0) Bits("neg_hi", in_.neg_hi, sources);
  }

  void Dpp() {
    const uint32_t word = in_.crossing_word, control = word >> 8 & 0x1ff, amount = control & 15;
    if (control < 0x100) {
      out_ << " quad_perm:[";
      for (int i = 0; i < 4; ++i) out_ << (i == 0 ? "" : ",") << (control >> (2 * i) & 3);
      out_ << "]";
    } else if (control == 0x140 || control == 0x141) {
      out_ << (control == 0x140 ? " row_mirror" : " row_half_mirror");
    } else if (control == 0x142 || control == 0x143) {
      Modifier("row_bcast", control == 0x142 ? 15 : 31);
    } else {
      const char* name = control < 0x110   ? "row_shl"
                         : control < 0x120 ? "row_shr"
                         : control < 0x130 ? "row_ror"
                         : control < 0x160 ? (is_gfx9() ? "row_newbcast" : "row_share")
                                           : "row_xmask";
      Modifier(name, amount);
    }
    out_ << " row_mask:0x" << std::hex << (word >> 28) << " bank_mask:0x" << (word >> 24 & 15) << std::dec;
    if ((word >> 19 & 1) != 0) out_ << " bound_ctrl:1";
    if (!is_gfx9() && (word >> 18 & 1) != 0) out_ << " fi:1";
  }

  void Dpp8() {
    out_ << " dpp8:[";
    for (int i = 0; i < 8; ++i) out_ << (i == 0 ? "" : ",") << (in_.crossing_word >> (8 + 3 * i) & 7);
    out_ << "]" << (in_.offset1 != 0 ? " fi:1" : "");
  }

  void Sdwa() {
    static constexpr const char* kParts[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD", "7"};
    static constexpr const char* kUnused[] = {"PAD", "SEXT", "PRESERVE", "3"};
    const uint32_t word = in_.crossing_word;
    if (in_.format != Format::kVopc) {
      out_ << " dst_sel:" << kParts[word >> 8 & 7] << " dst_unused:UNUSED_" << kUnused[word >> 11 & 3];
    }
    out_ << " src0_sel:" << kParts[word >> 16 & 7];
    if (in_.format != Format::kVop1) out_ << " src1_sel:" << kParts[word >> 24 & 7];
  }

  const Instruction& in_;
  const std::string& name_;
  std::ostringstream out_;
  const char* separator_ = " ";
};

}  // namespace

std::string Print(const Instruction& instruction) { return Printer(instruction).Run(); }

}  // namespace simulator
