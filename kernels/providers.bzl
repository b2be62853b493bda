"""What the kernel rules tell each other."""

TritonKernelInfo = provider(
    doc = "The code objects of one kernel for the platform's arch.",
    fields = {
        "arch": "string, e.g. gfx942",
        "codes": "depset of code object files",
        "family": "string, the directory of the pack, e.g. flash",
        "kernel": "string, e.g. attn_fwd",
        "reports": "depset of report files; each lies beside its code object",
        "vendor": "string, amd or nvidia",
    },
)
