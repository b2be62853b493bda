"""The pack file: writing and reading it. docs/pack_format.md is its specification."""

import dataclasses
import hashlib
import heapq
import lzma
import os
import struct
import zlib
from typing import Dict, FrozenSet, List, NamedTuple, Sequence, Tuple

MAGIC = b"AOTPACK2"  # the digit is the version of the format
ABI = "1"
UNBOUNDED = 0xFFFFFFFF

_HEADER = struct.Struct("<8sQIIII32x")
_SECTION = struct.Struct("<4sIII")

# Words of a record, by section; CONS holds one signed word.
_RECORDS = {
    b"META": "<2I",
    b"AXES": "<3I",
    b"AVAL": "<I",
    b"FUNC": "<8I",
    b"ARGS": "<2I",
    b"VARI": "<8I",
    b"CONS": "<Ii",
    b"CHOI": "<4I",
    b"BLOB": "<4I",
}
_ORDER = [b"STRS", b"META", b"AXES", b"AVAL", b"FUNC", b"ARGS", b"VARI", b"CONS", b"CHOI", b"BLOB"]

# A blob holds as many functionals as unpack in 3 ms: functionals alike share most of their code, and the first use of
# one unpacks them all. docs/pack_format.md has what was measured.
_BLOB = 256 << 10

# Code objects are 4-byte aligned instructions: position bits 2, literal context 0.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 20, "pb": 2, "lp": 2, "lc": 0}]


class PackError(Exception):
    """A file that is not a pack, or a pack that cannot be written."""


@dataclasses.dataclass
class Variant:
    """One code object of a functional."""

    symbol: str
    code: bytes
    threads: int  # of a work group
    shared: int  # bytes of dynamic local memory
    constants: Dict[str, int]  # the config, e.g. BLOCK_M
    hash: str = ""  # the first 16 digits of the SHA-256 of the code object as it was compiled: finds its report

    def __post_init__(self):
        self.hash = self.hash or hashlib.sha256(self.code).hexdigest()[:16]


class Choice(NamedTuple):
    """A row of the tuning table: its variant is for calls that keep all its bounds."""

    variant: int  # index into Functional.variants
    max_seqlen_q: int = UNBOUNDED
    max_seqlen_k: int = UNBOUNDED
    min_fill: int = 0  # percent of the GPU's multiprocessors that the variant's work groups fill

    def hides(self, later: "Choice") -> bool:
        """Whether every call that keeps the bounds of `later`, a row further down, keeps these."""
        return (self.min_fill == 0 and self.max_seqlen_q >= later.max_seqlen_q
                and self.max_seqlen_k >= later.max_seqlen_k)


@dataclasses.dataclass
class Functional:
    """One value for each axis, with its variants."""

    values: Tuple[str, ...]  # one of each axis, in the order of Pack.axes
    arguments: List[Tuple[str, str]]  # (name, type) in the order of the launch
    variants: List[Variant]
    choices: List[Choice]  # the first whose bounds hold is taken; the last has none


@dataclasses.dataclass
class Pack:
    """All functionals of one kernel for one arch."""

    meta: Dict[str, str]
    axes: List[Tuple[str, Tuple[str, ...]]]  # (name, values)
    functionals: List[Functional]

    def number(self, values: Sequence[str]) -> int:
        """The functional number: mixed radix, the first axis most significant."""
        result = 0
        for (name, axis_values), value in zip(self.axes, values):
            if value not in axis_values:
                raise PackError(f"axis {name} has no value {value!r}; it has {', '.join(axis_values)}")
            result = result * len(axis_values) + axis_values.index(value)
        return result


