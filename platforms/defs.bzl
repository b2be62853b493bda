"""Constraints, platforms and generated tables, all made from the arch table."""

load("@bazel_skylib//rules:write_file.bzl", "write_file")
load("@rules_cc//cc:defs.bzl", "cc_library")
load(":archs.bzl", "ARCHS", "FAMILIES")

# What code is compiled for: an arch, or a family. Its name stands in the pack's path.
TARGETS = dict(ARCHS, **{
    family + "-generic": dict(fields, family = family)
    for family, fields in FAMILIES.items()
})

GPUS = {
    "%s_mod%d" % (arch, mod): arch
    for arch, fields in ARCHS.items()
    for mod in range(len(fields["gpus"]))
}

def _distinct(values):
    return {value: None for value in values}.keys()

def axis_values(package):
    """The values of one constraint setting: "arch", "gpu", "vendor", "family" or "wave"."""
    return {
        "arch": TARGETS.keys(),
        "family": _distinct([target["family"] for target in TARGETS.values()]),
        "gpu": GPUS.keys(),
        "vendor": _distinct([target["vendor"] for target in TARGETS.values()]),
        "wave": _distinct([str(target["wave_size"]) for target in TARGETS.values()]),
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

def _platform(name, target, gpu = "none"):
    fields = TARGETS[target]
    native.platform(
        name = name,
        constraint_values = [
            # Host code is x86-64 Linux: the only host that the Triton wheel is made for.
            "@platforms//os:linux",
            "@platforms//cpu:x86_64",
            "//platforms/arch:" + target,
            "//platforms/family:" + fields["family"],
            "//platforms/gpu:" + gpu,
            "//platforms/vendor:" + fields["vendor"],
            "//platforms/wave:%d" % fields["wave_size"],
        ],
        visibility = ["//visibility:public"],
    )

def gpu_platforms():
    """Declares //platforms:<arch> for every arch, <family>-generic for every family, <arch>_mod<n> for every GPU."""
    for target in TARGETS:
        _platform(target, target)
    for gpu, arch in GPUS.items():
        _platform(gpu, arch, gpu)

def _arch_row(name, arch):
    return '    {"%s", "%s", "%s", "%s", %d, "%s", %d, %d},' % (
        name,
        arch["vendor"],
        arch["family"],
        arch.get("code_of", name),
        arch["wave_size"],
        arch["level"],
        arch["lds"],
        arch["mach"],
    )

def _gpu_rows(name, arch):
    return [
        '    {"%s", %d, %d, %d},' % (name, mod, gpu.get("multiprocessors", 0), gpu.get("memory_gib", 0))
        for mod, gpu in enumerate(arch["gpus"])
        if mod > 0
    ]

def _header():
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
        "  const char* code_of;  // the arch whose code objects it runs, its own or those of another by its own label",
        "  int wave_size;",
        "  const char* level;",
        "  int lds_bytes;",
        "  int mach;",
        "};",
        "",
        "inline constexpr Arch kArchs[] = {",
    ] + [_arch_row(name, arch) for name, arch in ARCHS.items()] + [
        "};",
        "",
        "// A product that is not the first of its arch, and the devices that are one; 0: any.",
        "struct Gpu {",
        "  const char* arch;",
        "  int mod;",
        "  int multiprocessors;",
        "  int memory_gib;",
        "};",
        "",
        "inline constexpr Gpu kGpus[] = {",
    ] + [row for name, arch in ARCHS.items() for row in _gpu_rows(name, arch)] + [
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
        content = [json.encode_indent({"archs": ARCHS, "families": FAMILIES}), ""],
        visibility = ["//visibility:public"],
    )
