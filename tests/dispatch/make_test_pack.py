"""Writes the packs of the dispatch tests: real pack files around the code objects of fake_hip.

    make_test_pack.py OUT...

What a pack holds is told by its path: .../<vendor>-<arch>/flash/<kernel>.pack is an intact one,
.../tuned.pack one of attn_fwd for gfx942 with a long tuning table, .../<defect>.pack one with that
defect.
"""

import pathlib
import sys

from tools.pack.format import ABI, Choice, Functional, Pack, Variant, write_pack

DTYPES = ("dtype", ("fp16", "bf16", "fp32"))
LAYOUTS = ("layout", ("aligned", "any"))
FLAGS = {name: (name, ("0", "1")) for name in ("causal", "bias", "dropout")}


def head_dims(*tiles):
    return ("head_dim", tuple(map(str, tiles)))


def attention_axes(*tiles):
    return [DTYPES, head_dims(*tiles), FLAGS["causal"], LAYOUTS, FLAGS["bias"], FLAGS["dropout"]]


AXES = {
    "attn_fwd": attention_axes(16, 32, 64, 128),
    "attn_fwd_hopper": [("dtype", ("fp16", "bf16")), head_dims(64, 128), FLAGS["causal"]],
    "attn_fwd_persistent": [("dtype", ("fp16", "bf16")), head_dims(16, 64, 128)],
    "bwd_preprocess": [DTYPES, head_dims(16, 32, 64, 128), LAYOUTS],
    "bwd_dkdv": attention_axes(16, 32, 64, 128),
    "bwd_dq": attention_axes(16, 32, 64, 128),
    "bwd_fused": attention_axes(16, 32, 64),
    "debug_simulate_encoded_softmax": [DTYPES],
    "debug_fill_dropout_rng": [("dtype", ("fp32", "i32"))],
}
SHORT = 512  # the longest seqlen_q of the first choice


def strides(tensor, dims):
    return [(f"stride_{tensor}{dim}", "i64") for dim in dims]


def several(kind, *names):
    return [(name, kind) for name in names]


