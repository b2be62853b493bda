"""Declaration of attn_fwd_persistent: the forward under a window, without bias and dropout, of aligned 16-bit tensors."""

load("//kernels:declare.bzl", "axis", "config", "constexpr", "kernel_declaration", "scalar", "stride", "tensor")
load(":attn_fwd.bzl", "attn_fwd_configs")
load(":family.bzl", "fp32_tensor", "head_dim_axis", "lse_strides")

def _configs(arch, values):
    if arch == "sm_90" and int(values["head_dim"]) <= 128:
        # The plain kernel's with more registers: what the loop over tiles keeps would spill.
        return [config({"BLOCK_M": 64, "BLOCK_N": 64}, num_stages = 3, max_registers = 168 if int(values["head_dim"]) <= 64 else 0)]
    return attn_fwd_configs(arch, dict(values, causal = "1", bias = "0", dropout = "0", layout = "aligned"))

ATTN_FWD_PERSISTENT = kernel_declaration(
    entry = "attn_fwd_persistent",
    axes = [axis("dtype", ["fp16", "bf16"]), head_dim_axis()],
    arguments = [tensor(name, "*{dtype}", align = 16) for name in ["Q", "K", "V", "Out"]] +
                [fp32_tensor("L"), scalar("sm_scale", "fp32")] +
                [
                    stride("stride_" + name, align = 8)
                    for name in ["qz", "qh", "qm", "kz", "kh", "kn", "vz", "vh", "vn", "oz", "oh", "om"]
                ] + lse_strides() + [
                    scalar(name, "i32")
                    for name in ["num_sequences", "num_head_q", "num_head_k", "max_seqlen_q", "max_seqlen_k"]
                ] + [
                    tensor(name, "*i32")
                    for name in ["cu_seqlens_q", "cu_seqlens_k", "seq_starts_q", "seq_starts_k"]
                ] + [scalar(name, "i32") for name in ["varlen_type", "window_left", "window_right"]] +
                [scalar("lse_scale", "fp32"), scalar("store_lse", "i32"), scalar("lse_compact", "i32")] +
                [scalar("num_programs", "i32"), tensor("persistent_counter", "*i32"), constexpr("HEAD_DIM", "{head_dim}"), constexpr("BLOCK_M"), constexpr("BLOCK_N")],
    configs = _configs,
    # Calls of other head dims take attn_fwd, which is as fast.
    profiles = {
        "core": [{"head_dim": [64, 128]}],
        "smoke": [{"dtype": "bf16", "head_dim": 64}, {"dtype": "fp16", "head_dim": 128}],
    },
    fp_fusion = False,  # attn_fwd.bzl says why
)
