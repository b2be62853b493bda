"""Each gate, on real code objects that were made to violate it: what it says. The code objects as they are pass."""

import copy
import functools
import glob
import json
import os
import re
import struct
import subprocess
import sys

import pytest

from tools.code_object.check import read_instructions
from tools.code_object.elf import Elf
from tools.code_object.gates import CodeObject, check, waves_of
from tools.pack.format import read_pack

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INSTRUCTIONS = os.path.join(REPO, "tools/code_object/instructions")
LIMITS = os.path.join(REPO, "kernels/flash/limits.json")

with open(os.path.join(REPO, "platforms/archs.json")) as file:
    TABLE = json.load(file)
ROWS = {**TABLE["archs"], **{f"{family}-generic": row for family, row in TABLE["families"].items()}}
with open(LIMITS) as file:
    LIMITS_OF_FLASH = json.load(file)

ARCHS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx11-generic", "gfx1201", "sm_90")
CAUSAL = "bf16.d128.causal"


def label(report):
    """The name of a functional's target behind the kernel's: bf16.d128.causal."""
    words = []
    for axis, _ in report["axes"]:
        value = report["functional"][axis]
        words.append({"head_dim": f"d{value}", "layout": "any" if value == "any" else ""}.get(
            axis, value if axis == "dtype" else axis if value == "1" else ""))
    return ".".join(filter(None, words))


@functools.cache
def reports():
    result = []
    for path in glob.glob(os.path.join(REPO, "tests/code_objects/reports/*.json")):
        with open(path) as file:
            result.append(json.load(file))
    return result


@functools.cache
def code_objects(arch):
    """{kernel.label: (code, report)} of what the packs hold."""
    by_hash = {report["sha256"][:16]: report for report in reports() if report["arch"] == arch}
    result = {}
    for path in glob.glob(os.path.join(REPO, f"aotriton.images/{ROWS[arch]['vendor']}-{arch}/flash/*.pack")):
        for functional in read_pack(path).functionals:
            for variant in functional.variants:
                report = by_hash[variant.hash]
                result[f"{report['kernel']}.{label(report)}"] = variant.code, report
    # Of a functional with several configs the last one stands for all.
    assert len(result) == len({(one["kernel"], label(one)) for one in reports() if one["arch"] == arch}) > 0
    return result


@pytest.fixture
def problems(tmp_path):
    """What the gates say of a functional's code object, or of one that was changed."""
    def run(arch, functional, change=None, change_report=None, limits=LIMITS_OF_FLASH):
        code, report = code_objects(arch)[functional]
        code, report = bytearray(code), copy.deepcopy(report)
        if change:
            change(code)
        if change_report:
            change_report(report)
        path = str(tmp_path / "code")
        with open(path, "wb") as file:
            file.write(code)
        instructions = read_instructions(INSTRUCTIONS, [path])[path] if report["vendor"] == "amd" else {}
        return check(CodeObject(functional, path, bytes(code), report, instructions), ROWS[arch], limits)
    return run


def replace(old, new):
    """A change of the first `old` of the metadata, to as many bytes."""
    def change(code):
        assert len(old) == len(new)
        at = code.index(old)
        code[at:at + len(old)] = new
    return change


def patch(layout, offset, value):
    return lambda code: struct.pack_into(layout, code, offset, value)


def descriptor(layout, offset, edit):
    """A change of a field of the kernel descriptor."""
    def change(code):
        elf = Elf(bytes(code))
        (rodata,) = [section for section in elf.sections if section.name == ".rodata"]
        (value,) = struct.unpack_from(layout, code, rodata.offset + offset)
        struct.pack_into(layout, code, rodata.offset + offset, edit(value))
    return change


def words(condition, new, most=None):
    """A change of the 64-bit instructions of gfx942 whose two words meet the condition."""
    def change(code):
        (text,) = [section for section in Elf(bytes(code)).sections if section.name == ".text"]
        changed = 0
        for at in range(text.offset, text.offset + text.size - 4, 4):
            pair = struct.unpack_from("<II", code, at)
            if condition(*pair) and changed != most:
                struct.pack_into("<II", code, at, *new(*pair))
                changed += 1
        assert changed
    return change


def is_matrix(first, _):
    return first >> 23 == 0x1A7 and 64 <= (first >> 16 & 0x7F) <= 97


def is_wide_load(first, second):
    return first & 0xFFFFE000 == 0xDC5C8000 and second >> 16 & 0x7F == 0x7F  # global_load_dwordx4 without a scalar base


