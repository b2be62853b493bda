"""A kernel with as many code objects as a large library: what analysing it takes."""

import time

import pytest
from tests.e2e.bazelw import REPO, bazelw

FUNCTIONALS, CONFIGS = 2000, 10
PLATFORM = "--platforms=@aotriton//platforms:gfx950"

FILES = {
    "MODULE.bazel": f"""
module(name = "scale")
bazel_dep(name = "aotriton")
local_path_override(module_name = "aotriton", path = "{REPO}")
""",
    "BUILD.bazel": """
load("@aotriton//kernels:defs.bzl", "triton_kernel", "triton_pack")
load(":many.bzl", "FEW", "MANY")

[
    [
        triton_kernel(name = name, src = "kernel.py", declaration = declaration, family = "scale"),
        triton_pack(name = name + "_pack", kernel = name),
    ]
    for name, declaration in {"few": FEW, "many": MANY}.items()
]
""",
    "many.bzl": f"""
load("@aotriton//kernels:declare.bzl", "axis", "config", "constexpr", "kernel_declaration", "tensor")

def _declaration(functionals):
    return kernel_declaration(
        entry = "kernel",
        axes = [axis("size", range(1, functionals + 1))],
        arguments = [tensor("X", "*fp32"), constexpr("SIZE", "{{size}}"), constexpr("BLOCK")],
        configs = lambda _arch, _values: [
            config({{"BLOCK": 16 * (i + 1)}}, max_seqlen_q = 100 * (i + 1) if i < {CONFIGS - 1} else None)
            for i in range({CONFIGS})
        ],
    )

FEW, MANY = _declaration(1), _declaration({FUNCTIONALS})
""",
    "kernel.py": "# Nothing is compiled.\n",
}


@pytest.fixture
def workspace(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    yield str(tmp_path)
    bazelw(str(tmp_path), "clean", "--expunge")


def analyse(workspace, target):
    """(seconds, bytes of heap afterwards)"""
    begin = time.perf_counter()
    result = bazelw(workspace, "build", "--nobuild", target, PLATFORM, "--noshow_progress")
    seconds = time.perf_counter() - begin
    assert result.returncode == 0, result.stdout
    return seconds, int(bazelw(workspace, "info", "used-heap-size-after-gc").stdout.strip().splitlines()[-1].removesuffix("MB"))


def test_analysing_twenty_thousand_code_objects(workspace):
    analyse(workspace, "//:few_pack")  # starts the server, reads the modules
    _, before = analyse(workspace, "//:few_pack")
    seconds, after = analyse(workspace, "//:many_pack")
    actions = bazelw(workspace, "aquery", PLATFORM, "--output=summary", "--noshow_progress", 'mnemonic("TritonCompile", deps(//:many_pack))')
    assert f"TritonCompile: {FUNCTIONALS * CONFIGS}" in actions.stdout, actions.stdout
    print(f"{FUNCTIONALS * CONFIGS} code objects: {seconds:.1f} s, {after - before} MB")
    assert seconds < 30 and after - before < 200
