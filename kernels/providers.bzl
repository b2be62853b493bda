"""What the kernel rules tell each other."""

TritonKernelInfo = provider(
    doc = "The code objects of one kernel for the platform's arch.",
    fields = {
        "arch": "string, e.g. gfx942",
        "axes": "JSON: [[axis, [values]], ...]; decoded for each functional it would take memory",
        "codes": "depset of code object files",
        "family": "string, the directory of the pack, e.g. flash",
        "functionals": "names of their targets, e.g. attn_fwd.bf16.d128.causal",
        "kernel": "string, e.g. attn_fwd",
        "reports": "depset of report files; each lies beside its code object",
        "triton": "string, the version that compiles",
        "vendor": "string, amd or nvidia",
    },
)

TritonFunctionalInfo = provider(
    doc = "What a build's settings choose a functional by.",
    fields = {
        "is_general": "bool, whether it serves calls with any feature, or none",
        "name": "string, of its target, e.g. attn_fwd.bf16.d128.causal",
        "profile": "string, the first profile that holds it",
        "values": "{axis: value}",
    },
)