class _Strings:
    """Interned NUL-terminated texts."""

    def __init__(self):
        self.data = bytearray()
        self._offsets = {}

    def add(self, text: str) -> int:
        if text not in self._offsets:
            self._offsets[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self._offsets[text]


class _Runs:
    """The records of a section that other records name by their first and their number; equal runs are stored once."""

    def __init__(self):
        self.records = []
        self._places = {}

    def add(self, run) -> Tuple[int, int]:
        run = tuple(run)
        if run not in self._places:
            self._places[run] = len(self.records)
            self.records += run
        return self._places[run], len(run)


def _aligned(size: int) -> int:
    return -(-size // 8) * 8


def _sketch(content: bytes) -> FrozenSet[int]:
    """The smallest hashes of pairs of words: how many of them two contents share tells how much of their code they do."""
    words = struct.unpack_from(f"<{len(content) // 4}I", content)
    return frozenset(heapq.nsmallest(256, {(a * 0x9E3779B1 + b * 0x85EBCA77) & UNBOUNDED for a, b in zip(words, words[1:])}))


def _neighbours(contents: List[bytes]) -> List[int]:
    """An order in which each content follows the one that is most like it: what is near compresses well."""
    order, sketches = [], dict(enumerate(map(_sketch, contents)))
    sketch = frozenset()
    while sketches:
        nearest = max(sketches, key=lambda index: (len(sketches[index] & sketch), -index))
        sketch = sketches.pop(nearest)
        order.append(nearest)
    return order


def _fill_blobs(functionals: List[Functional]) -> Tuple[List[bytes], List[Tuple[int, Dict[bytes, int]]]]:
    """Shares the code objects out among blobs.

    Returns the blobs, and for each functional the number of its blob and {code object: its offset there}. In a blob, equal
    code objects are stored once.
    """
    codes = list(dict.fromkeys(tuple(variant.code for variant in functional.variants) for functional in functionals))
    blobs, places = [bytearray()], [{}]
    where = {}
    for index in _neighbours([b"".join(one) for one in codes]):
        size = sum(len(code) for code in set(codes[index]) if code not in places[-1])
        if blobs[-1] and len(blobs[-1]) + size > _BLOB:
            blobs.append(bytearray())
            places.append({})
        for code in codes[index]:
            if code not in places[-1]:
                places[-1][code] = len(blobs[-1])
                blobs[-1] += code
        where[codes[index]] = len(blobs) - 1, places[-1]
    return [bytes(blob) for blob in blobs], [where[tuple(variant.code for variant in f.variants)] for f in functionals]


def _check(functional: Functional) -> None:
    where = f"functional {functional.values}"
    if not functional.variants:
        raise PackError(f"{where} has no variants")
    if not functional.choices or functional.choices[-1][1:] != Choice(0)[1:]:
        raise PackError(f"{where}: the last of its choices must have no bounds: it is the default; they are {functional.choices}")
    for row, choice in enumerate(functional.choices):
        if not 0 <= choice.variant < len(functional.variants):
            raise PackError(f"{where}: a choice names variant {choice.variant} of {len(functional.variants)}")
        for earlier in functional.choices[:row]:
            if earlier.hides(choice):
                raise PackError(f"{where}: {choice} is never reached: {earlier} stands above it")


def encode(pack: Pack) -> bytes:
    """The bytes of `pack`; equal packs give equal bytes."""
    strings = _Strings()
    records = {tag: [] for tag in _RECORDS}
    values, arguments, constants, choices = _Runs(), _Runs(), _Runs(), _Runs()

    for key, value in sorted(pack.meta.items()):
        records[b"META"].append((strings.add(key), strings.add(value)))
    for name, axis_values in pack.axes:
        records[b"AXES"].append((strings.add(name), *values.add((strings.add(value),) for value in axis_values)))

    numbered = sorted(((pack.number(f.values), f) for f in _unique(pack.functionals)), key=lambda one: one[0])
    for _, functional in numbered:
        _check(functional)
    blobs, places = _fill_blobs([functional for _, functional in numbered])
    for (number, functional), (blob, place) in zip(numbered, places):
        records[b"FUNC"].append((
            number, blob,
            *arguments.add((strings.add(name), strings.add(type_)) for name, type_ in functional.arguments),
            len(records[b"VARI"]), len(functional.variants),
            *choices.add((c.max_seqlen_q, c.max_seqlen_k, c.min_fill, c.variant) for c in functional.choices),
        ))
        for variant in functional.variants:
            records[b"VARI"].append((
                strings.add(variant.symbol), place[variant.code], len(variant.code), variant.threads, variant.shared,
                *constants.add((strings.add(name), value) for name, value in sorted(variant.constants.items())),
                strings.add(variant.hash),
            ))
    for tag, runs in ((b"AVAL", values), (b"ARGS", arguments), (b"CONS", constants), (b"CHOI", choices)):
        records[tag] = runs.records

    stored = [lzma.compress(blob, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, filters=_FILTERS) for blob in blobs]
    sizes = {tag: struct.calcsize(layout) * len(records[tag]) for tag, layout in _RECORDS.items()}
    sizes[b"BLOB"] = struct.calcsize(_RECORDS[b"BLOB"]) * len(blobs)
    sizes[b"STRS"] = len(strings.data)

    offset = _HEADER.size + _SECTION.size * len(_ORDER)
    offsets = {}
    for tag in _ORDER:
        offset = _aligned(offset)
        offsets[tag] = offset
        offset += sizes[tag]
    index_end = offset
    for raw, packed in zip(blobs, stored):
        offset = _aligned(offset)
        records[b"BLOB"].append((offset & 0xFFFFFFFF, offset >> 32, len(packed), len(raw)))
        offset += len(packed)
    file_size = offset

    out = bytearray(file_size)
    for i, tag in enumerate(_ORDER):
        size = 1 if tag == b"STRS" else struct.calcsize(_RECORDS[tag])
        _SECTION.pack_into(out, _HEADER.size + i * _SECTION.size, tag, size, sizes[tag] // size, offsets[tag])
        body = bytes(strings.data) if tag == b"STRS" else b"".join(struct.pack(_RECORDS[tag], *r) for r in records[tag])
        out[offsets[tag]:offsets[tag] + len(body)] = body
    for (low, high, size, _), packed in zip(records[b"BLOB"], stored):
        start = low | high << 32
        out[start:start + size] = packed
    index = bytes(out[_HEADER.size:index_end])
    _HEADER.pack_into(out, 0, MAGIC, file_size, _HEADER.size, len(index), zlib.crc32(index), len(_ORDER))
    return bytes(out)


def _unique(functionals: List[Functional]) -> List[Functional]:
    seen = set()
    for functional in functionals:
        if functional.values in seen:
            raise PackError(f"functional {functional.values} is given twice")
        seen.add(functional.values)
    return functionals


def write_pack(path: str, pack: Pack) -> None:
    """Writes `pack` to `path`; a write that fails leaves no file."""
    data = encode(pack)
    partial = f"{path}.partial"
    try:
        with open(partial, "wb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.remove(partial)
        raise


def decode(data: bytes, name: str = "pack") -> Pack:
    """The pack in `data`; raises PackError, naming `name`, for anything else."""
    if len(data) < _HEADER.size or data[:8] != MAGIC:
        raise PackError(f"{name}: not a pack: it starts with {data[:8]!r}, a pack with {MAGIC!r}")
    _, file_size, index_offset, index_size, crc, count = _HEADER.unpack_from(data)
    if file_size != len(data):
        raise PackError(f"{name}: the file has {len(data)} bytes, its header says {file_size}")
    if zlib.crc32(data[index_offset:index_offset + index_size]) != crc:
        raise PackError(f"{name}: the index is damaged (CRC-32 differs)")
    sections = {}
    for i in range(count):
        tag, size, records, offset = _SECTION.unpack_from(data, index_offset + i * _SECTION.size)
        sections[tag] = (size, data[offset:offset + size * records])
    rows = {tag: list(struct.iter_unpack(layout, sections[tag][1])) for tag, layout in _RECORDS.items()}
    texts = sections[b"STRS"][1]

    def text(offset):
        return texts[offset:texts.index(b"\0", offset)].decode()

    axes = [
        (text(axis), tuple(text(v) for (v,) in rows[b"AVAL"][first:first + n]))
        for axis, first, n in rows[b"AXES"]
    ]
    blobs = []
    for low, high, stored, size in rows[b"BLOB"]:
        start = low | high << 32
        blobs.append(lzma.decompress(data[start:start + stored]))
        if len(blobs[-1]) != size:
            raise PackError(f"{name}: a blob has {len(blobs[-1])} bytes, its record says {size}")
    functionals = []
    for number, blob, arg0, args, var0, variants, choice0, choices in rows[b"FUNC"]:
        values = []
        for _, axis_values in reversed(axes):
            number, digit = divmod(number, len(axis_values))
            values.append(axis_values[digit])
        functionals.append(Functional(
            values=tuple(reversed(values)),
            arguments=[(text(n), text(t)) for n, t in rows[b"ARGS"][arg0:arg0 + args]],
            variants=[
                Variant(text(symbol), blobs[blob][offset:offset + size], threads, shared,
                        {text(n): v for n, v in rows[b"CONS"][const0:const0 + consts]}, text(hash_))
                for symbol, offset, size, threads, shared, const0, consts, hash_ in rows[b"VARI"][var0:var0 + variants]
            ],
            choices=[Choice(variant, *bounds) for *bounds, variant in rows[b"CHOI"][choice0:choice0 + choices]],
        ))
    return Pack({text(k): text(v) for k, v in rows[b"META"]}, axes, functionals)


def read_pack(path: str) -> Pack:
    """The pack in the file `path`."""
    with open(path, "rb") as file:
        return decode(file.read(), path)
