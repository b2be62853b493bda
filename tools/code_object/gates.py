"""What every code object must be before it is shipped: each gate says what is wrong, and what would be right.

A gate looks at the bytes that are shipped, never at what the compiler said of them; the report beside the code object says what
the dispatcher will pass.
"""

import fnmatch
import re
import struct
from typing import Dict, List, NamedTuple

from tools.code_object import message_pack
from tools.code_object.elf import EM_AMDGPU, EM_CUDA, SHT_DYNSYM, SHT_SYMTAB, Elf, ElfError

METADATA_NOTE = 32
ABI_VERSION = {5: 3, 6: 4}  # code object version -> e_ident[EI_ABIVERSION]
# e_flags beside the machine: a code object for any setting of XNACK and of SRAM-ECC, where the arch has them; the version of
# a generic target.
ANY_XNACK, ANY_SRAMECC, FIRST_GENERIC_VERSION = 0x100, 0x400, 1 << 24
# Round to nearest even, keep subnormal numbers, in every width: what the numbers of the library were checked with.
FLOAT_MODE = 0xF0
NVIDIA_ARGUMENTS = 0x210  # in the bank of constants of sm_90
NVIDIA_REGISTERS, NVIDIA_REGISTERS_OF_A_BLOCK = 255, 65536

SIZES = {"i1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "fp32": 4, "i64": 8, "u64": 8, "fp64": 8}

TENSOR_MAP = 128, 64  # size and alignment of a CUtensorMap

# dtype of a functional -> the operands of its matrix instructions
MATRIX_OPERANDS = {"fp16": "f16", "bf16": "bf16", "fp32": "f32"}
_MATRIX = re.compile(r"v_(?:s?mfmac?|s?wmmac?)_(\w+?)_(\d+)x(\d+)x(\d+)_?(\w+?)(?:_1k)?$")

# A scalar base and a 32-bit offset are for single elements: of a length, a flag, a column of one row. What moves a tile's rows
# has 64-bit addresses in vector registers.
WIDE = re.compile(r"_(?:b96|b128|dwordx3|dwordx4)$")


class CodeObject(NamedTuple):
    """What the gates look at."""

    functional: str  # the target's name, e.g. attn_fwd.bf16.d128.causal
    path: str
    code: bytes
    report: dict
    instructions: dict  # of tools/code_object/instructions.cc; {} on NVIDIA


class Simd(NamedTuple):
    """What the lanes of one SIMD share."""

    registers: int  # of a lane, for all waves
    granule: int  # they are given out in multiples of this
    waves: int  # at most


class Kernel(NamedTuple):
    """The kernel of an AMD code object, from its metadata and its descriptor."""

    metadata: dict
    target: str
    kernarg_size: int
    properties: int
    rsrc1: int


def place_of(type_):
    """(size, alignment) of an argument of this type."""
    if type_.startswith("tensor_map"):
        return TENSOR_MAP
    size = 8 if type_.startswith("*") else SIZES[type_]
    return size, size


def layout_of(arguments, base=0) -> List[tuple]:
    """[(offset, size)] as the dispatcher passes them: in order, each at a multiple of its alignment; base: where they begin."""
    out, at = [], base
    for _, type_ in arguments:
        size, alignment = place_of(type_)
        at = -(-at // alignment) * alignment
        out.append((at - base, size))
        at += size
    return out


def read_kernel(elf: Elf) -> Kernel:
    """The one kernel of an AMD code object; raises ElfError if there is not exactly one."""
    notes = [content for name, type_, content in elf.notes() if (name, type_) == ("AMDGPU", METADATA_NOTE)]
    if len(notes) != 1:
        raise ElfError(f"it has {len(notes)} notes of metadata; it must have one")
    try:
        metadata = message_pack.decode(notes[0])
        (kernel,) = metadata["amdhsa.kernels"]
        target, name = metadata["amdhsa.target"], kernel[".symbol"]
    except (ValueError, KeyError, struct.error) as error:
        raise ElfError(f"its metadata do not describe one kernel: {error}") from error
    for table, what in ((SHT_DYNSYM, ".dynsym"), (SHT_SYMTAB, ".symtab")):
        if name not in [symbol.name for symbol in elf.symbols(table)]:
            raise ElfError(f"{what} has no symbol {name}; loaders look the kernel up there")
    (address,) = [symbol.value for symbol in elf.symbols(SHT_DYNSYM) if symbol.name == name]
    descriptor = elf.loaded(address, 64)
    return Kernel(kernel, target, *struct.unpack_from("<I", descriptor, 8), *struct.unpack_from("<H", descriptor, 56),
                  *struct.unpack_from("<I", descriptor, 48))


def simd_of(arch, wave_size) -> Simd:
    if wave_size == 64:
        return Simd(512, 8, 8)
    # These have half as many again; a family's image is for those that have not.
    registers = 1536 if arch in ("gfx1100", "gfx1101", "gfx1151") or arch.startswith("gfx120") or arch == "gfx12-generic" else 1024
    return Simd(registers, registers // 64, 16)


def flags_of(arch, arch_row) -> int:
    """The e_flags of a code object that any GPU of the arch loads."""
    if arch.endswith("-generic"):
        return arch_row["mach"] | FIRST_GENERIC_VERSION
    if arch_row["wave_size"] == 64:
        return arch_row["mach"] | ANY_XNACK | ANY_SRAMECC
    return arch_row["mach"]


def waves_of(report, arch_row, wgp_mode=True) -> int:
    """Waves of a kernel that a SIMD of an AMD GPU can hold at a time, 0 if not even those of one work group."""
    simd, simds = simd_of(report["arch"], arch_row["wave_size"]), 4 if wgp_mode else 2
    registers = -(-max(report["registers"], 1) // simd.granule) * simd.granule
    waves = min(simd.waves, simd.registers // registers)
    of_a_group = report["threads"] // arch_row["wave_size"]
    groups = waves * simds // of_a_group
    if report["shared"]:
        # A WGP has the local memory of two compute units.
        local = arch_row["lds"] * (2 if wgp_mode and arch_row["wave_size"] == 32 else 1)
        groups = min(groups, local // report["shared"])
    return min(waves, -(-groups * of_a_group // simds))


def _matrix_products(counts):
    """[(name, count, operands, products of two numbers it adds)] of the matrix instructions."""
    out = []
    for name, count in counts.items():
        found = _MATRIX.match(name)
        if found:
            out.append((name, count, found.group(5), int(found.group(2)) * int(found.group(3)) * int(found.group(4))))
    return out


def check(one: CodeObject, arch_row: dict, limits: dict) -> List[str]:
    """What is wrong with a code object, each in a sentence; [] if nothing is.

    arch_row: the arch's row in platforms/archs.bzl. limits: what the family's file of limits says.
    """
    try:
        elf = Elf(one.code)
        if one.report["vendor"] == "nvidia":
            return _check_nvidia(elf, one.report, arch_row) + _check_spills(one, limits)
        return _check_amd(elf, one, arch_row, limits) + _check_spills(one, limits)
    except ElfError as error:
        return [f"it is no code object: {error}"]


def _check_amd(elf, one, arch_row, limits):
    report, problems = one.report, []
    arch = report["arch"]

    def expect(what, value, right):
        if value != right:
            problems.append(f"{what} is {value}; it must be {right}")

    expect("the ELF machine", elf.header.machine, EM_AMDGPU)
    version = 6 if arch.endswith("-generic") else 5
    expect(f"the ELF ABI version (code object version {version})", elf.header.ident[8], ABI_VERSION[version])
    expect("e_flags, the arch and its modes,", f"{elf.header.flags:#x}", f"{flags_of(arch, arch_row):#x}")
    kernel = read_kernel(elf)
    metadata = kernel.metadata
    expect("the target", kernel.target.rsplit("-gfx")[-1], arch[len("gfx"):])
    expect("the kernel", metadata[".name"], report["symbol"])

    names = [name for name, _ in report["arguments"]]
    expect("the end of the arguments", names[-2:], ["global_scratch", "profile_scratch"])
    found = [(argument[".offset"], argument[".size"]) for argument in metadata.get(".args", [])]
    right = layout_of(report["arguments"])
    if found != right:
        at = next((i for i, pair in enumerate(zip(found, right)) if pair[0] != pair[1]), min(len(found), len(right)))
        name = names[at] if at < len(names) else "behind the last"
        problems.append(f"argument {at} ({name}) lies at (offset, size) {found[at:at + 1]}; the dispatcher passes {right[at:at + 1]}")
    for name, argument in zip(report["arguments"], metadata.get(".args", [])):
        kind = "global_buffer" if name[1].startswith("*") else "by_value"
        expect(f"the kind of argument {name[0]}", argument[".value_kind"], kind)
    size = right[-1][0] + right[-1][1]
    expect("the size of all arguments", metadata[".kernarg_segment_size"], size)
    expect("the size of all arguments in the descriptor", kernel.kernarg_size, size)

    wave, threads = arch_row["wave_size"], report["config"]["num_warps"] * arch_row["wave_size"]
    expect("the wave size", metadata[".wavefront_size"], wave)
    expect("the wave size in the descriptor", 32 if kernel.properties >> 10 & 1 else 64, wave)
    expect("the most threads of a work group", metadata[".max_flat_workgroup_size"], threads)
    expect("the threads that the dispatcher starts", report["threads"], threads)

    expect("static local memory", metadata[".group_segment_fixed_size"], 0)
    if report["shared"] > arch_row["lds"]:
        problems.append(f"local memory is {report['shared']} bytes; a work group of {arch} can have {arch_row['lds']}")
    for name, key in (("registers", ".vgpr_count"), ("spills", ".vgpr_spill_count"), ("scratch_bytes", ".private_segment_fixed_size")):
        expect(f"{name} in the report", report[name], metadata[key])
    if waves_of(report, arch_row, wave == 64 or bool(kernel.rsrc1 >> 29 & 1)) == 0:
        problems.append(f"a lane has {report['registers']} registers; {threads} threads of that do not fit into {arch} at a time")
    expect("the mode of floating-point numbers", f"{kernel.rsrc1 >> 12 & 0xFF:#x}", f"{FLOAT_MODE:#x}")
    return problems + _check_instructions(one, limits)


def _check_instructions(one, limits):
    if "error" in one.instructions:
        return [f"its instructions cannot be read: {one.instructions['error']}"]
    counts, report, problems = one.instructions["counts"], one.report, []
    if one.instructions["hazard"]:
        problems.append(f"the compiler made a mistake: {one.instructions['hazard']}; another config may do without")
    matrix = _matrix_products(counts)
    for name, count, *_ in matrix:
        if "xf32" in name:
            problems.append(f"it has {count} {name}, which round fp32 to 10 bits of mantissa; a product of fp32 must be IEEE's")
    of_products = limits["products"].get(report["kernel"], 0)
    dtype = report["functional"]["dtype"]
    has_none = dtype == "fp32" and report["arch"].startswith(("gfx11", "gfx12"))  # RDNA has none for fp32
    operands = MATRIX_OPERANDS.get(dtype)
    wrong = [f"{count} {name}" for name, count, found, _ in matrix if found != operands or not of_products]
    if wrong:
        problems.append(f"it has {', '.join(wrong)}; matrix instructions of {dtype} must be "
                        f"{'of ' + operands if of_products else 'none: the kernel multiplies no matrices'}")
    elif of_products and not has_none:
        # Of one pass over a tile of scores each product of matrices stands in the code at least once, shared out among the waves.
        constants = report["config"]["constants"]
        tile = constants["BLOCK_M"] * constants["BLOCK_N"] * int(report["functional"]["head_dim"])
        right = of_products * tile // report["config"]["num_warps"]
        found = sum(count * products for _, count, _, products in matrix)
        if found < right:
            problems.append(f"its matrix instructions add {found} products a wave; {of_products} products of a tile of {tile} need {right}")
    for name, count in one.instructions["narrow_addresses"].items():
        if name.startswith("buffer_") or WIDE.search(name):
            problems.append(f"it has {count} {name} with an offset of 32 bits; tensors may be larger than 4 GiB and need addresses of 64")
    return problems


def _check_nvidia(elf, report, arch_row):
    problems = []

    def expect(what, value, right):
        if value != right:
            problems.append(f"{what} is {value}; it must be {right}")

    expect("the ELF machine", elf.header.machine, EM_CUDA)
    sm, flags = int(report["arch"][len("sm_"):]), elf.header.flags
    if sm not in (flags & 0xFF, flags >> 8 & 0xFF):  # the newer ABI moved it
        problems.append(f"e_flags is {flags:#x}; it must name sm_{sm}, {sm:#x}")
    found = sorted(_nvidia_arguments(elf, report["symbol"]))
    right = [(number, *place) for number, place in enumerate(layout_of(report["arguments"], NVIDIA_ARGUMENTS))]
    if found != right:
        at = next((i for i, pair in enumerate(zip(found, right)) if pair[0] != pair[1]), min(len(found), len(right)))
        problems.append(f"argument {at} is at (number, offset, size) {found[at:at + 1]}; the dispatcher passes {right[at:at + 1]}")
    # Of specialised warps there are more than the config's.
    threads = _nvidia_threads(elf, report["symbol"])
    expect("the threads that the dispatcher starts", report["threads"], threads)
    if report["shared"] > arch_row["lds"]:
        problems.append(f"shared memory is {report['shared']} bytes; a block of {report['arch']} can have {arch_row['lds']}")
    if report["registers"] > min(NVIDIA_REGISTERS, NVIDIA_REGISTERS_OF_A_BLOCK // threads):
        problems.append(f"{report['registers']} registers of {threads} threads; a block can have {NVIDIA_REGISTERS_OF_A_BLOCK} in all, "
                        f"a thread {NVIDIA_REGISTERS}")
    return problems


def _nvidia_arguments(elf, symbol):
    """(number, offset, size) of each parameter."""
    for content in _nvidia_info(elf, symbol, 0x17):  # EIATTR_KPARAM_INFO
        _, number, offset, word = struct.unpack_from("<IHHI", content)
        yield number, offset, word >> 18


def _nvidia_threads(elf, symbol):
    """What each block must have."""
    found = [struct.unpack_from("<3I", content) for content in _nvidia_info(elf, symbol, 0x10)]  # EIATTR_REQNTID
    if len(found) != 1 or found[0][1:] != (1, 1):
        raise ElfError(f"it asks for blocks of {found} threads; it must ask for one number of them in a row")
    return found[0][0]


def _nvidia_info(elf, symbol, wanted):
    """The contents of an attribute in the section .nv.info of the kernel."""
    info = next((section for section in elf.sections if section.name == ".nv.info." + symbol), None)
    if info is None:
        raise ElfError(f"it has no section .nv.info.{symbol}")
    content, at = elf.bytes_at(info.offset, info.size), 0
    while at + 4 <= len(content):
        format_, attribute, size = struct.unpack_from("<BBH", content, at)
        at += 4
        if format_ != 4:  # the value stands in place of a size
            continue
        if attribute == wanted:
            yield content[at:at + size]
        at += size


def _check_spills(one, limits):
    """Registers that spill need a row in the family's file of limits, with a reason."""
    spills, in_loop = one.report["spills"], one.instructions.get("loop", {}).get("scratch", 0)
    most, most_in_loop, why = 0, 0, "none may"
    for row in limits["spills"]:
        pattern = next((pattern for pattern in row["most"] if fnmatch.fnmatch(one.functional, pattern)), None)
        if pattern and fnmatch.fnmatch(one.report["arch"], row["arch"]):
            most, most_in_loop = row["most"][pattern]
            why = f"{most} may, with {most_in_loop} accesses in the loop, because {row['reason']}"
            break
    if spills <= most and in_loop <= most_in_loop:
        return []
    return [f"{spills} registers spill, with {in_loop} accesses of scratch in the loop; {why}. A smaller config would be right, or a "
            f"row with a reason in the limits of the family"]


def figures(one: CodeObject, arch_row: dict) -> Dict[str, object]:
    """What tools/bench/kernel_table.py shows of a code object."""
    report, counts = one.report, one.instructions.get("counts", {})
    classes = {"matrix": 0, "vector": 0, "scalar": 0, "local": 0, "global": 0, "scratch": 0}
    for name, count in counts.items():
        if _MATRIX.match(name):
            kind = "matrix"
        elif re.match(r"scratch_|buffer_(?:load|store)", name):  # gfx90a reaches its scratch through a buffer
            kind = "scratch"
        else:
            kind = {"v": "vector", "s": "scalar", "ds": "local"}.get(name.split("_")[0], "global")
        classes[kind] += count
    return {
        "functional": one.functional,
        **{name: report[name] for name in ("kernel", "arch", "registers", "spills", "shared", "threads", "size")},
        "axes": report["functional"],
        "waves": waves_of(report, arch_row) if report["vendor"] == "amd" else None,
        "instructions": classes,
        "loop": one.instructions.get("loop"),
    }
