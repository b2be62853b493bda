// Opcode numbers of RDNA, of the instructions that have a meaning here: all that gfx11 has, then what gfx1150 and gfx12
// add to it or change.
#include "simulator/opcodes.h"

namespace simulator {
namespace {

constexpr uint32_t kVop1InVop3 = 384;

OpcodeTable Gfx11() {
  OpcodeTable table(kVop1InVop3);
  table.Add(Format::kSop1, {
      {0, "s_mov_b32"}, {1, "s_mov_b64"}, {8, "s_ctz_i32_b32"}, {9, "s_ctz_i32_b64"}, {10, "s_clz_i32_u32"},
      {14, "s_sext_i32_i8"}, {15, "s_sext_i32_i16"}, {16, "s_bitset0_b32"}, {18, "s_bitset1_b32"}, {21, "s_abs_i32"},
      {24, "s_bcnt1_i32_b32"}, {25, "s_bcnt1_i32_b64"}, {30, "s_not_b32"}, {31, "s_not_b64"}, {32, "s_and_saveexec_b32"},
      {33, "s_and_saveexec_b64"}, {34, "s_or_saveexec_b32"}, {35, "s_or_saveexec_b64"}, {36, "s_xor_saveexec_b32"},
      {37, "s_xor_saveexec_b64"}, {44, "s_and_not0_saveexec_b32"}, {45, "s_and_not0_saveexec_b64"},
      {48, "s_and_not1_saveexec_b32"}, {49, "s_and_not1_saveexec_b64"}, {50, "s_or_not1_saveexec_b32"},
      {51, "s_or_not1_saveexec_b64"}, {71, "s_getpc_b64"}, {72, "s_setpc_b64"}, {73, "s_swappc_b64"}
  });

  table.Add(Format::kSop2, {
      {0, "s_add_u32"}, {1, "s_sub_u32"}, {2, "s_add_i32"}, {3, "s_sub_i32"}, {4, "s_addc_u32"}, {5, "s_subb_u32"},
      {8, "s_lshl_b32"}, {9, "s_lshl_b64"}, {10, "s_lshr_b32"}, {11, "s_lshr_b64"}, {12, "s_ashr_i32"}, {13, "s_ashr_i64"},
      {14, "s_lshl1_add_u32"}, {15, "s_lshl2_add_u32"}, {16, "s_lshl3_add_u32"}, {17, "s_lshl4_add_u32"}, {18, "s_min_i32"},
      {19, "s_min_u32"}, {20, "s_max_i32"}, {21, "s_max_u32"}, {22, "s_and_b32"}, {23, "s_and_b64"}, {24, "s_or_b32"},
      {25, "s_or_b64"}, {26, "s_xor_b32"}, {27, "s_xor_b64"}, {29, "s_nand_b64"}, {31, "s_nor_b64"}, {32, "s_xnor_b32"},
      {33, "s_xnor_b64"}, {34, "s_and_not1_b32"}, {35, "s_and_not1_b64"}, {36, "s_or_not1_b32"}, {37, "s_or_not1_b64"},
      {38, "s_bfe_u32"}, {39, "s_bfe_i32"}, {40, "s_bfe_u64"}, {41, "s_bfe_i64"}, {42, "s_bfm_b32"}, {44, "s_mul_i32"},
      {45, "s_mul_hi_u32"}, {46, "s_mul_hi_i32"}, {48, "s_cselect_b32"}, {49, "s_cselect_b64"}, {50, "s_pack_ll_b32_b16"},
      {51, "s_pack_lh_b32_b16"}, {52, "s_pack_hh_b32_b16"}
  });

  table.Add(Format::kSopk, {
      {0, "s_movk_i32"}, {15, "s_addk_i32"}, {16, "s_mulk_i32"}, {24, "s_waitcnt_vscnt"}
  });

  table.Add(Format::kSopc, {
      {0, "s_cmp_eq_i32"}, {1, "s_cmp_lg_i32"}, {2, "s_cmp_gt_i32"}, {3, "s_cmp_ge_i32"}, {4, "s_cmp_lt_i32"},
      {5, "s_cmp_le_i32"}, {6, "s_cmp_eq_u32"}, {7, "s_cmp_lg_u32"}, {8, "s_cmp_gt_u32"}, {9, "s_cmp_ge_u32"},
      {10, "s_cmp_lt_u32"}, {11, "s_cmp_le_u32"}, {12, "s_bitcmp0_b32"}, {13, "s_bitcmp1_b32"}, {16, "s_cmp_eq_u64"},
      {17, "s_cmp_lg_u64"}
  });

  table.Add(Format::kSopp, {
      {0, "s_nop"}, {3, "s_sleep"}, {4, "s_set_inst_prefetch_distance"}, {5, "s_clause"}, {7, "s_delay_alu"},
      {8, "s_waitcnt_depctr"}, {9, "s_waitcnt"}, {10, "s_wait_idle"}, {31, "s_code_end"}, {32, "s_branch"},
      {33, "s_cbranch_scc0"}, {34, "s_cbranch_scc1"}, {35, "s_cbranch_vccz"}, {36, "s_cbranch_vccnz"}, {37, "s_cbranch_execz"},
      {38, "s_cbranch_execnz"}, {48, "s_endpgm"}, {53, "s_setprio"}, {54, "s_sendmsg"}, {60, "s_icache_inv"}, {61, "s_barrier"}
  });

  table.Add(Format::kSmem, {
      {0, "s_load_b32"}, {1, "s_load_b64"}, {2, "s_load_b128"}, {3, "s_load_b256"}, {4, "s_load_b512"}
  });

  table.Add(Format::kVop1, {
      {0, "v_nop"}, {1, "v_mov_b32"}, {2, "v_readfirstlane_b32"}, {5, "v_cvt_f32_i32"}, {6, "v_cvt_f32_u32"},
      {7, "v_cvt_u32_f32"}, {8, "v_cvt_i32_f32"}, {10, "v_cvt_f16_f32"}, {11, "v_cvt_f32_f16"}, {17, "v_cvt_f32_ubyte0"},
      {28, "v_mov_b16"},
      {32, "v_fract_f32"}, {33, "v_trunc_f32"}, {34, "v_ceil_f32"}, {35, "v_rndne_f32"}, {36, "v_floor_f32"}, {37, "v_exp_f32"},
      {39, "v_log_f32"}, {42, "v_rcp_f32"}, {43, "v_rcp_iflag_f32"}, {46, "v_rsq_f32"}, {51, "v_sqrt_f32"}, {55, "v_not_b32"},
      {56, "v_bfrev_b32"}, {57, "v_clz_i32_u32"}, {58, "v_ctz_i32_b32"}, {101, "v_swap_b32"}
  });

  table.Add(Format::kVop2, {
      {1, "v_cndmask_b32"}, {2, "v_dot2acc_f32_f16"}, {3, "v_add_f32"}, {4, "v_sub_f32"}, {5, "v_subrev_f32"},
      {7, "v_mul_dx9_zero_f32"}, {8, "v_mul_f32"}, {9, "v_mul_i32_i24"}, {11, "v_mul_u32_u24"}, {15, "v_min_f32"},
      {16, "v_max_f32"}, {17, "v_min_i32"}, {18, "v_max_i32"}, {19, "v_min_u32"}, {20, "v_max_u32"}, {24, "v_lshlrev_b32"},
      {25, "v_lshrrev_b32"}, {26, "v_ashrrev_i32"}, {27, "v_and_b32"}, {28, "v_or_b32"}, {29, "v_xor_b32"}, {30, "v_xnor_b32"},
      {32, "v_add_co_ci_u32"}, {33, "v_sub_co_ci_u32"}, {34, "v_subrev_co_ci_u32"}, {37, "v_add_nc_u32"}, {38, "v_sub_nc_u32"},
      {39, "v_subrev_nc_u32"}, {43, "v_fmac_f32"}, {44, "v_fmamk_f32"}, {45, "v_fmaak_f32"}, {47, "v_cvt_pk_rtz_f16_f32"},
      {50, "v_add_f16"}, {51, "v_sub_f16"}, {53, "v_mul_f16"}, {57, "v_max_f16"}, {58, "v_min_f16"}
  });

  constexpr uint32_t kToExec = 128;  // from v_cmp to its v_cmpx
  table.AddFloatRelations(16, kToExec, "f32");
  table.AddIntegerRelations(48, kToExec, "i16");
  table.AddIntegerRelations(56, kToExec, "u16");
  table.AddIntegerRelations(64, kToExec, "i32");
  table.AddIntegerRelations(72, kToExec, "u32");
  table.AddIntegerRelations(80, kToExec, "i64");
  table.AddIntegerRelations(88, kToExec, "u64");
  table.Add(Format::kVopc, {{126, "v_cmp_class_f32"}, {254, "v_cmpx_class_f32"}});

  table.Add(Format::kVop3, {
      {522, "v_mad_i32_i24"}, {523, "v_mad_u32_u24"}, {528, "v_bfe_u32"}, {529, "v_bfe_i32"}, {530, "v_bfi_b32"},
      {531, "v_fma_f32"}, {534, "v_alignbit_b32"}, {535, "v_alignbyte_b32"}, {537, "v_min3_f32"}, {538, "v_min3_i32"},
      {539, "v_min3_u32"}, {540, "v_max3_f32"}, {541, "v_max3_i32"}, {542, "v_max3_u32"}, {543, "v_med3_f32"},
      {551, "v_div_fixup_f32"}, {567, "v_div_fmas_f32"}, {576, "v_xor3_b32"}, {580, "v_perm_b32"}, {581, "v_xad_u32"},
      {582, "v_lshl_add_u32"}, {583, "v_add_lshl_u32"}, {597, "v_add3_u32"}, {598, "v_lshl_or_b32"}, {599, "v_and_or_b32"},
      {600, "v_or3_b32"}, {603, "v_permlane16_b32"}, {604, "v_permlanex16_b32"}, {605, "v_cndmask_b16"}, {606, "v_maxmin_f32"},
      {607, "v_minmax_f32"}, {764, "v_div_scale_f32"}, {766, "v_mad_u64_u32"}, {767, "v_mad_i64_i32"}, {768, "v_add_co_u32"},
      {769, "v_sub_co_u32"}, {770, "v_subrev_co_u32"}, {771, "v_add_nc_u16"}, {772, "v_sub_nc_u16"}, {773, "v_mul_lo_u16"},
      {785, "v_pack_b32_f16"}, {796, "v_ldexp_f32"}, {798, "v_bcnt_u32_b32"}, {799, "v_mbcnt_lo_u32_b32"},
      {800, "v_mbcnt_hi_u32_b32"}, {805, "v_sub_nc_i32"}, {806, "v_add_nc_i32"}, {812, "v_mul_lo_u32"}, {813, "v_mul_hi_u32"},
      {814, "v_mul_hi_i32"}, {824, "v_lshlrev_b16"}, {825, "v_lshrrev_b16"}, {826, "v_ashrrev_i16"}, {828, "v_lshlrev_b64"},
      {829, "v_lshrrev_b64"}, {830, "v_ashrrev_i64"}, {864, "v_readlane_b32"}, {865, "v_writelane_b32"}, {866, "v_and_b16"},
      {867, "v_or_b16"}, {868, "v_xor_b16"}
  });

  table.Add(Format::kVop3p, {
      {1, "v_pk_mul_lo_u16"}, {2, "v_pk_add_i16"}, {3, "v_pk_sub_i16"}, {4, "v_pk_lshlrev_b16"}, {5, "v_pk_lshrrev_b16"},
      {10, "v_pk_add_u16"}, {11, "v_pk_sub_u16"}, {14, "v_pk_fma_f16"}, {15, "v_pk_add_f16"}, {16, "v_pk_mul_f16"},
      {17, "v_pk_min_f16"}, {18, "v_pk_max_f16"}, {19, "v_dot2_f32_f16"}, {32, "v_fma_mix_f32"}, {33, "v_fma_mixlo_f16"},
      {34, "v_fma_mixhi_f16"}, {64, "v_wmma_f32_16x16x16_f16"}, {65, "v_wmma_f32_16x16x16_bf16"}
  });

  table.Add(Format::kVopd, {
      {0, "v_fmac_f32"}, {1, "v_fmaak_f32"}, {2, "v_fmamk_f32"}, {3, "v_mul_f32"}, {4, "v_add_f32"}, {5, "v_sub_f32"},
      {6, "v_subrev_f32"}, {7, "v_mul_dx9_zero_f32"}, {8, "v_mov_b32"}, {9, "v_cndmask_b32"}, {10, "v_max_f32"},
      {11, "v_min_f32"}, {12, "v_dot2acc_f32_f16"}, {16, "v_add_nc_u32"}, {17, "v_lshlrev_b32"}, {18, "v_and_b32"}
  });

  table.Add(Format::kDs, {
      {13, "ds_store_b32"}, {14, "ds_store_2addr_b32"}, {15, "ds_store_2addr_stride64_b32"}, {30, "ds_store_b8"},
      {31, "ds_store_b16"}, {53, "ds_swizzle_b32"}, {54, "ds_load_b32"}, {55, "ds_load_2addr_b32"},
      {56, "ds_load_2addr_stride64_b32"}, {57, "ds_load_i8"}, {58, "ds_load_u8"}, {59, "ds_load_i16"}, {60, "ds_load_u16"},
      {77, "ds_store_b64"}, {78, "ds_store_2addr_b64"}, {79, "ds_store_2addr_stride64_b64"}, {118, "ds_load_b64"},
      {119, "ds_load_2addr_b64"}, {120, "ds_load_2addr_stride64_b64"}, {160, "ds_store_b8_d16_hi"}, {161, "ds_store_b16_d16_hi"},
      {166, "ds_load_u16_d16"}, {167, "ds_load_u16_d16_hi"}, {178, "ds_permute_b32"}, {179, "ds_bpermute_b32"},
      {222, "ds_store_b96"}, {223, "ds_store_b128"}, {254, "ds_load_b96"}, {255, "ds_load_b128"}
  });

  table.AddMemory({
      {16, "load_u8"}, {17, "load_i8"}, {18, "load_u16"}, {19, "load_i16"}, {20, "load_b32"}, {21, "load_b64"}, {22, "load_b96"},
      {23, "load_b128"}, {24, "store_b8"}, {25, "store_b16"}, {26, "store_b32"}, {27, "store_b64"}, {28, "store_b96"},
      {29, "store_b128"}, {32, "load_d16_b16"}, {35, "load_d16_hi_b16"}, {36, "store_d16_hi_b8"}, {37, "store_d16_hi_b16"}
  });

  table.AddAtomics({
      {51, "atomic_swap_b32"}, {52, "atomic_cmpswap_b32"}, {53, "atomic_add_u32"}, {57, "atomic_min_u32"},
      {59, "atomic_max_u32"}, {60, "atomic_and_b32"}, {61, "atomic_or_b32"}, {86, "atomic_add_f32"}
  });

  table.Add(Format::kBuffer, {{43, "buffer_gl0_inv"}, {44, "buffer_gl1_inv"}});
  return table;
}

OpcodeTable Gfx1150() {
  OpcodeTable table = Gfx11();
  table.Add(Format::kSop1, {
      {97, "s_floor_f32"}, {98, "s_trunc_f32"}, {100, "s_cvt_f32_i32"}, {101, "s_cvt_f32_u32"}, {103, "s_cvt_u32_f32"}
  });
  table.Add(Format::kSop2, {
      {64, "s_add_f32"}, {65, "s_sub_f32"}, {66, "s_min_f32"}, {67, "s_max_f32"}, {68, "s_mul_f32"}, {71, "s_fmac_f32"}
  });
  table.Add(Format::kSopc, {
      {65, "s_cmp_lt_f32"}, {66, "s_cmp_eq_f32"}, {67, "s_cmp_le_f32"}, {68, "s_cmp_gt_f32"}, {70, "s_cmp_ge_f32"},
      {75, "s_cmp_ngt_f32"}
  });
  return table;
}

OpcodeTable Gfx12() {
  OpcodeTable table = Gfx1150();
  table.Add(Format::kSop1, {{78, "s_barrier_signal"}});
  table.Add(Format::kSop2, {
      {0, "s_add_co_u32"}, {1, "s_sub_co_u32"}, {2, "s_add_co_i32"}, {3, "s_sub_co_i32"}, {4, "s_add_co_ci_u32"},
      {5, "s_sub_co_ci_u32"}, {66, "s_min_num_f32"}, {67, "s_max_num_f32"}, {83, "s_add_nc_u64"}, {84, "s_sub_nc_u64"},
      {85, "s_mul_u64"}
  });
  table.Remove(Format::kSopk, {24});
  table.Add(Format::kSopk, {{15, "s_addk_co_i32"}});
  table.Remove(Format::kSopp, {4, 61});
  table.Add(Format::kSopp, {
      {8, "s_wait_alu"}, {20, "s_barrier_wait"}, {64, "s_wait_loadcnt"}, {65, "s_wait_storecnt"}, {66, "s_wait_samplecnt"},
      {67, "s_wait_bvhcnt"}, {68, "s_wait_expcnt"}, {70, "s_wait_dscnt"}, {71, "s_wait_kmcnt"}, {72, "s_wait_loadcnt_dscnt"},
      {73, "s_wait_storecnt_dscnt"}
  });
  table.Add(Format::kSmem, {{5, "s_load_b96"}});
  table.Remove(Format::kVop2, {2, 15, 16, 57, 58});
  table.Add(Format::kVop2, {
      {21, "v_min_num_f32"}, {22, "v_max_num_f32"}, {31, "v_lshlrev_b64"}, {48, "v_min_num_f16"}, {49, "v_max_num_f16"}
  });
  table.Remove(Format::kVop3, {537, 540, 543, 606, 607, 828});
  table.Add(Format::kVop3, {
      {553, "v_min3_num_f32"}, {554, "v_max3_num_f32"}, {557, "v_minimum3_f32"}, {558, "v_maximum3_f32"},
      {561, "v_med3_num_f32"}, {616, "v_minmax_num_f32"}, {617, "v_maxmin_num_f32"}, {766, "v_mad_co_u64_u32"},
      {767, "v_mad_co_i64_i32"}, {869, "v_minimum_f32"}, {870, "v_maximum_f32"}
  });
  table.Remove(Format::kVop3p, {17, 18});
  table.Add(Format::kVop3p, {{27, "v_pk_min_num_f16"}, {28, "v_pk_max_num_f16"}});
  table.Add(Format::kVopd, {{10, "v_max_num_f32"}, {11, "v_min_num_f32"}});
  table.Remove(Format::kBuffer, {43, 44});
  table.Add(Format::kGlobal, {{43, "global_inv"}, {44, "global_wb"}, {79, "global_wbinv"}});
  return table;
}

}  // namespace

const OpcodeTable& OpcodesGfx11() {
  static const auto* const table = new OpcodeTable(Gfx11());
  return *table;
}

const OpcodeTable& OpcodesGfx1150() {
  static const auto* const table = new OpcodeTable(Gfx1150());
  return *table;
}

const OpcodeTable& OpcodesGfx12() {
  static const auto* const table = new OpcodeTable(Gfx12());
  return *table;
}

}  // namespace simulator
