"""What the gates know of each AMD arch: the label of its code objects, and its registers."""

from typing import NamedTuple


class Machine(NamedTuple):
    flags: int  # e_flags of a code object for any setting of XNACK and SRAM-ECC (LLVM, AMDGPUUsage)
    registers: int  # of a SIMD, a lane
    granule: int  # they are given out in multiples of this
    waves: int  # that a SIMD holds at most


_ANY_XNACK, _ANY_SRAMECC = 0x100, 0x400
_FIRST_GENERIC_VERSION = 1 << 24


def _cdna(mach):
    return Machine(mach | _ANY_XNACK | _ANY_SRAMECC, 512, 8, 8)


def _rdna(mach, registers):
    return Machine(mach, registers, registers // 64, 16)


MACHINES = {
    "gfx90a": _cdna(0x3F),
    "gfx942": _cdna(0x4C),
    "gfx950": _cdna(0x4F),
    "gfx1100": _rdna(0x41, 1536),
    "gfx1101": _rdna(0x46, 1536),
    "gfx1102": _rdna(0x47, 1024),
    "gfx1103": _rdna(0x44, 1024),
    "gfx1150": _rdna(0x43, 1024),
    "gfx1151": _rdna(0x4A, 1536),
    "gfx1152": _rdna(0x55, 1024),
    "gfx1153": _rdna(0x58, 1024),
    "gfx1200": _rdna(0x48, 1536),
    "gfx1201": _rdna(0x4E, 1536),
    "gfx1250": _rdna(0x49 | _ANY_SRAMECC, 1024),
    # As few registers as any of the family has.
    "gfx11-generic": _rdna(0x54 | _FIRST_GENERIC_VERSION, 1024),
    "gfx12-generic": _rdna(0x59 | _FIRST_GENERIC_VERSION, 1536),
}