NOPS = (0xBF800000, 0xBF800000)


@pytest.mark.parametrize("arch", ARCHS)
def test_what_is_shipped_passes(problems, arch):
    for functional in code_objects(arch):
        assert problems(arch, functional) == []


@pytest.mark.parametrize("change, text", [
    (patch("<H", 18, 62), "the ELF machine is 62; it must be 224"),
    (patch("<B", 8, 2), r"the ELF ABI version \(code object version 5\) is 2; it must be 3"),
    (patch("<I", 48, 0x54F), "e_flags, the arch and its modes, is 0x54f; it must be 0x54c"),
    (patch("<I", 48, 0x74C), "is 0x74c; it must be 0x54c"),  # XNACK on
    (replace(b"--gfx942", b"--gfx950"), "the target is 950; it must be 942"),
    (replace(b".offset\x08", b".offset\x0c"), r"argument 1 \(K\) lies at \(offset, size\) \[\(12, 8\)\]; the dispatcher passes \[\(8, 8\)\]"),
    (replace(b".size\x08", b".size\x04"), r"argument 0 \(Q\) lies at \(offset, size\) \[\(0, 4\)\]; the dispatcher passes \[\(0, 8\)\]"),
    (replace(b"\xadglobal_buffer", b"\xadhidden_buffer"), "the kind of argument Q is hidden_buffer; it must be global_buffer"),
    (replace(b".kernarg_segment_size\xcc\xf8", b".kernarg_segment_size\xcc\xf0"), "the size of all arguments is 240; it must be 248"),
    (descriptor("<I", 8, lambda size: size - 8), "the size of all arguments in the descriptor is 240; it must be 248"),
    (replace(b".wavefront_size\x40", b".wavefront_size\x20"), "the wave size is 32; it must be 64"),
    (descriptor("<H", 56, lambda properties: properties | 1 << 10), "the wave size in the descriptor is 32; it must be 64"),
    (replace(b".max_flat_workgroup_size\xcd\x01", b".max_flat_workgroup_size\xcd\x02"), "the most threads of a work group is 512; it must be 256"),
    (replace(b".group_segment_fixed_size\x00", b".group_segment_fixed_size\x10"), "static local memory is 16; it must be 0"),
    (replace(b".vgpr_spill_count\x00", b".vgpr_spill_count\x05"), "spills in the report is 0; it must be 5"),
    (descriptor("<I", 48, lambda rsrc1: rsrc1 & ~(3 << 16)), "the mode of floating-point numbers is 0xc0; it must be 0xf0"),
    (replace(b"attn_fwd.kd\0", b"attn_fwd.xd\0"), r"\.dynsym has no symbol attn_fwd.kd; loaders look the kernel up there"),
    (lambda code: code.__setitem__(slice(0, 4), b"text"), "it is no code object: it starts with b'text"),
    (lambda code: code.__delitem__(slice(100, None)), "it is no code object"),
    (lambda code: words(is_matrix, lambda *_: (0xD3FF0000, 0), most=1)(code), "its instructions cannot be read: .*d3ff0000"),
])
def test_a_damaged_code_object(problems, change, text):
    found = problems("gfx942", "attn_fwd." + CAUSAL, change)
    assert any(re.search(text, problem) for problem in found), found


def test_a_kernel_that_only_some_loaders_find(problems):
    def change(code):  # ROCr looks in .symtab
        at = code.rindex(b"attn_fwd.kd\0")
        code[at:at + 8] = b"renamed_"
    (found,) = problems("gfx942", "attn_fwd." + CAUSAL, change)
    assert ".symtab has no symbol attn_fwd.kd" in found


def test_a_generic_code_object_is_of_version_6(problems):
    (found,) = problems("gfx11-generic", "attn_fwd." + CAUSAL, patch("<B", 8, 3))
    assert found == "the ELF ABI version (code object version 6) is 3; it must be 4"
    found = problems("gfx11-generic", "attn_fwd." + CAUSAL, patch("<I", 48, 0x54))  # no version of its own
    assert "e_flags, the arch and its modes, is 0x54; it must be 0x1000054" in found


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_what_the_dispatcher_would_pass_wrongly(problems, arch):
    def swap(report):
        arguments = report["arguments"]
        arguments[4], arguments[5] = arguments[5], arguments[4]  # L, sm_scale
    (found,) = [one for one in problems(arch, "attn_fwd." + CAUSAL, change_report=swap) if one.startswith("argument 4")]
    assert "the dispatcher passes" in found

    def no_scratch(report):
        del report["arguments"][-1]
    assert any("the dispatcher passes []" in one for one in problems(arch, "attn_fwd." + CAUSAL, change_report=no_scratch))

    found = problems(arch, "attn_fwd." + CAUSAL, change_report=lambda report: report.update(threads=64))
    assert any(one.startswith("the threads that the dispatcher starts is 64; it must be ") for one in found)
    found = problems(arch, "attn_fwd." + CAUSAL, change_report=lambda report: report.update(shared=300_000))
    assert any("memory is 300000 bytes" in one for one in found)


