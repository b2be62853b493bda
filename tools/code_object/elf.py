"""Code objects are ELF files: reading their sections, segments and symbols, and stripping them."""

import struct
from typing import List, NamedTuple

EM_AMDGPU, EM_CUDA = 224, 190

SHT_SYMTAB, SHT_STRTAB, SHT_NOBITS, SHT_DYNSYM = 2, 3, 8, 11
SHF_ALLOC = 2
PT_NOTE = 4
SHN_ABS = 0xFFF1

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


class ElfError(Exception):
    """Bytes that are not a 64-bit little-endian ELF file, or are damaged."""


class Header(NamedTuple):
    ident: bytes
    type: int
    machine: int
    version: int
    entry: int
    segments_at: int
    sections_at: int
    flags: int
    size: int
    segment_size: int
    segment_count: int
    section_size: int
    section_count: int
    names: int  # the section of the sections' names


class Section(NamedTuple):
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class Segment(NamedTuple):
    type: int
    flags: int
    offset: int
    address: int
    physical_address: int
    file_size: int
    memory_size: int
    alignment: int


class Symbol(NamedTuple):
    name: str
    info: int
    other: int
    section: int
    value: int
    size: int

    @property
    def is_global(self) -> bool:
        return self.info >> 4 != 0


class Elf:
    """An ELF file in memory."""

    def __init__(self, data: bytes):
        self.data = data
        if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
            raise ElfError(f"it starts with {data[:6]!r}, a 64-bit little-endian ELF file with {bytes.fromhex('7f454c460201')!r}")
        self.header = Header(*_HEADER.unpack_from(data))
        rows = [self._unpack(_SECTION, self.header.sections_at + _SECTION.size * i) for i in range(self.header.section_count)]
        self.sections: List[Section] = []
        if rows:
            names = self.bytes_at(rows[self.header.names][4], rows[self.header.names][5])
            self.sections = [Section(_text(names, row[0]), *row[1:]) for row in rows]
        self.segments = [Segment(*self._unpack(_SEGMENT, self.header.segments_at + _SEGMENT.size * i)[:8])
                         for i in range(self.header.segment_count)]

    def _unpack(self, layout, offset):
        return layout.unpack(self.bytes_at(offset, layout.size))

    def bytes_at(self, offset: int, size: int) -> bytes:
        if offset + size > len(self.data):
            raise ElfError(f"{size} bytes at offset {offset} lie outside its {len(self.data)} bytes")
        return self.data[offset:offset + size]

    def symbols(self, type_: int) -> List[Symbol]:
        """Of the section of type SHT_SYMTAB or SHT_DYNSYM; none if there is no such section."""
        for section in self.sections:
            if section.type == type_:
                names = self.sections[section.link]
                names = self.bytes_at(names.offset, names.size)
                return [Symbol(_text(names, row[0]), *row[1:])
                        for row in _SYMBOL.iter_unpack(self.bytes_at(section.offset, section.size))]
        return []

    def notes(self):
        """(name, type, content) of each note that is loaded."""
        for segment in self.segments:
            at, end = segment.offset, segment.offset + segment.file_size
            while segment.type == PT_NOTE and at + 12 <= end:
                name_size, size, type_ = struct.unpack("<III", self.bytes_at(at, 12))
                name = self.bytes_at(at + 12, name_size).rstrip(b"\0").decode()
                at += 12 + _aligned(name_size, 4)
                yield name, type_, self.bytes_at(at, size)
                at += _aligned(size, 4)

    def loaded(self, address: int, size: int) -> bytes:
        """The bytes that lie at `address` in memory."""
        for section in self.sections:
            if section.flags & SHF_ALLOC and section.type != SHT_NOBITS and section.address <= address < section.address + section.size:
                return self.bytes_at(section.offset + address - section.address, size)
        raise ElfError(f"no section holds the address {address:#x}")


def _aligned(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _text(names: bytes, offset: int) -> str:
    end = names.find(b"\0", offset)
    if end < 0:
        raise ElfError(f"it has a name at {offset} of {len(names)} bytes of names")
    return names[offset:end].decode()


class _Names:
    """A section of NUL-terminated names."""

    def __init__(self):
        self.data = bytearray(b"\0")

    def add(self, name: str) -> int:
        self.data += name.encode() + b"\0"
        return len(self.data) - len(name) - 1


def stripped(code: bytes) -> bytes:
    """An AMD code object without what no loader reads; any other file as it is.

    Everything that is loaded stays where it is. Of the symbols, the global ones that have an address stay, in .dynsym *and*
    in .symtab: ROCr looks kernels up in .symtab unless LOADER_USE_DYNSYM is set. Comments and the compiler's local and
    absolute symbols go.
    """
    elf = Elf(code)
    if elf.header.machine != EM_AMDGPU:
        return code
    loaded = [section for section in elf.sections if section.flags & SHF_ALLOC]
    if elf.sections[1:1 + len(loaded)] != loaded:
        raise ElfError("its loaded sections are not its first ones")

    symbols, names = bytearray(_SYMBOL.size), _Names()
    for symbol in elf.symbols(SHT_SYMTAB):
        if symbol.is_global and symbol.section != SHN_ABS:
            symbols += _SYMBOL.pack(names.add(symbol.name), *symbol[1:])

    end = max(section.offset + (0 if section.type == SHT_NOBITS else section.size) for section in loaded)
    out = bytearray(code[:_aligned(end, 8)].ljust(_aligned(end, 8), b"\0"))
    section_names = _Names()
    rows = [bytes(_SECTION.size)] + [_SECTION.pack(section_names.add(section.name), *section[1:]) for section in loaded]
    symtab, strtab = len(rows), len(rows) + 1

    def append(name, type_, content, link=0, info=0, alignment=1, entry_size=0):
        name = section_names.add(name)
        content = bytes(section_names.data) if content is None else content
        rows.append(_SECTION.pack(name, type_, 0, 0, len(out), len(content), link, info, alignment, entry_size))
        out.extend(content)

    append(".symtab", SHT_SYMTAB, bytes(symbols), link=strtab, info=1, alignment=8, entry_size=_SYMBOL.size)
    append(".strtab", SHT_STRTAB, bytes(names.data))
    append(".shstrtab", SHT_STRTAB, None)
    out += bytes(-len(out) % 8)
    header = elf.header._replace(sections_at=len(out), section_count=len(rows), names=symtab + 2)
    return _HEADER.pack(*header) + bytes(out[_HEADER.size:]) + b"".join(rows)
