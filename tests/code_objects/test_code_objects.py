"""What is compiled for each arch: the right machine, the declared arguments, within its limits."""

import glob
import json
import os
import struct

import pytest

from tools.pack.format import UNBOUNDED, read_pack

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

with open(os.path.join(REPO, "platforms/archs.json")) as table:
    ARCHS = json.load(table)["archs"]

# ELF e_machine and, for AMD, the low byte of e_flags (LLVM, AMDGPUUsage, "EF_AMDGPU_MACH").
EM_AMDGPU, EM_CUDA = 224, 190
MACH = {"gfx90a": 0x3F, "gfx942": 0x4C, "gfx950": 0x4F, "gfx1100": 0x41, "gfx1201": 0x4E}

STRIDES = [f"stride_{tensor}" for tensor in ("qz", "qh", "qm", "kz", "kh", "kn", "vz", "vh", "vn", "oz", "oh", "om")]
ALWAYS = ["Q", "K", "V", "Out", "L", "sm_scale"] + STRIDES + ["num_head_q", "num_head_k", "seqlen_q", "seqlen_k"]


def pack_of(arch):
    return read_pack(os.path.join(REPO, f"aotriton.images/{ARCHS[arch]['vendor']}-{arch}/flash/attn_fwd.pack"))


def reports_of(arch):
    result = []
    for path in glob.glob(os.path.join(REPO, "tests/code_objects/reports/*.json")):
        with open(path) as file:
            report = json.load(file)
        if report["arch"] == arch:
            result.append(report)
    return result


@pytest.mark.parametrize("arch", ARCHS)
def test_a_code_object_is_labelled_with_its_machine(arch):
    for functional in pack_of(arch).functionals:
        for variant in functional.variants:
            assert variant.code[:4] == b"\x7fELF"
            (machine,) = struct.unpack_from("<H", variant.code, 18)
            (flags,) = struct.unpack_from("<I", variant.code, 48)
            if ARCHS[arch]["vendor"] == "amd":
                assert machine == EM_AMDGPU and flags & 0xFF == MACH[arch]
            else:
                assert machine == EM_CUDA


@pytest.mark.parametrize("arch", ARCHS)
def test_a_functional_takes_what_it_uses(arch):
    functionals = pack_of(arch).functionals
    assert len(functionals) == 4
    for functional in functionals:
        _, _, causal, layout = functional.values
        expected = list(ALWAYS)
        if layout == "any":
            expected += ["head_dim_qk", "head_dim_vo"]
        if causal == "1":
            expected += ["window_left", "window_right"]
        expected += ["lse_scale", "store_lse", "global_scratch", "profile_scratch"]
        assert [name for name, _ in functional.arguments] == expected
        types = dict(functional.arguments)
        assert types["Q"] == "*" + functional.values[0] and types["L"] == "*fp32"
        assert all(types[name] == "i64" for name in STRIDES)
        assert functional.choices[-1][0] == UNBOUNDED


@pytest.mark.parametrize("arch", ARCHS)
def test_a_code_object_fits_its_arch(arch):
    reports = reports_of(arch)
    assert len(reports) == sum(len(functional.variants) for functional in pack_of(arch).functionals)
    for report in reports:
        assert report["threads"] == report["config"]["num_warps"] * ARCHS[arch]["wave_size"]
        assert report["shared"] <= ARCHS[arch]["lds"]
        # A handful outside the loops costs nothing; a config that is too large spills hundreds.
        assert report["spills"] <= 8, report["config"]