def test_waves_that_do_not_fit(problems):
    report = dict(code_objects("gfx942")["attn_fwd." + CAUSAL][1])
    # Two waves on a SIMD have 256 registers each; 4 SIMDs hold 8 waves of that, which are 512 threads.
    assert waves_of({**report, "registers": 256, "threads": 512, "shared": 0}, ROWS["gfx942"]) == 2
    assert waves_of({**report, "registers": 257, "threads": 512, "shared": 0}, ROWS["gfx942"]) == 0
    # Local memory for two work groups, of one wave a SIMD each.
    assert waves_of({**report, "registers": 128, "threads": 256, "shared": 32768}, ROWS["gfx942"]) == 2
    on_rdna = dict(code_objects("gfx1100")["attn_fwd." + CAUSAL][1], registers=256, threads=512, shared=0)
    assert waves_of(on_rdna, ROWS["gfx1100"]) == 4
    assert waves_of(on_rdna, ROWS["gfx1100"], wgp_mode=False) == 0

    found = problems("gfx942", "attn_fwd." + CAUSAL, change_report=lambda report: report.update(registers=512, threads=512))
    assert any("512 registers" in one and "do not fit" in one for one in found)


@pytest.mark.parametrize("arch", ["gfx942", "sm_90"])
def test_spills_need_a_reason(problems, arch):
    def spill(report):
        report["spills"] = 5
    limits = {**LIMITS_OF_FLASH, "spills": [{"arch": "gfx9*", "reason": "of a test", "most": {"attn_fwd.*": [4, 0]}}]}
    found = [one for one in problems(arch, "attn_fwd." + CAUSAL, change_report=spill, limits=limits) if "registers spill" in one]
    why = "4 may, with 0 accesses in the loop, because of a test" if arch == "gfx942" else "none may"
    assert len(found) == 1 and found[0].startswith(f"5 registers spill, with 0 accesses of scratch in the loop; {why}.")
    for row in limits["spills"]:
        row.update(arch="*", most={"attn_fwd.bf16.d128*": [5, 0]})
    assert not [one for one in problems(arch, "attn_fwd." + CAUSAL, change_report=spill, limits=limits) if "registers spill" in one]


def test_matrix_instructions_of_another_type(problems):
    found = problems("gfx942", "attn_fwd.fp16.d64", change_report=lambda report: report["functional"].update(dtype="bf16"))
    assert any("v_mfma_f32_32x32x8_f16; matrix instructions of bf16 must be of bf16" in one for one in found), found
    found = problems("gfx1201", "attn_fwd.fp16.d64", change_report=lambda report: report["functional"].update(dtype="bf16"))
    assert any("v_wmma_f32_16x16x16_f16; matrix instructions of bf16 must be of bf16" in one for one in found), found


def test_matrix_instructions_where_none_belong(problems):
    limits = {**LIMITS_OF_FLASH, "products": {}}
    assert any("must be none: the kernel multiplies no matrices" in one for one in problems("gfx942", "attn_fwd." + CAUSAL, limits=limits))


