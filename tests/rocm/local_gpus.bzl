"""@local_gpus: the archs of this machine's AMD GPUs, so that packs are built for no other."""

load("//toolchains/python:wheels.bzl", "find_python")

def _local_gpus_impl(rctx):
    archs = rctx.os.environ.get("AOTRITON_GPU_ARCHS", "")
    if not archs:
        found = rctx.execute([find_python(rctx).path, rctx.path(Label("//tests/rocm:gpus.py"))])
        if found.return_code:
            fail("looking for GPUs failed: " + found.stderr)
        archs = found.stdout.strip().replace("\n", ",")
    rctx.file("BUILD.bazel", "")
    rctx.file("defs.bzl", '"""The GPUs that are here."""\n\nLOCAL_ARCHS = %s\n' % repr([arch for arch in archs.split(",") if arch]))

local_gpus = repository_rule(
    implementation = _local_gpus_impl,
    configure = True,
    environ = ["AOTRITON_GPU_ARCHS", "AOTRITON_PYTHON"],
    local = True,
    doc = "LOCAL_ARCHS in @name//:defs.bzl. AOTRITON_GPU_ARCHS=gfx942,gfx950 says it in place of the machine.",
)

gpus = module_extension(
    implementation = lambda _: local_gpus(name = "local_gpus"),
    doc = "The repository @local_gpus.",
)
