"""Writes the packs of the dispatch tests: real pack files around the code objects of fake_hip.

    make_test_pack.py OUT...

What a pack holds is told by its path: .../<vendor>-<arch>/flash/attn_fwd.pack is an intact one,
.../<defect>.pack one for gfx942 with that defect.
"""

import pathlib
import sys

from tools.pack.format import ABI, UNBOUNDED, Functional, Pack, Variant, write_pack

AXES = [
    ("dtype", ("fp16", "bf16", "fp32")),
    ("head_dim", ("16", "32", "64", "128")),
    ("causal", ("0", "1")),
    ("layout", ("aligned", "any")),
]
SHORT = 512  # the longest seqlen_q of the first choice


def arguments(dtype, causal, layout):
    pointer = f"*{dtype}"
    result = [("Q", pointer), ("K", pointer), ("V", pointer), ("Out", pointer), ("L", "*fp32"), ("sm_scale", "fp32")]
    for tensor, dims in (("q", "zhm"), ("k", "zhn"), ("v", "zhn"), ("o", "zhm")):
        result += [(f"stride_{tensor}{dim}", "i64") for dim in dims]
    result += [(name, "i32") for name in ("num_head_q", "num_head_k", "seqlen_q", "seqlen_k")]
    if layout == "any":
        result += [("head_dim_qk", "i32"), ("head_dim_vo", "i32")]
    if causal == "1":
        result += [("window_left", "i32"), ("window_right", "i32")]
    return result + [("lse_scale", "fp32"), ("store_lse", "i32"), ("global_scratch", "*i8"), ("profile_scratch", "*i8")]


def variant(arch, values, parameters, block_m, threads):
    """A code object that names what it is: "bf16.64.1.any.m128"."""
    identity = ".".join(values) + f".m{block_m}"
    declared = " ".join(f"{name}:{kind}" for name, kind in parameters)
    code = f"FAKE\n{arch}\n{identity}\nattn_fwd\n{declared}\n\0".encode()
    # On NVIDIA more than the 48 KiB that a kernel gets unasked.
    shared = (1024 if arch.startswith("sm_") else 64) * block_m
    return Variant("attn_fwd", code, threads, shared, {"BLOCK_M": block_m, "BLOCK_N": 32, "num_stages": 1})


def functional(arch, values):
    dtype, _, causal, layout = values
    parameters = arguments(dtype, causal, layout)
    variants = [variant(arch, values, parameters, 64, 128), variant(arch, values, parameters, 128, 256)]
    return Functional(values, parameters, variants, [(SHORT, 0), (UNBOUNDED, 1)])


def is_built(values):
    """Holes: fp32 of 16 has no kernel at all, windowed fp32 of 128 only an aligned one."""
    if values[:2] == ("fp32", "16"):
        return False
    return values != ("fp32", "128", "1", "any")


def intact(vendor, arch):
    choices = [()]
    for _, values in AXES:
        choices = [chosen + (value,) for chosen in choices for value in values]
    meta = {"kernel": "attn_fwd", "family": "flash", "vendor": vendor, "arch": arch, "triton": "test", "abi": ABI}
    return Pack(meta, list(AXES), [functional(arch, values) for values in choices if is_built(values)])


def with_defect(defect):
    pack = intact("amd", "gfx942")
    if defect == "other_abi":
        pack.meta["abi"] = "999"
    elif defect == "other_arch":
        pack.meta["arch"] = "gfx1100"
    elif defect == "unknown_argument":
        for each in pack.functionals:
            each.arguments.append(("sink", "fp32"))
    elif defect == "wrong_type":
        for each in pack.functionals:
            each.arguments = [(name, "i16" if name == "seqlen_q" else kind) for name, kind in each.arguments]
    elif defect == "unknown_axis":
        pack.axes.append(("dropout", ("0",)))
        for each in pack.functionals:
            each.values += ("0",)
    elif defect == "no_block_m":
        for each in pack.functionals:
            for one in each.variants:
                del one.constants["BLOCK_M"]
    elif defect == "no_code":
        for each in pack.functionals:
            for one in each.variants:
                one.code = b"this is no code object\0"
    elif defect == "other_symbol":
        for each in pack.functionals:
            for one in each.variants:
                one.symbol = "attn_bwd"
    else:
        raise SystemExit(f"make_test_pack.py: no defect is called {defect!r}")
    return pack


def main(paths):
    for path in map(pathlib.Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "attn_fwd.pack":
            vendor, _, arch = path.parent.parent.name.partition("-")
            pack = intact(vendor, arch)
        else:
            pack = with_defect(path.stem)
        write_pack(str(path), pack)


if __name__ == "__main__":
    main(sys.argv[1:])