def test_products_that_are_not_matrix_instructions(problems):
    functional = "attn_fwd.bf16.d80.causal.bias.dropout.any"  # has one loop
    code = code_objects("gfx942")[functional][0]
    count = sum(is_matrix(*struct.unpack_from("<II", code, at)) for at in range(0, len(code) - 4, 4))
    assert problems("gfx942", functional, words(is_matrix, lambda *_: NOPS, most=count // 4)) == []
    (found,) = problems("gfx942", functional, words(is_matrix, lambda *_: NOPS, most=count // 2))
    assert found.startswith("its matrix instructions add ") and "2 products of a tile of " in found


def test_xf32(problems):
    functional = "attn_fwd.fp32.d32.causal.bias.dropout.any"
    as_xf32 = words(is_matrix, lambda first, second: (first & ~(0x7F << 16) | 63 << 16, second), most=3)
    found = problems("gfx942", functional, as_xf32)
    assert any(one.startswith("it has 3 v_mfma_f32_32x32x4_xf32, which round fp32 to 10 bits") for one in found), found


def test_wait_states(problems):
    without_waiting = words(lambda first, _: first & 0xFFFFFF00 == NOPS[0] and first & 0xFF, lambda _, second: (NOPS[0], second))
    (problem,) = problems("gfx942", "attn_fwd.bf16.d128.causal", without_waiting)
    assert re.fullmatch(r"the compiler made a mistake: v_\w+ .* at 0x[0-9a-f]+ \d+ wait states after it, and needs \d+; another config may do without", problem)


def test_addresses_of_32_bits(problems):
    with_a_base = words(is_wide_load, lambda first, second: (first, second & ~(0x7F << 16) | 2 << 16), most=2)
    (found,) = problems("gfx942", "attn_fwd." + CAUSAL, with_a_base)
    assert found == ("it has 2 global_load_dwordx4 with an offset of 32 bits; tensors may be larger than 4 GiB and need addresses of 64")
    of_a_buffer = words(is_wide_load, lambda first, second: (0xE0000000 | 0x17 << 18 | 1 << 12, 0x80010000 | second & 0xFF), most=1)
    (found,) = problems("gfx942", "attn_fwd." + CAUSAL, of_a_buffer)
    assert "it has 1 buffer_load_dwordx4 with an offset of 32 bits" in found


def test_cubins(problems):
    functional = "attn_fwd." + CAUSAL
    assert problems("sm_90", functional, patch("<H", 18, 224))[0] == "the ELF machine is 224; it must be 190"
    assert "it must name sm_90, 0x5a" in problems("sm_90", functional, patch("<I", 48, 0x500550))[0]
    found = problems("sm_90", functional, change_report=lambda report: report.update(registers=300))
    assert any("300 registers of 128 threads; a block can have 65536 in all, a thread 255" in one for one in found)
    found = problems("sm_90", functional, change_report=lambda report: report.update(symbol="attn"))
    assert found == ["it is no code object: it has no section .nv.info.attn"]


def test_specialised_warps_and_tensor_maps(problems):
    functional = "attn_fwd_hopper." + CAUSAL
    assert problems("sm_90", functional) == []
    found = problems("sm_90", functional, change_report=lambda report: report.update(threads=128))
    assert found == ["the threads that the dispatcher starts is 128; it must be 384"]

    def no_map(report):
        report["arguments"][0][1] = "i64"
    (found,) = problems("sm_90", functional, change_report=no_map)
    assert found == "argument 0 is at (number, offset, size) [(0, 48, 128)]; the dispatcher passes [(0, 0, 8)]"


def test_the_program_names_all_that_is_wrong(tmp_path):
    """The action's program: exit status, message, and the figures where nothing is wrong."""
    paths = []
    for functional in ("attn_fwd." + CAUSAL, "attn_fwd.fp16.d64"):
        code, report = code_objects("gfx942")[functional]
        folder = tmp_path / functional
        folder.mkdir()
        (folder / "config.hsaco").write_bytes(code)
        (folder / "config.json").write_text(json.dumps(report))
        paths.append(str(folder / "config.json"))

    def run():
        return subprocess.run(
            [sys.executable, "-m", "tools.code_object.check", "--archs", os.path.join(REPO, "platforms/archs.json"), "--limits", LIMITS,
             "--instructions", INSTRUCTIONS, "--out", str(tmp_path / "out.json"), *paths], cwd=REPO, text=True, capture_output=True)

    assert run().returncode == 0
    rows = json.loads((tmp_path / "out.json").read_text())
    assert [row["functional"] for row in rows] == ["attn_fwd." + CAUSAL, "attn_fwd.fp16.d64"]
    assert rows[0]["waves"] == 2 and rows[0]["instructions"]["matrix"] > rows[0]["loop"]["matrix"] > 0
    assert sum(rows[0]["instructions"].values()) > 2 * rows[0]["loop"]["instructions"] and rows[0]["instructions"]["scratch"] == 0

    os.remove(tmp_path / "out.json")
    code = bytearray((tmp_path / "attn_fwd.fp16.d64/config.hsaco").read_bytes())
    code[8] = 2
    (tmp_path / "attn_fwd.fp16.d64/config.hsaco").write_bytes(code)
    result = run()
    assert result.returncode == 1 and not (tmp_path / "out.json").exists()
    assert result.stderr.count("check: ") == 1
    assert "attn_fwd.fp16.d64 for gfx942, BLOCK_M=" in result.stderr and "config.hsaco: the ELF ABI version" in result.stderr
