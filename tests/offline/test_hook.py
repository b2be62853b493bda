"""tools/bazel: GPU names as platforms, and options of AOTriton's CMake build."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = '''
"""A table."""

ARCHS = {
    "gfx942": {"vendor": "amd", "gpus": [{"name": "A"}, {"name": "B"}]},  # a comment
    "gfx950": {"vendor": "amd", "gpus": []},
    "sm_90": {"vendor": "nvidia", "gpus": []},
}
FAMILIES = {"gfx11": {}}

def other(name):
    return ARCHS[name]
'''


@pytest.fixture
def known(hook, tmp_path):
    table = tmp_path / "archs.bzl"
    table.write_text(TABLE)
    return hook.known_names(table)


def test_table_names_archs_and_gpus(known):
    assert known == ["gfx942", "gfx950", "sm_90", "gfx11-generic", "gfx942_mod0", "gfx942_mod1"]


@pytest.mark.parametrize(
    "given, expected",
    [
        (["build", "--platforms=gfx950", "//x"], ["build", "--platforms=//platforms:gfx950", "//x"]),
        (["build", "--platforms", "gfx950"], ["build", "--platforms", "//platforms:gfx950"]),
        (["--platforms=sm_90,gfx942_mod0"], ["--platforms=//platforms:sm_90,//platforms:gfx942_mod0"]),
        (["--platforms=//platforms:gfx950"], ["--platforms=//platforms:gfx950"]),
        (["--platforms=//platforms:cpu"], ["--platforms=//platforms:cpu"]),
        (["--platforms=@other//platforms:gfx1"], ["--platforms=@other//platforms:gfx1"]),
        (["--platforms=:mine"], ["--platforms=:mine"]),
        (["--platforms="], ["--platforms="]),
        (["build", "--config=gfx950", "//x"], ["build", "--platforms=//platforms:gfx950", "//x"]),
        (["build", "--config", "sm_90", "//x"], ["build", "--platforms=//platforms:sm_90", "//x"]),
        (["--config=gfx11-generic"], ["--platforms=//platforms:gfx11-generic"]),
        (["build", "--//:archs=gfx942,gfx11-generic"], ["build", "--//:archs=gfx942,gfx11-generic"]),
        (["build", "--//:archs="], ["build", "--//:archs="]),
        (["build", "--config=asan"], ["build", "--config=asan"]),
        (["run", "//x", "--", "--platforms=gfx999"], ["run", "//x", "--", "--platforms=gfx999"]),
        (["build", "--platforms"], ["build", "--platforms"]),
        ([], []),
    ],
)
def test_rewrite(hook, known, given, expected):
    assert hook.rewrite(given, known) == expected


@pytest.mark.parametrize(
    "given",
    [
        ["--platforms=gfx999"],
        ["--platforms", "gfx999"],
        ["--platforms=gfx950,gfx999"],
        ["--platforms=//platforms:gfx999"],
        ["--config=gfx999"],
        ["--config", "gfx999"],
        ["--config=sm_12"],
        ["--platforms=mi300x"],
        ["--config=gfx12-generic"],
        ["--//:archs=gfx942,gfx999"],
    ],
)
def test_unknown_names_are_refused(hook, known, given):
    with pytest.raises(hook.Refused, match="Known: gfx942, gfx950, sm_90, gfx11-generic"):
        hook.rewrite(given, known)


def test_the_closest_name_is_offered(hook, known):
    with pytest.raises(hook.Refused, match=r"--config=gfx95: no such GPU. Did you mean gfx950\?"):
        hook.rewrite(["--config=gfx95"], known)


def test_images_are_not_built_for_one_gpu(hook, known):
    with pytest.raises(hook.Refused, match="--//:archs=gfx942_mod1: no such GPU. Did you mean gfx942"):
        hook.rewrite(["--//:archs=gfx942_mod1"], known)


@pytest.mark.parametrize(
    "given, answer",
    [
        (["-DAOTRITON_TARGET_ARCH=gfx942;gfx950"], "AOTRITON_TARGET_ARCH=gfx942;gfx950 is for AOTriton's CMake build. Here, write --//:archs=gfx942,gfx950."),
        (["-D", "AOTRITON_TARGET_ARCH:STRING=gfx942"], "Here, write --//:archs=gfx942."),
        (["--define=AOTRITON_TARGET_ARCH=gfx942"], "Here, write --//:archs=gfx942."),
        (["--define", "AOTRITON_OVERRIDE_TARGET_GPUS=gfx942_mod0;gfx942_mod1;gfx950_mod0"], "write --//:archs=gfx942,gfx950:"),
        (["-DTARGET_GPUS=MI200;MI300X"], "it is refused, as AOTriton itself does: write --//:archs=gfx90a,gfx942"),
        (["-DAOTRITON_NOIMAGE_MODE=ON"], "build //:library"),
        (["-DAOTRITON_GPU_BUILD_TIMEOUT=0"], "leave it out: a kernel that is not compiled after 30 minutes fails"),
        (["-DAOTRITON_NAME_SUFFIX=_mine"], "write --//:namespace_suffix=_mine."),
        (["-DAOTRITON_BUILD_FOR_TUNING=ON"], "rows in kernels/flash/"),
        (["-DAOTRITON_ENABLE_FP32_INPUTS=OFF"], "write --//:dtypes=fp16,bf16"),
        (["-DAOTRITON_FLASH_BLOCK_DMODEL=64,128"], "write --//:head_dims=64,128."),
    ],
)
def test_options_of_the_cmake_build_are_answered(hook, given, answer):
    with pytest.raises(hook.Refused) as refused:
        hook.refuse_legacy(["build", *given, "//:aotriton"], {})
    assert answer in str(refused.value) and "docs/options.md" in str(refused.value)


def test_a_variable_of_the_cmake_build_is_answered_too(hook):
    with pytest.raises(hook.Refused, match="the environment's AOTRITON_FLASH_BLOCK_DMODEL=64 128 .*--//:head_dims=64,128"):
        hook.refuse_legacy(["build"], {"AOTRITON_FLASH_BLOCK_DMODEL": "64 128"})


@pytest.mark.parametrize(
    "arguments, environment",
    [
        (["build", "--define=MINE=1", "-c", "opt", "--copt=-DAOTRITON_TARGET_ARCH=1"], {"AOTRITON_IMAGES_DIR": "x", "AOTRITON_TARGET_ARCH": ""}),
        (["run", "//:install", "--", "-DAOTRITON_TARGET_ARCH=gfx942"], {}),
        (["build", "--define"], {}),
    ],
)
def test_other_definitions_are_left_alone(hook, arguments, environment):
    hook.refuse_legacy(arguments, environment)


def test_the_page_of_options_has_every_answer(hook):
    page = (ROOT / "docs/options.md").read_text()
    assert set(hook.LEGACY) <= set(re.findall(r"^\| `(\w+)`", page, re.M))


def run_hook(tmp_path, *arguments, table=TABLE, **env):
    for folder in ("tools", "platforms"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "tools/bazel", tmp_path / "tools/bazel")
    if table:
        (tmp_path / "platforms/archs.bzl").write_text(table)
    base = {name: value for name, value in os.environ.items() if name != "BAZEL_REAL"}
    return subprocess.run(
        [tmp_path / "tools/bazel", *arguments], capture_output=True, text=True, env={**base, **env}
    )


def test_becomes_the_real_bazel(tmp_path, script):
    real = script("real", 'printf "%s|" "$@"; exit 7\n')
    result = run_hook(tmp_path, "build", "--platforms=gfx950", "a b", BAZEL_REAL=str(real))
    assert (result.returncode, result.stdout) == (7, "build|--platforms=//platforms:gfx950|a b|")


def test_without_a_table_names_stay(tmp_path, script):
    real = script("real", 'printf "%s|" "$@"\n')
    result = run_hook(tmp_path, "build", "--platforms=gfx950", table=None, BAZEL_REAL=str(real))
    assert result.stdout == "build|--platforms=gfx950|"


def test_a_wrong_name_never_reaches_bazel(tmp_path, script):
    real = script("real", "echo ran\n")
    result = run_hook(tmp_path, "build", "--platforms=gfx951", BAZEL_REAL=str(real))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("ERROR: --platforms=gfx951: no such GPU. Did you mean gfx950?\nKnown: ")


def test_an_option_of_the_cmake_build_never_reaches_bazel(tmp_path, script):
    real = script("real", "echo ran\n")
    result = run_hook(tmp_path, "build", BAZEL_REAL=str(real), AOTRITON_TARGET_ARCH="gfx942")
    assert (result.returncode, result.stdout) == (2, "")
    assert "Here, write --//:archs=gfx942." in result.stderr


def test_run_by_hand_it_says_what_to_run(tmp_path):
    result = run_hook(tmp_path, "build")
    assert result.returncode == 2
    assert "run by bazelisk, bazel or ./bazelw" in result.stderr
