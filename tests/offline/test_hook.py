"""tools/bazel: GPU names as platforms."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = '''
"""A table."""

ARCHS = {
    "gfx942": {"vendor": "amd"},  # a comment
    "gfx950": {"vendor": "amd"},
    "sm_90": {"vendor": "nvidia"},
}
GPUS = {"gfx942_mod0": {"arch": "gfx942"}}

def other(name):
    return ARCHS[name]
'''


@pytest.fixture
def known(hook, tmp_path):
    table = tmp_path / "archs.bzl"
    table.write_text(TABLE)
    return hook.known_names(table)


def test_table_names_archs_and_gpus(known):
    assert known == ["gfx942", "gfx950", "sm_90", "gfx942_mod0"]


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
        (["build", "--config=gfx950", "--config", "sm_90"], ["build", "--config=gfx950", "--config", "sm_90"]),
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
    ],
)
def test_unknown_names_are_refused(hook, known, given):
    with pytest.raises(hook.UnknownName, match="Known: gfx942, gfx950, sm_90, gfx942_mod0"):
        hook.rewrite(given, known)


def test_the_closest_name_is_offered(hook, known):
    with pytest.raises(hook.UnknownName, match=r"--config=gfx95: no such GPU. Did you mean gfx950\?"):
        hook.rewrite(["--config=gfx95"], known)


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


def test_run_by_hand_it_says_what_to_run(tmp_path):
    result = run_hook(tmp_path, "build")
    assert result.returncode == 2
    assert "run by bazelisk, bazel or ./bazelw" in result.stderr
