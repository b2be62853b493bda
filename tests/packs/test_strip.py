"""Stripping a code object: what a loader reads stays."""

import pytest

from tests.packs.elf_file import ABSOLUTE, GLOBAL_FUNCTION, LOCAL, TEXT, elf_file
from tools.code_object.elf import SHF_ALLOC, SHT_DYNSYM, SHT_SYMTAB, Elf, ElfError, stripped

KERNEL, DESCRIPTOR = ("scale", GLOBAL_FUNCTION, TEXT, 0x1000), ("scale.kd", GLOBAL_FUNCTION, TEXT, 0x1040)
OTHERS = [("BB0_1", LOCAL, TEXT, 0x1010), ("scale.num_vgpr", GLOBAL_FUNCTION, ABSOLUTE, 20)]


def names(code, table):
    return [symbol.name for symbol in Elf(code).symbols(table)]


def test_the_kernel_stays_in_both_symbol_tables():
    code = elf_file([KERNEL, OTHERS[0], DESCRIPTOR, OTHERS[1]])
    small = stripped(code)
    assert len(small) < len(code)
    # ROCr looks kernels up in .symtab, comgr and the simulator in .dynsym.
    assert names(small, SHT_SYMTAB) == names(small, SHT_DYNSYM) == ["", "scale", "scale.kd"]
    assert Elf(small).symbols(SHT_SYMTAB)[1:] == [one for one in Elf(code).symbols(SHT_SYMTAB) if one.name in ("scale", "scale.kd")]


def test_what_is_loaded_stays_where_it_was():
    code = elf_file([KERNEL, DESCRIPTOR] + OTHERS)
    before, after = Elf(code), Elf(stripped(code))
    assert after.segments == before.segments
    loaded = [section for section in before.sections if section.flags & SHF_ALLOC]
    assert [section for section in after.sections if section.flags & SHF_ALLOC] == loaded
    for section in loaded:
        assert after.data[section.offset:section.offset + section.size] == code[section.offset:section.offset + section.size]
    assert [section.name for section in after.sections[len(loaded) + 1:]] == [".symtab", ".strtab", ".shstrtab"]
    assert b"a compiler" in code and b"a compiler" not in after.data and b"num_vgpr" not in after.data


def test_again_changes_nothing():
    once = stripped(elf_file([KERNEL, DESCRIPTOR] + OTHERS))
    assert stripped(once) == once


def test_what_other_compilers_made_stays_as_it_is():
    code = elf_file([KERNEL] + OTHERS, machine=190)
    assert stripped(code) == code


@pytest.mark.parametrize("bad", [b"", b"\x7fELF\x01\x01" + bytes(60), elf_file([KERNEL])[:200]])
def test_no_code_object_is_refused(bad):
    with pytest.raises(ElfError):
        stripped(bad)
