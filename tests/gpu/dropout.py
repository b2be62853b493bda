"""The dropout mask of a call, on the GPU: Philox-4x32-10 in torch's int64.

J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. Key = the seed, counter =
(offset, 0, 0) with a 64-bit offset; the fast twin of tests/kernels/philox.py (numpy), against which
dropout_cases.py checks it.
"""

import torch

from tests.gpu import placing

_LOW = 0xFFFFFFFF


def _signed(number):
    """The int64 with the bits of `number` modulo 2**64."""
    number %= 2**64
    return number - 2**64 if number >= 2**63 else number


def _mul(constant, word):
    """High and low half of the 64-bit product of two 32-bit words (held in int64)."""
    product = constant * word  # wraps, and the bits are right
    return (product >> 32) & _LOW, product & _LOW


def words(seed, counters):
    """The four random words at each 64-bit counter: int64 [..., 4], each in [0, 2**32)."""
    c0, c1 = counters & _LOW, (counters >> 32) & _LOW
    c2, c3 = torch.zeros_like(c0), torch.zeros_like(c0)
    k0, k1 = seed & _LOW, (seed >> 32) & _LOW
    for _ in range(10):
        high0, low0 = _mul(0xD2511F53, c0)
        high1, low1 = _mul(0xCD9E8D57, c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) & _LOW, (k1 + 0xBB67AE85) & _LOW
    return torch.stack((c0, c1, c2, c3), dim=-1)


def threshold(dropout_p):
    """A word is kept iff it, as int32, is above this: (p - 0.5) * 2**32, every step in fp32."""
    scaled = (torch.tensor(dropout_p, dtype=torch.float32) - 0.5) * 4294967296.0
    return min(int(scaled.item()), 2**31 - 1)


def keep(seed, offset, dropout_p, sequence, num_head_q, rows, columns, max_rows=None, max_columns=None):
    """Which probabilities stay: bool (len(sequence), num_head_q, rows, columns).

    Args:
      sequence: range of sequence indices (of batches where lengths do not vary).
      max_rows, max_columns: max_seqlen_q and max_seqlen_k of the call; default rows and columns.
    """
    device = placing.DEVICE
    max_rows = rows if max_rows is None else max_rows
    max_columns = columns if max_columns is None else max_columns
    groups, wide = -(-columns // 4), -(-max_columns // 4)
    z = torch.tensor(list(sequence), dtype=torch.int64, device=device)[:, None, None, None]
    h, m, n = (torch.arange(count, dtype=torch.int64, device=device) for count in (num_head_q, rows, groups))
    counter = ((z * num_head_q + h[:, None, None]) * max_rows + m[:, None]) * wide + n + _signed(offset)
    word = words(_signed(seed), counter).flatten(-2)[..., :columns]
    as_int32 = torch.where(word >= 2**31, word - 2**32, word)
    return as_int32 > threshold(dropout_p)
