"""The dropout mask on the host: Philox-4x32-10 in numpy.

Element (m, n) of q head h of sequence i (of a batch, or of cu_seqlens) takes word n % 4 of

    philox(key = seed, counter = offset + ((i * num_head_q + h) * max_seqlen_q + m) * ceil(max_seqlen_k / 4) + n // 4)

with key words (low, high) and counter words (low, high, 0, 0), all sums modulo 2^64. offset is
philox_offset1 + philox_offset2; max_seqlen_* are the numbers given to the call (without cu_seqlens
the seqlens). The element is kept iff int32(word) > int32((p - 0.5) * 2^32), in fp32; what is kept
of the normalised P is multiplied by 1 / (1 - p).
"""

import numpy as np

WORD = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def philox_4x32_10(seed, counters):
    """uint32 (..., 4): four words for each 64-bit counter."""
    counters = np.asarray(counters, dtype=np.uint64)
    key = [np.uint64(seed % 2**32), np.uint64((seed >> 32) % 2**32)]
    c0, c1 = counters & WORD, counters >> HALF
    c2 = c3 = np.zeros_like(counters)
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (b >> HALF) ^ c1 ^ key[0], b & WORD, (a >> HALF) ^ c3 ^ key[1], a & WORD
        key = [(key[0] + np.uint64(0x9E3779B9)) & WORD, (key[1] + np.uint64(0xBB67AE85)) & WORD]
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def random_words(seed, offset, sequences, heads, max_seqlen_q, max_seqlen_k):
    """int32 (sequences, heads, max_seqlen_q, max_seqlen_k): the word that decides on each element."""
    groups = -(-max_seqlen_k // 4)
    count = sequences * heads * max_seqlen_q * groups
    counters = np.uint64(offset % 2**64) + np.arange(count, dtype=np.uint64)
    words = philox_4x32_10(seed, counters).view(np.int32)
    return words.reshape(sequences, heads, max_seqlen_q, groups * 4)[..., :max_seqlen_k]


def uniform(words):
    """fp32 in [0, 1) of int32 words: what debug_fill_dropout_rng writes."""
    steps = (words.astype(np.int64) + 2**31 + 255) // 256
    return (np.minimum(steps, 2**24 - 1) / 2**24).astype(np.float32)


def threshold(p):
    value = float((np.float32(p) - np.float32(0.5)) * np.float32(2**32))
    return np.int32(min(int(value), 2**31 - 1))


def keep_mask(p, seed, offset, sequences, heads, max_seqlen_q, max_seqlen_k):
    """bool (sequences, heads, max_seqlen_q, max_seqlen_k)."""
    return random_words(seed, offset, sequences, heads, max_seqlen_q, max_seqlen_k) > threshold(p)
