"""Small ELF files, as the linker of AMD's compiler lays them out."""

import struct

GLOBAL_FUNCTION, LOCAL = 0x12, 0
ABSOLUTE, TEXT = 0xFFF1, 2


def elf_file(symbols, text=b"\x01\x02\x03\x04" * 64, machine=224):
    """A file with .dynsym, .text, .comment and .symtab.

    symbols: [(name, info, section, value)] of .symtab; the global ones that have an address are in .dynsym, too.
    """
    def table(rows):
        names, out = bytearray(b"\0"), bytearray(24)
        for name, info, section, value in rows:
            out += struct.pack("<IBBHQQ", len(names), info, 0, section, value, 8)
            names += name.encode() + b"\0"
        return bytes(out), bytes(names)

    dynsym, dynstr = table([row for row in symbols if row[1] == GLOBAL_FUNCTION and row[2] != ABSOLUTE])
    symtab, strtab = table(symbols)
    # name, type, flags (2: loaded), link, content
    sections = [
        (".dynsym", 11, 2, 3, dynsym), (".text", 1, 6, 0, text), (".dynstr", 3, 2, 0, dynstr),
        (".comment", 1, 0, 0, b"a compiler"), (".symtab", 2, 0, 6, symtab), (".strtab", 3, 0, 0, strtab),
    ]
    names = b"\0" + b"".join(name.encode() + b"\0" for name, *_ in sections) + b".shstrtab\0"
    body, rows = bytearray(64 + 56), [bytes(64)]
    for name, type_, flags, link, content in sections + [(".shstrtab", 3, 0, 0, names)]:
        body += bytes(-len(body) % 8)
        rows.append(struct.pack("<IIQQQQIIQQ", names.index(name.encode() + b"\0"), type_, flags,
                                0x1000 + len(body) if flags else 0, len(body), len(content), link, 0, 8, 24 if "sym" in name else 0))
        body += content
    body += bytes(-len(body) % 8)
    struct.pack_into("<16sHHIQQQIHHHHHH", body, 0, b"\x7fELF\x02\x01\x01\x40\x03", 3, machine, 1, 0, 64, len(body), 0x54C, 64, 56, 1, 64,
                     len(rows), len(rows) - 1)
    struct.pack_into("<IIQQQQQQ", body, 64, 1, 5, 0, 0x1000, 0x1000, len(body), len(body), 0x1000)
    return bytes(body) + b"".join(rows)
