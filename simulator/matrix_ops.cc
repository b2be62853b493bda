// Matrix instructions: D = A B + C, whose elements lie across the lanes of a wave.
//
// A (rows x depth) and B (depth x columns) have a row or column in a lane; lanes that share one hold
// consecutive parts of the depth.
#include <cmath>
#include <cstring>
#include <string>

#include "simulator/wave.h"

namespace simulator {
namespace {

enum Element { kF16, kBf16, kF32 };
constexpr int kMaxSize = 32, kMaxDepth = 32;

// parameter: rows and columns, depth, Element.
struct Shape {
  int size, depth;
  Element element;
};

Shape ShapeOf(const Instruction& instruction) {
  const int* parameter = instruction.semantics->parameter;
  return {parameter[0], parameter[1], static_cast<Element>(parameter[2])};
}

// All lanes of a source must be there; a result of undefined numbers is undefined.
bool SourcesDefined(const Wave& wave, int first, int count) {
  uint64_t defined = kAllLanes;
  for (int i = first; i < first + count; ++i) {
    wave.Vgpr(i);
    defined &= wave.VgprDefined(i);
  }
  return (~defined & wave.all()) == 0;
}

struct Matrices {
  // a[k][row], b[k][column], sums[row][column].
  float a[kMaxDepth][kMaxSize], b[kMaxDepth][kMaxSize], sums[kMaxSize][kMaxSize];
};

// The numbers of A or B: `groups` of lanes, each with a part of the depth; each register has one or two of a lane.
void LoadMatrix(Wave& wave, const Shape& shape, int first, int groups, bool flush, float (*to)[kMaxSize]) {
  const int per_lane = shape.depth / groups;
  for (int i = 0; i < per_lane; ++i) {
    alignas(64) float row[kRow];
    if (shape.element == kF32) {
      memcpy(row, wave.VgprWords(first + i), sizeof(row));
    } else {
      const uint32_t* words = wave.VgprWords(first + i / 2);
      const int shift = i % 2 * 16;
      if (shape.element == kF16) {
        for (int lane = 0; lane < kRow; ++lane) row[lane] = HalfToFloat(words[lane] >> shift & 0xffff);
      } else {
        for (int lane = 0; lane < kRow; ++lane) row[lane] = BfloatToFloat(words[lane] >> shift & 0xffff);
      }
      const float smallest = shape.element == kF16 ? 0x1p-14f : 0x1p-126f;
      for (int lane = 0; flush && lane < kRow; ++lane) row[lane] = std::fabs(row[lane]) < smallest ? 0.0f : row[lane];
    }
    for (int group = 0; group < groups; ++group) {
      memcpy(to[group * per_lane + i], row + group * shape.size, sizeof(float) * static_cast<size_t>(shape.size));
    }
  }
}

// Products of 16-bit numbers are exact in 32.
template <int kSize>
void MultiplyHalves(int depth, Matrices* m) {
  for (int row = 0; row < kSize; ++row) {
    float sums[kSize];
    memcpy(sums, m->sums[row], sizeof(sums));
    for (int k = 0; k < depth; ++k) {
      const float a = m->a[k][row];
      for (int column = 0; column < kSize; ++column) sums[column] += a * m->b[k][column];
    }
    memcpy(m->sums[row], sums, sizeof(sums));
  }
}

void Multiply(const Shape& shape, Matrices* m) {
  if (shape.element != kF32) {
    (shape.size == 32 ? MultiplyHalves<32> : MultiplyHalves<16>)(shape.depth, m);
    return;
  }
  for (int row = 0; row < shape.size; ++row) {
    for (int k = 0; k < shape.depth; ++k) {
      for (int column = 0; column < shape.size; ++column) {
        m->sums[row][column] = Fma(m->a[k][row], m->b[k][column], m->sums[row][column]);
      }
    }
  }
}

void CheckModifiers(const Instruction& instruction) {
  const int modifiers = instruction.cbsz | instruction.abid | instruction.blgp | instruction.neg_lo | instruction.neg_hi;
  if (modifiers != 0) throw Fault("cbsz, abid, blgp or neg of a matrix instruction is not modelled");
}

// The row of C and D in register `i` of `lane`.
int MfmaRow(int size, int i, int lane) { return size == 32 ? i / 4 * 8 + lane / 32 * 4 + i % 4 : lane / 16 * 4 + i; }

template <typename RowOf>
void LoadSums(const Wave& wave, const Instruction& instruction, const Shape& shape, int registers, RowOf row_of, Matrices* m,
              uint64_t* defined) {
  const Operand& c = instruction.source[2];
  for (int i = 0; i < registers; ++i) {
    alignas(64) uint32_t room[2 * kRow];
    Operand part = c;
    if (c.is_vgpr()) part.index = static_cast<uint16_t>(c.index + i);
    defined[i] = kAllLanes;
    const uint32_t* words = wave.Rows(part, Type::kFloat, room, &defined[i]);
    for (int lane = 0; lane < wave.lanes; ++lane) m->sums[row_of(i, lane)][lane % shape.size] = Float(words[lane]);
  }
}

template <typename RowOf>
void StoreSums(Wave& wave, const Instruction& instruction, const Shape& shape, int registers, RowOf row_of, const Matrices& m,
               const uint64_t* defined, bool sources_defined) {
  for (int i = 0; i < registers; ++i) {
    alignas(64) uint32_t words[kRow];
    for (int lane = 0; lane < wave.lanes; ++lane) words[lane] = Bits(m.sums[row_of(i, lane)][lane % shape.size]);
    wave.WriteVgpr(instruction.destination.index + i, words, sources_defined ? defined[i] : 0, wave.all());
  }
}

void Mfma(Wave& wave, const Instruction& instruction) {
  CheckModifiers(instruction);
  const Shape shape = ShapeOf(instruction);
  const int groups = 64 / shape.size, per_lane = shape.depth / groups;
  const int registers = shape.element == kF32 ? per_lane : per_lane / 2;
  const int a = instruction.source[0].index, b = instruction.source[1].index;
  if (!instruction.source[0].is_vgpr() || !instruction.source[1].is_vgpr()) throw Fault("a matrix is a scalar");
  const bool flush = wave.flushes_matrix_subnormals && shape.element != kF32;
  const bool defined = SourcesDefined(wave, a, registers) & SourcesDefined(wave, b, registers);
  Matrices m;
  LoadMatrix(wave, shape, a, groups, flush, m.a);
  LoadMatrix(wave, shape, b, groups, flush, m.b);
  const int results = shape.size * shape.size / 64;
  const auto row_of = [&](int i, int lane) { return MfmaRow(shape.size, i, lane); };
  uint64_t sums_defined[16];
  LoadSums(wave, instruction, shape, results, row_of, &m, sums_defined);
  Multiply(shape, &m);
  if (flush) {
    for (auto& row : m.sums) {
      for (float& sum : row) sum = IsSubnormal(sum) ? 0.0f : sum;
    }
  }
  StoreSums(wave, instruction, shape, results, row_of, m, sums_defined, defined);
}

// v_wmma_f32_16x16x16 of wave32. On gfx11 a lane has all of the depth and lanes 16 to 31 repeat the
// lower ones; on gfx12 they hold its other half.
void Wmma(Wave& wave, const Instruction& instruction) {
  CheckModifiers(instruction);
  const Shape shape = ShapeOf(instruction);
  const bool repeats = wave.isa == Isa::kGfx11;
  const int per_lane = repeats ? 16 : 8;
  const int first[2] = {instruction.source[0].index, instruction.source[1].index};
  if (wave.lanes != 32) throw Fault("WMMA of wave64 is not modelled");
  bool defined = true;
  Matrices m;
  for (int matrix = 0; matrix < 2; ++matrix) {
    defined &= SourcesDefined(wave, first[matrix], per_lane / 2);
    LoadMatrix(wave, shape, first[matrix], repeats ? 1 : 2, false, matrix == 0 ? m.a : m.b);
    for (int i = first[matrix]; repeats && i < first[matrix] + 8; ++i) {
      const uint32_t* words = wave.Vgpr(i);
      if (memcmp(words, words + 16, 16 * sizeof(uint32_t)) != 0) {
        throw Fault("WMMA: lanes 16 to 31 of v", i, " do not repeat lanes 0 to 15");
      }
    }
  }
  const auto row_of = [&](int i, int lane) { return repeats ? 2 * i + lane / 16 : lane / 16 * 8 + i; };
  uint64_t sums_defined[8];
  LoadSums(wave, instruction, shape, 8, row_of, &m, sums_defined);
  Multiply(shape, &m);
  StoreSums(wave, instruction, shape, 8, row_of, m, sums_defined, defined);
}

void DefineMatrix(const std::vector<const char*>& names, Execute execute, int size, int depth, Element element) {
  Semantics semantics;
  semantics.execute = execute;
  semantics.source_count = 3;
  semantics.parameter[0] = size;
  semantics.parameter[1] = depth;
  semantics.parameter[2] = element;
  Define(names, semantics);
}

}  // namespace

void DefineMatrixInstructions() {
  // gfx90a spells some names otherwise than gfx942 and later.
  DefineMatrix({"v_mfma_f32_32x32x2_f32", "v_mfma_f32_32x32x2f32"}, Mfma, 32, 2, kF32);
  DefineMatrix({"v_mfma_f32_16x16x4_f32", "v_mfma_f32_16x16x4f32"}, Mfma, 16, 4, kF32);
  DefineMatrix({"v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x8f16"}, Mfma, 32, 8, kF16);
  DefineMatrix({"v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x16f16"}, Mfma, 16, 16, kF16);
  DefineMatrix({"v_mfma_f32_32x32x8_bf16", "v_mfma_f32_32x32x8bf16_1k"}, Mfma, 32, 8, kBf16);
  DefineMatrix({"v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x16bf16_1k"}, Mfma, 16, 16, kBf16);
  DefineMatrix({"v_mfma_f32_32x32x16_f16"}, Mfma, 32, 16, kF16);
  DefineMatrix({"v_mfma_f32_16x16x32_f16"}, Mfma, 16, 32, kF16);
  DefineMatrix({"v_mfma_f32_32x32x16_bf16"}, Mfma, 32, 16, kBf16);
  DefineMatrix({"v_mfma_f32_16x16x32_bf16"}, Mfma, 16, 32, kBf16);
  DefineMatrix({"v_wmma_f32_16x16x16_f16"}, Wmma, 16, 16, kF16);
  DefineMatrix({"v_wmma_f32_16x16x16_bf16"}, Wmma, 16, 16, kBf16);
}

}  // namespace simulator
