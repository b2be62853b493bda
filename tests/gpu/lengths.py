"""Variable lengths: where each sequence lies in its tensor, for the three kinds."""

import dataclasses

import torch

from tests.gpu import placing


@dataclasses.dataclass(frozen=True)
class Rows:
    """One side (queries or keys) of a call with variable lengths.

    Attributes:
      batch, rows: the tensor is (batch, head, rows, head_dim).
      first: of each sequence, (batch index, first row).
      lengths: of each sequence.
      starts: first rows and the total, where the call is told them (kind strided); else None.
    """

    batch: int
    rows: int
    first: tuple
    lengths: tuple
    starts: tuple | None = None

    @property
    def longest(self):
        """max_seqlen; where all are empty that of the tensor, for 0 tells the library nothing."""
        return max(self.lengths, default=0) or self.rows

    def cu_seqlens(self):
        """int32 [len(lengths) + 1] on the GPU: sums of the lengths before each sequence."""
        sums = [0]
        for length in self.lengths:
            sums.append(sums[-1] + length)
        return _int32(sums)

    def seq_starts(self):
        return None if self.starts is None else _int32(self.starts)

    def views(self, tensor):
        """The sequences of (batch, head, rows, head_dim), each (1, head, length, head_dim)."""
        return [tensor[z:z + 1, :, row:row + length] for (z, row), length in zip(self.first, self.lengths)]


def _int32(numbers):
    return torch.tensor(numbers, dtype=torch.int32, device=placing.DEVICE)


def compact(lengths):
    """All sequences one after another in batch 0."""
    firsts = [sum(lengths[:i]) for i in range(len(lengths))]
    return Rows(1, sum(lengths), tuple((0, row) for row in firsts), tuple(lengths))


def padded(lengths):
    """Sequence i is the first rows of batch i; the tensor is a few rows longer than any of them."""
    return Rows(len(lengths), max(lengths, default=0) + 3, tuple((i, 0) for i in range(len(lengths))), tuple(lengths))


def strided(lengths, gaps):
    """As compact, with gaps[i] unused rows after sequence i."""
    starts = [sum(lengths[:i]) + sum(gaps[:i]) for i in range(len(lengths) + 1)]
    return Rows(1, starts[-1], tuple((0, row) for row in starts[:-1]), tuple(lengths), tuple(starts))


def make(kind, lengths, gaps=()):
    if kind == "strided":
        return strided(lengths, gaps or [(5 * i) % 7 for i in range(len(lengths))])
    return {"compact": compact, "padded": padded}[kind](lengths)


def random_lengths(rng, count, longest, empty=0.1):
    """`count` lengths up to `longest`; about `empty` of them, and at least one, 0."""
    lengths = [0 if rng.random() < empty else rng.randint(1, longest) for _ in range(count)]
    lengths[rng.randrange(count)] = 0
    return lengths