def arguments(kernel, values):
    """The parameters of a kernel, without those that a functional has compiled in."""
    pointer = f"*{values['dtype']}"
    is_any = values.get("layout") == "any"
    has_bias, has_dropout = values.get("bias") == "1", values.get("dropout") == "1"
    if kernel == "debug_fill_dropout_rng":
        return (
            [("R", pointer)] + strides("r", "zhmn") + several("i32", "num_head_q", "max_seqlen_q", "max_seqlen_k")
            + several("i64", "philox_seed", "philox_offset") + several("*i8", "global_scratch", "profile_scratch"))
    if kernel == "debug_simulate_encoded_softmax":
        return (
            [("R", pointer)] + strides("r", "zhmn") + [("dropout_p", "fp32")]
            + several("i32", "num_head_q", "max_seqlen_q", "max_seqlen_k")
            + several("*i64", "philox_seed", "philox_offset1") + [("philox_offset2", "i64")]
            + several("*i8", "global_scratch", "profile_scratch"))
    if kernel == "bwd_preprocess":
        return (
            several(pointer, "Out", "DO") + [("Delta", "*fp32")] + strides("o", "zhm") + strides("do", "zhm") + strides("l", "zh")
            + several("i32", "num_head_q", "max_seqlen_q") + several("*i32", "cu_seqlens_q", "seq_starts_q")
            + several("i32", "varlen_type", *(["head_dim_vo"] if is_any else []), "lse_compact")
            + several("*i8", "global_scratch", "profile_scratch"))

    if kernel == "attn_fwd_hopper":
        unread = [("unread", "i32")] * 4 + [("unread", "i64")] * 4
        maps = [("map_Q", "tensor_map<64>"), ("map_K", "tensor_map<BLOCK_N>"), ("map_V", "tensor_map<BLOCK_N>"), ("map_Out", "tensor_map<64>")]
        return (
            [one for a_map in maps for one in [a_map, *unread]] + [("Out", pointer), ("L", "*fp32"), ("sm_scale", "fp32")]
            + strides("o", "zhm") + strides("l", "zh")
            + several("i32", "num_sequences", "num_head_q", "num_head_k", "max_seqlen_q", "max_seqlen_k")
            + several("*i32", "cu_seqlens_q", "cu_seqlens_k", "seq_starts_q", "seq_starts_k")
            + several("i32", "varlen_type", "head_dim_vo", *(["window_left", "window_right"] if values["causal"] == "1" else []))
            + [("lse_scale", "fp32")] + several("i32", "store_lse", "lse_compact", "num_programs") + [("tile_counter", "*i32")]
            + several("*i8", "global_scratch", "profile_scratch"))
    if kernel == "attn_fwd_persistent":
        tensors = ["q", "k", "v", "o"]
        return (
            several(pointer, "Q", "K", "V", "Out") + [("L", "*fp32"), ("sm_scale", "fp32")]
            + [one for tensor in tensors for one in strides(tensor, "zhn" if tensor in "kv" else "zhm")] + strides("l", "zh")
            + several("i32", "num_sequences", "num_head_q", "num_head_k", "max_seqlen_q", "max_seqlen_k")
            + several("*i32", "cu_seqlens_q", "cu_seqlens_k", "seq_starts_q", "seq_starts_k")
            + several("i32", "varlen_type", "window_left", "window_right") + [("lse_scale", "fp32")]
            + several("i32", "store_lse", "lse_compact")
            + [("num_programs", "i64" if pointer == "*fp16" else "i32"), ("persistent_counter", "*i32")]
            + several("*i8", "global_scratch", "profile_scratch"))

    # Tensors and their strides, in the order of the launch.
    tensors = {
        "attn_fwd": ["q", "k", "v", "b", "o"],
        "bwd_dkdv": ["q", "k", "v", "b", "do", "dk", "dv"],
        "bwd_dq": ["q", "k", "v", "b", "do", "dq", "db"],
        "bwd_fused": ["q", "k", "v", "b", "o", "do", "dq", "dk", "dv", "db"],
    }[kernel]
    if not has_bias:
        tensors = [tensor for tensor in tensors if tensor not in ("b", "db")]
    result = several(pointer, *("Out" if tensor == "o" else tensor.upper() for tensor in tensors)) + [("L", "*fp32")]
    if kernel in ("bwd_dkdv", "bwd_dq"):
        result.append(("Delta", "*fp32"))
    result.append(("sm_scale", "fp32"))
    for tensor in tensors:
        rows = "n" if tensor[-1] in "kv" else "m"
        dims = "zhmn" if tensor in ("b", "db") and is_any else "zh" + rows  # an aligned stride_bn is 1
        result += strides(tensor, dims)
    result += strides("l", "zh") + several("i32", "num_head_q", "num_head_k", "max_seqlen_q", "max_seqlen_k")
    result += several("*i32", "cu_seqlens_q", "cu_seqlens_k", "seq_starts_q", "seq_starts_k") + [("varlen_type", "i32")]
    if is_any:
        result += several("i32", "head_dim_qk", "head_dim_vo")
    if values["causal"] == "1":
        result += several("i32", "window_left", "window_right")
    if is_any:
        result += several("i32", "has_bias", "has_dropout")
    if has_bias and kernel in ("bwd_dq", "bwd_fused"):
        result.append(("has_db", "i32"))
    if has_dropout:
        result += [("dropout_p", "fp32")] + several("*i64", "philox_seed", "philox_offset1") + [("philox_offset2", "i64")]
        if kernel == "attn_fwd":
            result += several("*i64", "philox_seed_output", "philox_offset_output")
    result.append(("lse_scale", "fp32"))
    if kernel == "attn_fwd":
        result.append(("store_lse", "i32"))
    return result + [("lse_compact", "i32")] + several("*i8", "global_scratch", "profile_scratch")


