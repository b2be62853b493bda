"""What other people do with this checkout: their workspaces, an installation, a slip of the pen."""

import glob
import json
import os
import re
import subprocess

import pytest
from tests.e2e.bazelw import ENVIRONMENT, REPO, bazelw

CONSUMER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "consumer")
SMOKE = os.path.join(REPO, "e2e/smoke")


@pytest.fixture(scope="module", params=["smoke", "own_kernel", "workspace"])
def workspace(request):
    """A workspace of e2e/; its Bazel server is ended afterwards."""
    path = os.path.join(REPO, "e2e", request.param)
    yield path
    bazelw(path, "shutdown")


def test_the_workspace_builds_and_passes_its_tests(workspace):
    result = bazelw(workspace, "test", "//...", "--noshow_progress")
    assert result.returncode == 0, result.stdout
    assert "1 test passes" in result.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation with the images of two archs, made one after the other."""
    prefix = str(tmp_path_factory.mktemp("prefix"))
    for arch in ("gfx942", "gfx1100"):
        result = bazelw(SMOKE, "run", "@aotriton//:install", f"--@aotriton//:archs={arch}",
                        "--noshow_progress", "--", "--prefix", prefix)
        assert result.returncode == 0, result.stdout
    yield prefix
    bazelw(SMOKE, "shutdown")


def test_install_lays_out_headers_library_and_images(prefix):
    there = {os.path.relpath(path, prefix) for path in glob.glob(f"{prefix}/**", recursive=True) if os.path.isfile(path)}
    assert {
        "include/aotriton/aotriton.h", "include/aotriton/config.h", "include/aotriton/flash.h", "include/aotriton/util.h",
        "lib/libaotriton_v2.so",
        "lib/aotriton.images/amd-gfx942/flash/attn_fwd.pack", "lib/aotriton.images/amd-gfx1100/flash/attn_fwd.pack",
        "lib/aotriton.images/amd-gfx942/manifest.json", "lib/aotriton.images/amd-gfx1100/manifest.json",
        "lib/cmake/aotriton/aotriton-config.cmake", "lib/cmake/aotriton/aotriton-config-version.cmake",
    } <= there
    assert os.readlink(f"{prefix}/lib/libaotriton_v2.so").startswith("libaotriton_v2.so.0.")
    assert not [path for path in there if path.endswith(".partial")]


def test_a_cmake_project_finds_the_installation(prefix, tmp_path):
    import cmake  # the wheels hold the programs
    import ninja

    program = os.path.join(cmake.CMAKE_BIN_DIR, "cmake")
    ninja_program = os.path.join(os.path.dirname(os.path.dirname(ninja.__file__)), "bin/ninja")
    output = bazelw(SMOKE, "info", "output_base", "--noshow_progress").stdout.split()[-1]
    (headers,) = glob.glob(f"{output}/external/*triton_wheel/site/triton/backends/amd/include")
    for command in (
        [program, "-S", CONSUMER, "-B", str(tmp_path), f"-DCMAKE_PREFIX_PATH={prefix}", f"-DHIP_HEADERS={headers}",
         f"-DSOURCE={SMOKE}/smoke.cc", "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja_program}"],
        [program, "--build", str(tmp_path)],
        [str(tmp_path / "consumer")],
    ):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
        assert result.returncode == 0, result.stdout


CLAIM = ["--@aotriton//:release=0.11", "--@aotriton//:namespace_suffix=_mine"]


def test_an_installation_is_called_what_it_claims_to_be(tmp_path):
    prefix = str(tmp_path)
    result = bazelw(SMOKE, "run", "@aotriton//:install", "--@aotriton//:archs=gfx942", *CLAIM, "--noshow_progress", "--",
                    "--prefix", prefix)
    assert result.returncode == 0, result.stdout
    assert os.readlink(f"{prefix}/lib/libaotriton_mine_v2.so") == "libaotriton_mine_v2.so.0.11.2"
    texts = {}
    for name in ("include/aotriton/config.h", "lib/cmake/aotriton/aotriton-config.cmake", "lib/cmake/aotriton/aotriton-config-version.cmake"):
        with open(f"{prefix}/{name}") as file:
            texts[os.path.basename(name)] = file.read()
    assert "#define AOTRITON_VERSION_MINOR 11u" in texts["config.h"] and "#define AOTRITON_NAME_SUFFIX _mine" in texts["config.h"]
    assert "lib/libaotriton_mine_v2.so" in texts["aotriton-config.cmake"]
    assert '"0.11.2"' in texts["aotriton-config-version.cmake"]


def test_a_claim_compiles_no_kernel_anew():
    def keys(*options):
        result = bazelw(SMOKE, "aquery", "mnemonic(TritonCompile, deps(@aotriton//:images))", "--@aotriton//:archs=gfx942",
                        "--noshow_progress", *options)
        assert result.returncode == 0, result.stdout
        return sorted(line for line in result.stdout.splitlines() if "ActionKey" in line)

    plain = keys()
    assert len(plain) > 100 and keys(*CLAIM) == plain


def test_several_archs_share_one_compiled_library():
    def counts(archs):
        result = bazelw(SMOKE, "aquery", "deps(@aotriton//:aotriton)", f"--@aotriton//:archs={archs}", "--output=summary", "--noshow_progress")
        assert result.returncode == 0, result.stdout
        return {mnemonic: int(count) for mnemonic, count in re.findall(r"^  (\w+): (\d+)$", result.stdout, re.M)}

    one, three = counts("gfx942"), counts("gfx942,gfx950,gfx1201")
    assert one["CppCompile"] > 10 and one["TritonCompile"] > 800
    assert {name: count for name, count in three.items() if name.startswith("Cpp")} == {
        name: count for name, count in one.items() if name.startswith("Cpp")}
    assert {name: three[name] // one[name] for name in one if name.startswith("Triton")} == {
        "TritonCompile": 3, "TritonManifest": 3, "TritonPack": 3}


def test_another_kernel_has_profiles_too():
    workspace = os.path.join(REPO, "e2e/own_kernel")
    try:
        for profile, expected in {"smoke": ["vector_add.fp16"], "core": ["vector_add.fp16", "vector_add.fp32"]}.items():
            result = bazelw(workspace, "build", "//:images", f"--@aotriton//:profile={profile}", "--noshow_progress")
            assert result.returncode == 0, result.stdout
            with open(os.path.join(workspace, "bazel-bin/aotriton.images/amd-gfx942/manifest.json")) as file:
                assert json.load(file)["packs"]["examples/vector_add.pack"]["functionals"] == expected
    finally:
        bazelw(workspace, "shutdown")


def test_an_unknown_release_is_an_error_that_lists_the_known_ones():
    result = bazelw(SMOKE, "build", "@aotriton//:library", "--@aotriton//:release=0.7")
    assert result.returncode != 0
    assert "release=0.7: no such release. Give one of 0.8, 0.9, 0.10, 0.11, 0.12, 0.13, 0.14" in result.stdout


@pytest.mark.parametrize("argument", ["--platforms=gfx999", "--platforms=//platforms:gfx999", "--config=gfx999"])
def test_an_unknown_arch_is_an_error_that_lists_the_known_ones(argument):
    result = bazelw(REPO, "build", "//:aotriton", argument)
    assert result.returncode == 2
    assert "gfx999: no such GPU" in result.stdout and "Known: gfx90a, gfx942, gfx950, gfx1100" in result.stdout


def test_an_unknown_arch_among_several_is_one_too():
    result = bazelw(SMOKE, "build", "@aotriton//:aotriton", "--@aotriton//:archs=gfx942,gfx999")
    assert result.returncode != 0
    assert "unknown arch 'gfx999'" in result.stdout and "The known ones are gfx90a, gfx942, gfx950, gfx1100" in result.stdout


def test_without_an_arch_the_build_says_how_to_give_one():
    result = bazelw(SMOKE, "build", "@aotriton//:aotriton", "--@aotriton//:archs=")
    assert result.returncode != 0
    assert "give_an_arch_like_--platforms=gfx950" in result.stdout
