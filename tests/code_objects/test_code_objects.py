"""What is compiled for each arch: the right machine, the declared arguments, within its limits."""

import glob
import hashlib
import json
import os
import struct

import pytest

from tools.pack.format import Choice, read_pack

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

with open(os.path.join(REPO, "platforms/archs.json")) as file:
    TABLE = json.load(file)

# Those that have packs here; the others of the table are served by these.
TARGETS = {**TABLE["archs"], **{f"{family}-generic": fields for family, fields in TABLE["families"].items()}}
ARCHS = {name: fields for name, fields in TARGETS.items()
         if os.path.isdir(os.path.join(REPO, f"aotriton.images/{fields['vendor']}-{name}"))}

# ELF e_machine; for AMD, the ABI of code object version 5, and of 6 for generic targets, whose own version is in e_flags.
EM_AMDGPU, EM_CUDA = 224, 190
ABI_V5, ABI_V6 = 3, 4
GENERIC_VERSION = 1 << 24

# Registers that a functional may spill. RDNA has 256 and holds its own rows of K and V in them; on sm_90 and
# elsewhere some spill outside the loops. A config that is too large spills thousands.
MOST_SPILLS = {arch: 256 if arch.startswith(("gfx11", "gfx12")) else 96 for arch in ARCHS}

KERNELS = ("attn_fwd", "attn_fwd_persistent", "bwd_dkdv", "bwd_dq", "bwd_fused", "bwd_preprocess", "debug_fill_dropout_rng",
           "debug_simulate_encoded_softmax")

# Those that some archs alone have.
KERNELS_OF = {"sm_90": ("attn_fwd_hopper",)}
KERNELS_OF_SPECIALISED_WARPS = ("attn_fwd_hopper",)

# Arguments that only some functionals take: name -> the axis value that needs it.
ONLY_WITH = {
    "B": ("bias", "1"), "stride_bz": ("bias", "1"), "DB": ("bias", "1"), "has_db": ("bias", "1"),
    "dropout_p": ("dropout", "1"), "philox_seed": ("dropout", "1"), "philox_offset2": ("dropout", "1"),
    "window_left": ("causal", "1"), "window_right": ("causal", "1"),
    "head_dim_qk": ("layout", "any"), "head_dim_vo": ("layout", "any"), "has_bias": ("layout", "any"),
    "has_dropout": ("layout", "any"), "stride_bn": ("layout", "any"),
}


def pack_of(arch, kernel="attn_fwd"):
    return read_pack(os.path.join(REPO, f"aotriton.images/{ARCHS[arch]['vendor']}-{arch}/flash/{kernel}.pack"))


def packs_of(arch):
    return [pack_of(arch, kernel) for kernel in (*KERNELS, *KERNELS_OF.get(arch, ()))]


def reports_of(arch):
    result = []
    for path in glob.glob(os.path.join(REPO, "tests/code_objects/reports/*.json")):
        with open(path) as file:
            report = json.load(file)
        if report["arch"] == arch:
            result.append(report)
    return result


def test_every_arch_of_the_table_is_served():
    for name, arch in TABLE["archs"].items():
        assert {name, arch.get("code_of"), arch["family"] + "-generic"} & set(ARCHS), name


@pytest.mark.parametrize("arch", ARCHS)
def test_a_code_object_is_labelled_with_its_machine(arch):
    for pack in packs_of(arch):
        for functional in pack.functionals:
            for variant in functional.variants:
                assert variant.code[:4] == b"\x7fELF"
                (machine,) = struct.unpack_from("<H", variant.code, 18)
                (flags,) = struct.unpack_from("<I", variant.code, 48)
                if ARCHS[arch]["vendor"] == "amd":
                    is_generic = arch.endswith("-generic")
                    assert machine == EM_AMDGPU and flags & 0xFF == ARCHS[arch]["mach"]
                    assert variant.code[8] == (ABI_V6 if is_generic else ABI_V5)
                    assert flags >> 24 << 24 == (GENERIC_VERSION if is_generic else 0)
                    assert b"amdgcn-amd-amdhsa--" + arch.encode() in variant.code
                else:
                    assert machine == EM_CUDA


@pytest.mark.parametrize("arch", ARCHS)
def test_a_functional_takes_what_it_uses(arch):
    assert len(pack_of(arch).functionals) == 6
    for pack in packs_of(arch):
        names = [name for name, _ in pack.axes]
        for functional in pack.functionals:
            values = dict(zip(names, functional.values))
            types = dict(functional.arguments)
            for argument, (axis, value) in ONLY_WITH.items():
                # The debug kernel has no axis dropout: the mask is all it is about.
                if argument in types and axis in values:
                    assert values[axis] == value, (pack.meta["kernel"], argument)
            if pack.meta["kernel"] == "attn_fwd":
                assert types["Q"] == "*" + values["dtype"] and types["L"] == "*fp32" and types["stride_qz"] == "i64"
                assert all((argument in types) == (values[axis] == value)
                           for argument, (axis, value) in ONLY_WITH.items() if argument not in ("DB", "has_db"))
            assert functional.choices[-1] == Choice(len(functional.variants) - 1)
            assert [name for name, _ in functional.arguments[-2:]] == ["global_scratch", "profile_scratch"]


@pytest.mark.parametrize("arch", ARCHS)
def test_a_code_object_fits_its_arch(arch):
    reports = reports_of(arch)
    assert len(reports) == sum(len(functional.variants) for pack in packs_of(arch) for functional in pack.functionals)
    for report in reports:
        if report["kernel"] not in KERNELS_OF_SPECIALISED_WARPS:
            assert report["threads"] == report["config"]["num_warps"] * ARCHS[arch]["wave_size"]
        assert report["shared"] <= ARCHS[arch]["lds"]
        assert report["spills"] <= MOST_SPILLS[arch], (report["kernel"], report["config"])


@pytest.mark.parametrize("arch", ARCHS)
def test_the_manifest_says_what_the_packs_hold(arch):
    folder = os.path.join(REPO, f"aotriton.images/{ARCHS[arch]['vendor']}-{arch}")
    with open(f"{folder}/manifest.json") as file:
        manifest = json.load(file)
    assert manifest["arch"] == arch and manifest["vendor"] == ARCHS[arch]["vendor"]
    assert manifest["settings"]["profile"] == "core" and "bwd_dq.bf16.d64.causal" in manifest["settings"]["only"]
    assert sorted(manifest["packs"]) == sorted(f"flash/{kernel}.pack" for kernel in (*KERNELS, *KERNELS_OF.get(arch, ())))
    for path, facts in manifest["packs"].items():
        with open(f"{folder}/{path}", "rb") as file:
            content = file.read()
        pack = pack_of(arch, facts["kernel"])
        assert (facts["bytes"], facts["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        assert (facts["family"], manifest["triton"], manifest["version"]) == (pack.meta["family"], pack.meta["triton"], pack.meta["version"])
        assert len(facts["functionals"]) == len(pack.functionals)
        # Their names are their values: labels of 0, and of "aligned", are left out.
        for functional in pack.functionals:
            values = dict(zip([name for name, _ in pack.axes], functional.values))
            words = [values.pop("dtype"), *([f"d{values.pop('head_dim')}"] if "head_dim" in values else [])]
            words += [name for name, value in values.items() if value == "1"] + (["any"] if values.get("layout") == "any" else [])
            assert ".".join([facts["kernel"], *words]) in facts["functionals"]
