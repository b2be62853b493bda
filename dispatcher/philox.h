// The dropout mask of attn_fwd on the host, as the kernels make it on the GPU.
#ifndef AOTRITON_DISPATCHER_PHILOX_H_
#define AOTRITON_DISPATCHER_PHILOX_H_

#include <algorithm>
#include <array>
#include <cstdint>

namespace aotriton::dispatcher {

// Philox-4x32, 10 rounds: J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
inline std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 2> key, std::array<uint32_t, 4> counter) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

// Of row m of head h of sequence z, with row = (z * num_head_q + h) * max_seqlen_q + m, writes into
// keep[n] whether column n is kept. offset is *philox_offset1 + philox_offset2.
inline void KeepRow(uint64_t seed, uint64_t offset, float dropout_p, uint64_t row, int64_t max_seqlen_k, uint8_t* keep) {
  // In fp32, like the kernels; of p = 1 the threshold is the largest number, and nothing is kept.
  const auto threshold = std::min<int64_t>(static_cast<int64_t>((dropout_p - 0.5f) * 4294967296.0f), INT32_MAX);
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  uint64_t counter = offset + row * static_cast<uint64_t>((max_seqlen_k + 3) / 4);
  for (int64_t n = 0; n < max_seqlen_k; n += 4, ++counter) {
    const std::array<uint32_t, 4> words = Philox4x32(key, {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0});
    for (int64_t i = 0; i < 4 && n + i < max_seqlen_k; ++i) keep[n + i] = static_cast<int32_t>(words[i]) > threshold;
  }
}

}  // namespace aotriton::dispatcher

#endif  // AOTRITON_DISPATCHER_PHILOX_H_
