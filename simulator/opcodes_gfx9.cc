// Opcode numbers of gfx9, of the instructions that have a meaning here: all that gfx90a has, then what gfx940 and gfx950
// add to it or change.
#include "simulator/opcodes.h"

namespace simulator {
namespace {

constexpr uint32_t kVop1InVop3 = 320;

OpcodeTable Gfx90a() {
  OpcodeTable table(kVop1InVop3);
  table.Add(Format::kSop1, {
      {0, "s_mov_b32"}, {1, "s_mov_b64"}, {4, "s_not_b32"}, {5, "s_not_b64"}, {12, "s_bcnt1_i32_b32"}, {13, "s_bcnt1_i32_b64"},
      {16, "s_ff1_i32_b32"}, {17, "s_ff1_i32_b64"}, {18, "s_flbit_i32_b32"}, {22, "s_sext_i32_i8"}, {23, "s_sext_i32_i16"},
      {24, "s_bitset0_b32"}, {26, "s_bitset1_b32"}, {28, "s_getpc_b64"}, {29, "s_setpc_b64"}, {30, "s_swappc_b64"},
      {32, "s_and_saveexec_b64"}, {33, "s_or_saveexec_b64"}, {34, "s_xor_saveexec_b64"}, {35, "s_andn2_saveexec_b64"},
      {36, "s_orn2_saveexec_b64"}, {48, "s_abs_i32"}, {51, "s_andn1_saveexec_b64"}
  });

  table.Add(Format::kSop2, {
      {0, "s_add_u32"}, {1, "s_sub_u32"}, {2, "s_add_i32"}, {3, "s_sub_i32"}, {4, "s_addc_u32"}, {5, "s_subb_u32"},
      {6, "s_min_i32"}, {7, "s_min_u32"}, {8, "s_max_i32"}, {9, "s_max_u32"}, {10, "s_cselect_b32"}, {11, "s_cselect_b64"},
      {12, "s_and_b32"}, {13, "s_and_b64"}, {14, "s_or_b32"}, {15, "s_or_b64"}, {16, "s_xor_b32"}, {17, "s_xor_b64"},
      {18, "s_andn2_b32"}, {19, "s_andn2_b64"}, {20, "s_orn2_b32"}, {21, "s_orn2_b64"}, {23, "s_nand_b64"}, {25, "s_nor_b64"},
      {26, "s_xnor_b32"}, {27, "s_xnor_b64"}, {28, "s_lshl_b32"}, {29, "s_lshl_b64"}, {30, "s_lshr_b32"}, {31, "s_lshr_b64"},
      {32, "s_ashr_i32"}, {33, "s_ashr_i64"}, {34, "s_bfm_b32"}, {36, "s_mul_i32"}, {37, "s_bfe_u32"}, {38, "s_bfe_i32"},
      {39, "s_bfe_u64"}, {40, "s_bfe_i64"}, {44, "s_mul_hi_u32"}, {45, "s_mul_hi_i32"}, {46, "s_lshl1_add_u32"},
      {47, "s_lshl2_add_u32"}, {48, "s_lshl3_add_u32"}, {49, "s_lshl4_add_u32"}, {50, "s_pack_ll_b32_b16"},
      {51, "s_pack_lh_b32_b16"}, {52, "s_pack_hh_b32_b16"}
  });

  table.Add(Format::kSopk, {
      {0, "s_movk_i32"}, {14, "s_addk_i32"}, {15, "s_mulk_i32"}
  });

  table.Add(Format::kSopc, {
      {0, "s_cmp_eq_i32"}, {1, "s_cmp_lg_i32"}, {2, "s_cmp_gt_i32"}, {3, "s_cmp_ge_i32"}, {4, "s_cmp_lt_i32"},
      {5, "s_cmp_le_i32"}, {6, "s_cmp_eq_u32"}, {7, "s_cmp_lg_u32"}, {8, "s_cmp_gt_u32"}, {9, "s_cmp_ge_u32"},
      {10, "s_cmp_lt_u32"}, {11, "s_cmp_le_u32"}, {12, "s_bitcmp0_b32"}, {13, "s_bitcmp1_b32"}, {18, "s_cmp_eq_u64"},
      {19, "s_cmp_lg_u64"}
  });

  table.Add(Format::kSopp, {
      {0, "s_nop"}, {1, "s_endpgm"}, {2, "s_branch"}, {4, "s_cbranch_scc0"}, {5, "s_cbranch_scc1"}, {6, "s_cbranch_vccz"},
      {7, "s_cbranch_vccnz"}, {8, "s_cbranch_execz"}, {9, "s_cbranch_execnz"}, {10, "s_barrier"}, {12, "s_waitcnt"},
      {14, "s_sleep"}, {15, "s_setprio"}, {19, "s_icache_inv"}
  });

  table.Add(Format::kSmem, {
      {0, "s_load_dword"}, {1, "s_load_dwordx2"}, {2, "s_load_dwordx4"}, {3, "s_load_dwordx8"}, {4, "s_load_dwordx16"}
  });

  table.Add(Format::kVop1, {
      {1, "v_mov_b32"}, {2, "v_readfirstlane_b32"}, {5, "v_cvt_f32_i32"}, {6, "v_cvt_f32_u32"}, {7, "v_cvt_u32_f32"},
      {8, "v_cvt_i32_f32"}, {10, "v_cvt_f16_f32"}, {11, "v_cvt_f32_f16"}, {17, "v_cvt_f32_ubyte0"}, {27, "v_fract_f32"},
      {28, "v_trunc_f32"}, {29, "v_ceil_f32"}, {30, "v_rndne_f32"}, {31, "v_floor_f32"}, {32, "v_exp_f32"}, {33, "v_log_f32"},
      {34, "v_rcp_f32"}, {35, "v_rcp_iflag_f32"}, {36, "v_rsq_f32"}, {39, "v_sqrt_f32"}, {43, "v_not_b32"}, {44, "v_bfrev_b32"},
      {45, "v_ffbh_u32"}, {46, "v_ffbl_b32"}, {81, "v_swap_b32"}, {82, "v_accvgpr_mov_b32"}
  });

  table.Add(Format::kVop2, {
      {0, "v_cndmask_b32"}, {1, "v_add_f32"}, {2, "v_sub_f32"}, {3, "v_subrev_f32"}, {5, "v_mul_f32"}, {6, "v_mul_i32_i24"},
      {8, "v_mul_u32_u24"}, {10, "v_min_f32"}, {11, "v_max_f32"}, {12, "v_min_i32"}, {13, "v_max_i32"}, {14, "v_min_u32"},
      {15, "v_max_u32"}, {16, "v_lshrrev_b32"}, {17, "v_ashrrev_i32"}, {18, "v_lshlrev_b32"}, {19, "v_and_b32"},
      {20, "v_or_b32"}, {21, "v_xor_b32"}, {25, "v_add_co_u32"}, {26, "v_sub_co_u32"}, {27, "v_subrev_co_u32"},
      {28, "v_addc_co_u32"}, {29, "v_subb_co_u32"}, {30, "v_subbrev_co_u32"}, {31, "v_add_f16"}, {32, "v_sub_f16"},
      {34, "v_mul_f16"}, {38, "v_add_u16"}, {39, "v_sub_u16"}, {41, "v_mul_lo_u16"}, {42, "v_lshlrev_b16"},
      {43, "v_lshrrev_b16"}, {44, "v_ashrrev_i16"}, {45, "v_max_f16"}, {46, "v_min_f16"}, {52, "v_add_u32"}, {53, "v_sub_u32"},
      {54, "v_subrev_u32"}, {59, "v_fmac_f32"}, {61, "v_xnor_b32"}
  });

  constexpr uint32_t kToExec = 16;  // from v_cmp to its v_cmpx
  table.Add(Format::kVopc, {{16, "v_cmp_class_f32"}, {17, "v_cmpx_class_f32"}});
  table.AddFloatRelations(64, kToExec, "f32");
  table.AddIntegerRelations(160, kToExec, "i16");
  table.AddIntegerRelations(168, kToExec, "u16");
  table.AddIntegerRelations(192, kToExec, "i32");
  table.AddIntegerRelations(200, kToExec, "u32");
  table.AddIntegerRelations(224, kToExec, "i64");
  table.AddIntegerRelations(232, kToExec, "u64");

  table.Add(Format::kVop3, {
      {450, "v_mad_i32_i24"}, {451, "v_mad_u32_u24"}, {456, "v_bfe_u32"}, {457, "v_bfe_i32"}, {458, "v_bfi_b32"},
      {459, "v_fma_f32"}, {462, "v_alignbit_b32"}, {463, "v_alignbyte_b32"}, {464, "v_min3_f32"}, {465, "v_min3_i32"},
      {466, "v_min3_u32"}, {467, "v_max3_f32"}, {468, "v_max3_i32"}, {469, "v_max3_u32"}, {470, "v_med3_f32"},
      {478, "v_div_fixup_f32"}, {480, "v_div_scale_f32"}, {482, "v_div_fmas_f32"}, {488, "v_mad_u64_u32"},
      {489, "v_mad_i64_i32"}, {493, "v_perm_b32"}, {499, "v_xad_u32"}, {509, "v_lshl_add_u32"}, {510, "v_add_lshl_u32"},
      {511, "v_add3_u32"}, {512, "v_lshl_or_b32"}, {513, "v_and_or_b32"}, {514, "v_or3_b32"}, {645, "v_mul_lo_u32"},
      {646, "v_mul_hi_u32"}, {647, "v_mul_hi_i32"}, {648, "v_ldexp_f32"}, {649, "v_readlane_b32"}, {650, "v_writelane_b32"},
      {651, "v_bcnt_u32_b32"}, {652, "v_mbcnt_lo_u32_b32"}, {653, "v_mbcnt_hi_u32_b32"}, {655, "v_lshlrev_b64"},
      {656, "v_lshrrev_b64"}, {657, "v_ashrrev_i64"}, {662, "v_cvt_pkrtz_f16_f32"}, {668, "v_add_i32"}, {669, "v_sub_i32"},
      {672, "v_pack_b32_f16"}, {673, "v_mul_legacy_f32"}
  });

  table.Add(Format::kVop3p, {
      {1, "v_pk_mul_lo_u16"}, {2, "v_pk_add_i16"}, {3, "v_pk_sub_i16"}, {4, "v_pk_lshlrev_b16"}, {5, "v_pk_lshrrev_b16"},
      {10, "v_pk_add_u16"}, {11, "v_pk_sub_u16"}, {14, "v_pk_fma_f16"}, {15, "v_pk_add_f16"}, {16, "v_pk_mul_f16"},
      {17, "v_pk_min_f16"}, {18, "v_pk_max_f16"}, {32, "v_fma_mix_f32"}, {33, "v_fma_mixlo_f16"}, {34, "v_fma_mixhi_f16"},
      {35, "v_dot2_f32_f16"}, {48, "v_pk_fma_f32"}, {49, "v_pk_mul_f32"}, {50, "v_pk_add_f32"}, {51, "v_pk_mov_b32"},
      {68, "v_mfma_f32_32x32x2f32"}, {69, "v_mfma_f32_16x16x4f32"}, {76, "v_mfma_f32_32x32x8f16"},
      {77, "v_mfma_f32_16x16x16f16"}, {88, "v_accvgpr_read_b32"}, {89, "v_accvgpr_write_b32"},
      {102, "v_mfma_f32_32x32x8bf16_1k"}, {103, "v_mfma_f32_16x16x16bf16_1k"}
  });

  table.Add(Format::kDs, {
      {13, "ds_write_b32"}, {14, "ds_write2_b32"}, {15, "ds_write2st64_b32"}, {30, "ds_write_b8"}, {31, "ds_write_b16"},
      {54, "ds_read_b32"}, {55, "ds_read2_b32"}, {56, "ds_read2st64_b32"}, {57, "ds_read_i8"}, {58, "ds_read_u8"},
      {59, "ds_read_i16"}, {60, "ds_read_u16"}, {61, "ds_swizzle_b32"}, {62, "ds_permute_b32"}, {63, "ds_bpermute_b32"},
      {77, "ds_write_b64"}, {78, "ds_write2_b64"}, {79, "ds_write2st64_b64"}, {84, "ds_write_b8_d16_hi"},
      {85, "ds_write_b16_d16_hi"}, {90, "ds_read_u16_d16"}, {91, "ds_read_u16_d16_hi"}, {118, "ds_read_b64"},
      {119, "ds_read2_b64"}, {120, "ds_read2st64_b64"}, {222, "ds_write_b96"}, {223, "ds_write_b128"}, {254, "ds_read_b96"},
      {255, "ds_read_b128"}
  });

  table.AddMemory({
      {16, "load_ubyte"}, {17, "load_sbyte"}, {18, "load_ushort"}, {19, "load_sshort"}, {20, "load_dword"}, {21, "load_dwordx2"},
      {22, "load_dwordx3"}, {23, "load_dwordx4"}, {24, "store_byte"}, {25, "store_byte_d16_hi"}, {26, "store_short"},
      {27, "store_short_d16_hi"}, {28, "store_dword"}, {29, "store_dwordx2"}, {30, "store_dwordx3"}, {31, "store_dwordx4"},
      {36, "load_short_d16"}, {37, "load_short_d16_hi"}
  });

  table.AddAtomics({
      {64, "atomic_swap"}, {65, "atomic_cmpswap"}, {66, "atomic_add"}, {69, "atomic_umin"}, {71, "atomic_umax"},
      {72, "atomic_and"}, {73, "atomic_or"}, {77, "atomic_add_f32"}
  });

  table.Add(Format::kBuffer, {{40, "buffer_wbl2"}, {63, "buffer_wbinvl1_vol"}});
  return table;
}

OpcodeTable Gfx940() {
  OpcodeTable table = Gfx90a();
  table.Add(Format::kVop1, {{56, "v_mov_b64"}});
  table.Add(Format::kVop2, {{23, "v_fmamk_f32"}, {24, "v_fmaak_f32"}});
  table.Add(Format::kVop3, {{520, "v_lshl_add_u64"}});
  table.Remove(Format::kVop3p, {102, 103});
  table.Add(Format::kVop3p, {
      {68, "v_mfma_f32_32x32x2_f32"}, {69, "v_mfma_f32_16x16x4_f32"}, {76, "v_mfma_f32_32x32x8_f16"},
      {77, "v_mfma_f32_16x16x16_f16"}, {96, "v_mfma_f32_32x32x8_bf16"}, {97, "v_mfma_f32_16x16x16_bf16"}
  });
  table.Remove(Format::kBuffer, {63});
  table.Add(Format::kBuffer, {{41, "buffer_inv"}});
  return table;
}

OpcodeTable Gfx950() {
  OpcodeTable table = Gfx940();
  table.Add(Format::kVop1, {{89, "v_permlane16_swap_b32"}, {90, "v_permlane32_swap_b32"}});
  table.Add(Format::kVop3, {
      {563, "v_bitop3_b16"}, {564, "v_bitop3_b32"}, {615, "v_cvt_pk_f16_f32"}, {616, "v_cvt_pk_bf16_f32"},
      {680, "v_minimum3_f32"}, {681, "v_maximum3_f32"}
  });
  table.Add(Format::kVop3p, {
      {53, "v_mfma_f32_16x16x32_bf16"}, {55, "v_mfma_f32_32x32x16_bf16"}, {84, "v_mfma_f32_16x16x32_f16"},
      {85, "v_mfma_f32_32x32x16_f16"}
  });
  table.Add(Format::kDs, {{227, "ds_read_b64_tr_b16"}});
  return table;
}

}  // namespace

const OpcodeTable& OpcodesGfx90a() {
  static const auto* const table = new OpcodeTable(Gfx90a());
  return *table;
}

const OpcodeTable& OpcodesGfx940() {
  static const auto* const table = new OpcodeTable(Gfx940());
  return *table;
}

const OpcodeTable& OpcodesGfx950() {
  static const auto* const table = new OpcodeTable(Gfx950());
  return *table;
}

}  // namespace simulator
