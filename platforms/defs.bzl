"""Constraints, platforms and generated tables, all made from the arch table."""

load("@bazel_skylib//rules:write_file.bzl", "write_file")
load("@rules_cc//cc:defs.bzl", "cc_library")
load(":archs.bzl", "ARCHS", "FAMILIES", "GPUS")

def _distinct(values):
    return {value: None for value in values}.keys()

def axis_values(package):
    """The values of one constraint setting: "arch", "gpu", "vendor", "family" or "wave"."""
    return {
        "arch": ARCHS.keys(),
        "family": _distinct([arch["family"] for arch in ARCHS.values()]),
        "gpu": GPUS.keys(),
        "vendor": _distinct([arch["vendor"] for arch in ARCHS.values()]),
        "wave": _distinct([str(arch["wave_size"]) for arch in ARCHS.values()]),
    }[package]

def constraint_values(package):
    """Declares the constraint setting //platforms/<package> and its values; ":none" is the default."""
    native.constraint_setting(
        name = "setting",
        default_constraint_value = ":none",
        visibility = ["//visibility:public"],
    )
    for value in ["none"] + list(axis_values(package)):
        native.constraint_value(
            name = value,
            constraint_setting = ":setting",
            visibility = ["//visibility:public"],
        )

def _platform(name, arch, gpu = "none"):
    fields = ARCHS[arch]
    native.platform(
        name = name,
        constraint_values = [
            # Host code is x86-64 Linux: the only host that the Triton wheel is made for.
            "@platforms//os:linux",
            "@platforms//cpu:x86_64",
            "//platforms/arch:" + arch,
            "//platforms/family:" + fields["family"],
            "//platforms/gpu:" + gpu,
            "//platforms/vendor:" + fields["vendor"],
            "//platforms/wave:%d" % fields["wave_size"],
        ],
        visibility = ["//visibility:public"],
    )

def gpu_platforms():
    """Declares //platforms:<arch> for every arch and //platforms:<arch>_mod<n> for every GPU."""
    for arch in ARCHS:
        _platform(arch, arch)
    for gpu, fields in GPUS.items():
        _platform(gpu, fields["arch"], gpu)

def _row(name, family, fields):
    mods = len([gpu for gpu in GPUS.values() if gpu["arch"] == name])
    return '    {"%s", "%s", "%s", %d, "%s", %d, %d},' % (
        name,
        fields["vendor"],
        family,
        fields["wave_size"],
        fields["level"],
        fields["lds"],
        mods,
    )

def _header():
    rows = [_row(name, arch["family"], arch) for name, arch in ARCHS.items()] + [
        _row(name, family, fields)
        for family, fields in FAMILIES.items()
        for name in fields["others"]
    ]
    return [
        "// Generated from platforms/archs.bzl, which says what each field means.",
        "#ifndef AOTRITON_PLATFORMS_ARCHS_H_",
        "#define AOTRITON_PLATFORMS_ARCHS_H_",
        "",
        "namespace aotriton::platforms {",
        "",
        "struct Arch {",
        "  const char* name;",
        "  const char* vendor;",
        "  const char* family;",
        "  int wave_size;",
        "  const char* level;",
        "  int lds_bytes;",
        "  int mod_count;  // GPUs of this arch in the table; 0: only its family's packs serve it",
        "};",
        "",
        "inline constexpr Arch kArchs[] = {",
    ] + rows + [
        "};",
        "",
        "}  // namespace aotriton::platforms",
        "",
        "#endif  // AOTRITON_PLATFORMS_ARCHS_H_",
        "",
    ]

def arch_tables():
    """Declares :archs_h, the table for C++, and :archs_json, the table for the tools."""
    write_file(
        name = "archs_h_file",
        out = "archs.h",
        content = _header(),
        visibility = ["//visibility:public"],
    )
    cc_library(
        name = "archs_h",
        hdrs = ["archs.h"],
        visibility = ["//visibility:public"],
    )
    write_file(
        name = "archs_json",
        out = "archs.json",
        content = [json.encode_indent({"archs": ARCHS, "families": FAMILIES, "gpus": GPUS}), ""],
        visibility = ["//visibility:public"],
    )
