#include "dispatcher/arguments.h"

#include <limits>

namespace aotriton::dispatcher {
namespace {

// Kernels hold logsumexp in base 2. In natural logarithms it is ln(2) times that.
constexpr float kNaturalLogarithm = 0.6931471805599453f;

constexpr int32_t kUnbounded = std::numeric_limits<int32_t>::max();

constexpr uint8_t kBoth = kForward | kBackward;
constexpr uint8_t kScores = kDebug | kRng;
constexpr uint8_t kDroppers = kForward | kBackward | kDebug;

constexpr KnownArgument Pointer(const char* name, uint8_t ops) { return {name, Kind::kPointer, ops}; }
constexpr KnownArgument Integer(const char* name, uint8_t ops) { return {name, Kind::kInteger, ops}; }
constexpr KnownArgument Map(const char* name) { return {name, Kind::kTensorMap, kForward}; }
constexpr KnownArgument Real(const char* name, uint8_t ops) { return {name, Kind::kReal, ops}; }

}  // namespace

const KnownArgument kKnownArguments[kValueCount] = {
    Pointer("Q", kBoth), Pointer("K", kBoth), Pointer("V", kBoth), Pointer("B", kBoth), Pointer("Out", kBoth),
    Pointer("L", kBoth),
    Pointer("DO", kBackward), Pointer("DQ", kBackward), Pointer("DK", kBackward), Pointer("DV", kBackward),
    Pointer("DB", kBackward), Pointer("Delta", kBackward),
    Pointer("R", kScores),
    Real("sm_scale", kBoth),
    Integer("stride_qz", kBoth), Integer("stride_qh", kBoth), Integer("stride_qm", kBoth),
    Integer("stride_kz", kBoth), Integer("stride_kh", kBoth), Integer("stride_kn", kBoth),
    Integer("stride_vz", kBoth), Integer("stride_vh", kBoth), Integer("stride_vn", kBoth),
    Integer("stride_oz", kBoth), Integer("stride_oh", kBoth), Integer("stride_om", kBoth),
    Integer("stride_bz", kBoth), Integer("stride_bh", kBoth), Integer("stride_bm", kBoth), Integer("stride_bn", kBoth),
    Integer("stride_doz", kBackward), Integer("stride_doh", kBackward), Integer("stride_dom", kBackward),
    Integer("stride_dqz", kBackward), Integer("stride_dqh", kBackward), Integer("stride_dqm", kBackward),
    Integer("stride_dkz", kBackward), Integer("stride_dkh", kBackward), Integer("stride_dkn", kBackward),
    Integer("stride_dvz", kBackward), Integer("stride_dvh", kBackward), Integer("stride_dvn", kBackward),
    Integer("stride_dbz", kBackward), Integer("stride_dbh", kBackward), Integer("stride_dbm", kBackward),
    Integer("stride_dbn", kBackward),
    Integer("stride_rz", kScores), Integer("stride_rh", kScores), Integer("stride_rm", kScores), Integer("stride_rn", kScores),
    Integer("stride_lz", kBoth), Integer("stride_lh", kBoth),
    Integer("num_head_q", kAll), Integer("max_seqlen_q", kAll), Integer("max_seqlen_k", kAll),
    Integer("num_head_k", kBoth),
    Pointer("cu_seqlens_q", kBoth), Pointer("cu_seqlens_k", kBoth), Pointer("seq_starts_q", kBoth),
    Pointer("seq_starts_k", kBoth),
    Integer("varlen_type", kBoth), Integer("head_dim_qk", kBoth), Integer("head_dim_vo", kBoth),
    Integer("window_left", kBoth), Integer("window_right", kBoth), Integer("has_bias", kBoth), Integer("has_dropout", kBoth),
    Integer("has_db", kBackward),
    Real("dropout_p", kDroppers),
    Pointer("philox_seed", kDroppers), Pointer("philox_offset1", kDroppers),
    Integer("philox_offset2", kDroppers),
    Pointer("philox_seed_output", kForward), Pointer("philox_offset_output", kForward),
    Integer("philox_seed", kRng), Integer("philox_offset", kRng),
    Real("lse_scale", kBoth),
    Integer("lse_compact", kBoth),
    Integer("store_lse", kForward),
    Integer("num_sequences", kForward),
    Integer("num_programs", kForward),
    Pointer("persistent_counter", kForward),
    Pointer("tile_counter", kForward),
    Map("map_Q"), Map("map_K"), Map("map_V"), Map("map_Out"),
    Integer("unread", kForward),
    Pointer("global_scratch", kAll), Pointer("profile_scratch", kAll),
};

void Values::SetStrides(const Tensor& t, Value first, int count) {
  if (t.data == nullptr) return;
  for (int i = 0; i < count; ++i) values_[first + i].integer = Stride(t, i);
}

void Values::Set(const Dropout& dropout) {
  if (dropout.p == 0) return;  // the pointers may be anything; kernels are given null
  values_[kDropoutP].real = dropout.p;
  values_[kPhiloxSeed].pointer = dropout.seed.data;
  values_[kPhiloxOffset1].pointer = dropout.offset1.data;
  values_[kPhiloxOffset2].integer = static_cast<int64_t>(dropout.offset2);
  values_[kPhiloxSeedOutput].pointer = dropout.seed_output.data;
  values_[kPhiloxOffsetOutput].pointer = dropout.offset_output.data;
}

void Values::Set(const Attention& op) {
  values_[kQ].pointer = op.q.data;
  values_[kK].pointer = op.k.data;
  values_[kV].pointer = op.v.data;
  values_[kB].pointer = op.bias.data;
  values_[kOut].pointer = op.out.data;
  values_[kL].pointer = op.logsumexp.data;
  values_[kSmScale].real = op.sm_scale;
  SetStrides(op.q, kStrideQz, 3);
  SetStrides(op.k, kStrideKz, 3);
  SetStrides(op.v, kStrideVz, 3);
  SetStrides(op.out, kStrideOz, 3);
  SetStrides(op.bias, kStrideBz, 4);
  RowLayout rows;
  if (op.logsumexp.data != nullptr) (void)CheckRowNumbers({"logsumexp", op.logsumexp}, op, &rows);
  values_[kStrideLz].integer = rows.stride_z;
  values_[kStrideLh].integer = rows.stride_h;
  values_[kLseCompact].integer = rows.is_compact;
  values_[kLseScale].real = op.lse_base == LseBase::kTwo ? 1.0f : kNaturalLogarithm;
  const Extents extents = ExtentsOf(op);
  values_[kNumHeadQ].integer = extents.num_head_q;
  values_[kNumHeadK].integer = extents.num_head_k;
  values_[kMaxSeqlenQ].integer = extents.max_seqlen_q;
  values_[kMaxSeqlenK].integer = extents.max_seqlen_k;
  values_[kVarlenType].integer = op.varlen.type;
  values_[kCuSeqlensQ].pointer = op.varlen.cu_seqlens_q.data;
  values_[kCuSeqlensK].pointer = op.varlen.cu_seqlens_k.data;
  values_[kSeqStartsQ].pointer = op.varlen.seq_starts_q.data;
  values_[kSeqStartsK].pointer = op.varlen.seq_starts_k.data;
  values_[kHeadDimQk].integer = op.q.sizes[3];
  values_[kHeadDimVo].integer = op.v.sizes[3];
  // A kernel of layout "any" always has a window.
  values_[kWindowLeft].integer = op.is_windowed ? op.window_left : kUnbounded;
  values_[kWindowRight].integer = op.is_windowed ? op.window_right : kUnbounded;
  values_[kHasBias].integer = op.bias.data != nullptr;
  values_[kHasDropout].integer = op.dropout.p > 0;
  Set(op.dropout);
}

Values::Values(const AttnFwd& op) {
  Set(op);
  values_[kStoreLse].integer = op.logsumexp.data != nullptr;
  values_[kNumSequences].integer = ExtentsOf(op).sequences;
  values_[kPersistentCounter].pointer = op.persistent_counter.data;
  const Tensor* const mapped[] = {&op.q, &op.k, &op.v, &op.out};
  for (int i = 0; i < 4; ++i) values_[kMapQ + i].integer = reinterpret_cast<intptr_t>(mapped[i]);
}

Values::Values(const AttnBwd& op) {
  Set(op);
  values_[kDO].pointer = op.dout.data;
  values_[kDQ].pointer = op.dq.data;
  values_[kDK].pointer = op.dk.data;
  values_[kDV].pointer = op.dv.data;
  values_[kDB].pointer = op.dbias.data;
  values_[kDelta].pointer = op.delta.data;
  SetStrides(op.dout, kStrideDoz, 3);
  SetStrides(op.dq, kStrideDqz, 3);
  SetStrides(op.dk, kStrideDkz, 3);
  SetStrides(op.dv, kStrideDvz, 3);
  SetStrides(op.dbias, kStrideDbz, 4);
  values_[kHasDb].integer = op.dbias.data != nullptr;
}

void Values::SetScores(const Tensor& t) {
  values_[kR].pointer = t.data;
  SetStrides(t, kStrideRz, 4);
  values_[kNumHeadQ].integer = t.sizes[1];
  values_[kMaxSeqlenQ].integer = t.sizes[2];
  values_[kMaxSeqlenK].integer = t.sizes[3];
}

Values::Values(const EncodedSoftmax& op) {
  SetScores(op.tensor);
  Set(op.dropout);
}

Values::Values(const DropoutRng& op) {
  SetScores(op.tensor);
  values_[kSeedNumber].integer = static_cast<int64_t>(op.seed);
  values_[kOffsetNumber].integer = static_cast<int64_t>(op.offset);
}

}  // namespace aotriton::dispatcher
