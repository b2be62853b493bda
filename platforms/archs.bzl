"""The arch table: everything the project knows about a GPU instruction set stands here, once.

This file is read by Starlark (platforms, constraints, toolchains), by Python
(`tools/bazel`, `bazelw`, through `ast.literal_eval`) and, through the generated
`//platforms:archs_h` and `//platforms:archs_json`, by the C++ dispatcher and the
tools. Keep the two assignments pure literals.

ARCHS: arch -> fields
  vendor     "amd" or "nvidia"
  family     archs that LLVM can serve with one generic code object, or the arch itself
  wave_size  lanes of a wave (a warp)
  level      "supported", "experimental" or "tech_preview": what
             isArchExperimentallySupported and isArchTechPreview answer; or
             "compile_only": builds, and nobody has run it
  lds        bytes of local (shared) memory that one work group can have
  mach       the machine in the ELF header of its code objects (LLVM's EF_AMDGPU_MACH);
             0: not of AMD
  code_of    (optional) an arch whose code objects are its own but for the label, to the
             byte: it is served by that arch's packs (//tests/dispatch:relabel_test)
  gpus       its products, `<arch>_mod<n>` by their place in the list:
    name             what people call it
    multiprocessors  (optional) a device with so many is this one
    memory_gib       (optional) and with about so much memory; a device that is none of
                     these is the first

FAMILIES: family -> fields; packs for its archs all at once are named `<family>-generic`
  vendor, wave_size, level, lds, mach
"""

ARCHS = {
    "gfx90a": {
        "vendor": "amd",
        "family": "gfx90a",
        "wave_size": 64,
        "level": "supported",
        "lds": 65536,
        "mach": 0x3F,
        "gpus": [{"name": "MI210, MI250, MI250X"}],
    },
    "gfx942": {
        "vendor": "amd",
        "family": "gfx942",
        "wave_size": 64,
        "level": "supported",
        "lds": 65536,
        "mach": 0x4C,
        "gpus": [
            {"name": "MI300X"},
            {"name": "MI300A", "multiprocessors": 228},
            {"name": "MI325X", "multiprocessors": 304, "memory_gib": 256},
        ],
    },
    "gfx950": {
        "vendor": "amd",
        "family": "gfx950",
        "wave_size": 64,
        "level": "supported",
        "lds": 163840,
        "mach": 0x4F,
        "gpus": [{"name": "MI350X, MI355X"}],
    },
    "gfx1100": {
        "vendor": "amd",
        "family": "gfx11",
        "wave_size": 32,
        "level": "supported",
        "lds": 65536,
        "mach": 0x41,
        "gpus": [{"name": "RX 7900 XT, RX 7900 XTX"}],
    },
    "gfx1101": {
        "vendor": "amd",
        "family": "gfx11",
        "wave_size": 32,
        "level": "experimental",
        "lds": 65536,
        "mach": 0x46,
        "gpus": [{"name": "RX 7700 XT, RX 7800 XT"}],
    },
    "gfx1102": {
        "vendor": "amd",
        "family": "gfx11",
        "wave_size": 32,
        "level": "experimental",
        "lds": 65536,
        "mach": 0x47,
        "gpus": [{"name": "RX 7600"}],
    },
    "gfx1103": {
        "vendor": "amd",
        "family": "gfx11",
        "wave_size": 32,
        "level": "experimental",
        "lds": 65536,
        "mach": 0x44,
        "gpus": [{"name": "Radeon 780M"}],
    },
    "gfx1150": {
        "vendor": "amd",
        "family": "gfx11",
        "wave_size": 32,
        "level": "experimental",
        "lds": 65536,
        "mach": 0x43,
        "gpus": [{"name": "Radeon 890M"}],
    },
    "gfx1151": {
        "vendor": "amd",
        "family": "gfx11",
        "wave_size": 32,
        "level": "experimental",
        "lds": 65536,
        "mach": 0x4A,
        "gpus": [{"name": "Radeon 8060S"}],
    },
    "gfx1152": {
        "vendor": "amd",
        "family": "gfx11",
        "wave_size": 32,
        "level": "experimental",
        "lds": 65536,
        "mach": 0x55,
        "code_of": "gfx1150",
        "gpus": [{"name": "Radeon 860M"}],
    },
    "gfx1153": {
        "vendor": "amd",
        "family": "gfx11",
        "wave_size": 32,
        "level": "experimental",
        "lds": 65536,
        "mach": 0x58,
        "code_of": "gfx1150",
        "gpus": [{"name": "Radeon 820M"}],
    },
    "gfx1200": {
        "vendor": "amd",
        "family": "gfx12",
        "wave_size": 32,
        "level": "experimental",
        "lds": 65536,
        "mach": 0x48,
        "code_of": "gfx1201",
        "gpus": [{"name": "RX 9060 XT"}],
    },
    "gfx1201": {
        "vendor": "amd",
        "family": "gfx12",
        "wave_size": 32,
        "level": "supported",
        "lds": 65536,
        "mach": 0x4E,
        "gpus": [{"name": "RX 9070, RX 9070 XT"}],
    },
    "sm_80": {
        "vendor": "nvidia",
        "family": "sm_80",
        "wave_size": 32,
        "level": "compile_only",
        "lds": 166912,
        "mach": 0,
        "gpus": [{"name": "A100"}],
    },
    "sm_90": {
        "vendor": "nvidia",
        "family": "sm_90",
        "wave_size": 32,
        "level": "supported",
        "lds": 232448,
        "mach": 0,
        "gpus": [{"name": "H100, H200"}],
    },
    "sm_100": {
        "vendor": "nvidia",
        "family": "sm_100",
        "wave_size": 32,
        "level": "compile_only",
        "lds": 232448,
        "mach": 0,
        "gpus": [{"name": "B200"}],
    },
}

FAMILIES = {
    "gfx11": {"vendor": "amd", "wave_size": 32, "level": "experimental", "lds": 65536, "mach": 0x54},
    "gfx12": {"vendor": "amd", "wave_size": 32, "level": "experimental", "lds": 65536, "mach": 0x59},
}
