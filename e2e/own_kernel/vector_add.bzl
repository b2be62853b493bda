"""Declaration of vector_add."""

load("@aotriton//kernels:declare.bzl", "axis", "config", "constexpr", "kernel_declaration", "scalar", "tensor")

def _configs(arch, _values):
    return [config({"BLOCK": 1024}, num_warps = 4 if arch.startswith("gfx9") else 8)]

VECTOR_ADD = kernel_declaration(
    entry = "vector_add",
    axes = [axis("dtype", ["fp16", "fp32"])],
    arguments = [tensor(name, "*{dtype}", align = 16) for name in ["X", "Y", "Z"]] + [
        scalar("n", "i32"),
        constexpr("BLOCK"),
    ],
    configs = _configs,
    profiles = {"smoke": [{"dtype": "fp16"}]},
)