def variant(kernel, arch, values, parameters, block_m, threads):
    """A code object that names what it is: "bf16.64.1.any.1.1.m128"."""
    identity = ".".join((*values.values(), f"m{block_m}"))
    declared = " ".join(f"{name}:{kind}" for name, kind in parameters)
    code = f"FAKE\n{arch}\n{identity}\n{kernel}\n{declared}\n\0".encode()
    # On NVIDIA more than the 48 KiB that a kernel gets unasked.
    shared = (1024 if arch.startswith("sm_") else 64) * block_m
    return Variant(kernel, code, threads, shared, {"BLOCK_M": block_m, "BLOCK_N": 32, "num_stages": 1})


def functional(kernel, arch, values):
    parameters = arguments(kernel, values)
    variants = [variant(kernel, arch, values, parameters, 64, 128), variant(kernel, arch, values, parameters, 128, 256)]
    return Functional(tuple(values.values()), parameters, variants, [Choice(0, max_seqlen_q=SHORT), Choice(1)])


def is_built(kernel, values):
    if values.get("layout") == "any":
        # Compiled once, for every call. Holes: fp32 of 16 and 128.
        is_hole = values["dtype"] == "fp32" and values["head_dim"] in ("16", "128")
        return all(values.get(flag, "1") == "1" for flag in FLAGS) and not is_hole
    if values["dtype"] == "fp32" and "layout" in values:
        # Holes: fp32 of 128 has aligned kernels of attn_fwd only, other fp32 none.
        return kernel == "attn_fwd" and values["head_dim"] == "128" and values["bias"] == values["dropout"] == "0"
    # Hole: no aligned kernel for fp16 of 32 with both bias and dropout.
    return not (values.get("head_dim") == "32" and values["dtype"] == "fp16" and values.get("bias") == values.get("dropout") == "1")


def intact(kernel, vendor, arch):
    axes = AXES[kernel]
    choices = [{}]
    for name, values in axes:
        choices = [{**chosen, name: value} for chosen in choices for value in values]
    meta = {"kernel": kernel, "family": "flash", "vendor": vendor, "arch": arch, "triton": "test", "abi": ABI, "version": "0.0.1",
            "settings": "--//:profile=test"}
    return Pack(meta, list(axes), [functional(kernel, arch, values) for values in choices if is_built(kernel, values)])


TUNED = [
    Choice(1, max_seqlen_q=64, max_seqlen_k=128),
    Choice(0, max_seqlen_q=64),
    Choice(1, min_fill=100),
    Choice(0, max_seqlen_k=256, min_fill=50),
    Choice(1),
]


def with_defect(defect):
    pack = intact("attn_fwd", "amd", "gfx942")
    if defect == "tuned":
        for each in pack.functionals:
            each.choices = TUNED
    elif defect == "other_abi":
        pack.meta["abi"] = "999"
    elif defect == "other_arch":
        pack.meta["arch"] = "gfx1100"
    elif defect == "other_kernel":
        pack.meta["kernel"] = "bwd_dq"
    elif defect == "unknown_argument":
        for each in pack.functionals:
            each.arguments.append(("sink", "fp32"))
    elif defect == "argument_of_another_op":
        for each in pack.functionals:
            each.arguments.append(("DQ", "*fp16"))
    elif defect == "wrong_type":
        for each in pack.functionals:
            each.arguments = [(name, "i16" if name == "max_seqlen_q" else kind) for name, kind in each.arguments]
    elif defect == "unknown_axis":
        pack.axes.append(("sink", ("0",)))
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
        if path.stem in AXES:
            vendor, _, arch = path.parent.parent.name.partition("-")
            pack = intact(path.stem, vendor, arch)
        else:
            pack = with_defect(path.stem)
        write_pack(str(path), pack)


if __name__ == "__main__":
    main(sys.argv[1:])
