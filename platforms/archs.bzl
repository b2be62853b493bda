"""The arch table: everything the project knows about a GPU instruction set stands here, once.

This file is read by Starlark (platforms, constraints, toolchains), by Python
(`tools/bazel`, `bazelw`, through `ast.literal_eval`) and, through the generated
`//platforms:archs_h` and `//platforms:archs_json`, by the C++ dispatcher and the
tools. Keep the three assignments pure literals.

ARCHS: arch -> fields
  vendor     "amd" or "nvidia"
  family     archs that LLVM can serve with one generic code object, or the arch itself
  wave_size  lanes of a wave (a warp)
  level      "supported", "experimental" or "tech_preview": what
             isArchExperimentallySupported and isArchTechPreview answer
  lds        bytes of local (shared) memory that one work group can have

GPUS: product of an arch, `<arch>_mod<n>` -> fields
  arch       its arch
  name       what people call it

FAMILIES: family -> fields; packs for its archs all at once are named `<family>-generic`
  others     archs without a row in ARCHS: those packs alone serve them
  and vendor, wave_size, level and lds of the others
"""

ARCHS = {
    "gfx90a": {"vendor": "amd", "family": "gfx90a", "wave_size": 64, "level": "supported", "lds": 65536},
    "gfx942": {"vendor": "amd", "family": "gfx942", "wave_size": 64, "level": "supported", "lds": 65536},
    "gfx950": {"vendor": "amd", "family": "gfx950", "wave_size": 64, "level": "supported", "lds": 163840},
    "gfx1100": {"vendor": "amd", "family": "gfx11", "wave_size": 32, "level": "supported", "lds": 65536},
    "gfx1201": {"vendor": "amd", "family": "gfx12", "wave_size": 32, "level": "supported", "lds": 65536},
    "sm_90": {"vendor": "nvidia", "family": "sm_90", "wave_size": 32, "level": "supported", "lds": 232448},
}

GPUS = {
    "gfx90a_mod0": {"arch": "gfx90a", "name": "MI210, MI250, MI250X"},
    "gfx942_mod0": {"arch": "gfx942", "name": "MI300X"},
    "gfx942_mod1": {"arch": "gfx942", "name": "MI300A"},
    "gfx942_mod2": {"arch": "gfx942", "name": "MI325X"},
    "gfx950_mod0": {"arch": "gfx950", "name": "MI350X, MI355X"},
    "gfx1100_mod0": {"arch": "gfx1100", "name": "RX 7900 XT, RX 7900 XTX"},
    "gfx1201_mod0": {"arch": "gfx1201", "name": "RX 9070, RX 9070 XT"},
    "sm_90_mod0": {"arch": "sm_90", "name": "H100, H200"},
}

FAMILIES = {
    "gfx11": {
        "others": ["gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"],
        "vendor": "amd",
        "wave_size": 32,
        "level": "experimental",
        "lds": 65536,
    },
    "gfx12": {"others": ["gfx1200"], "vendor": "amd", "wave_size": 32, "level": "experimental", "lds": 65536},
}
