"""Which Bazel bazelw runs, and how."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolchains.offline import debian, launcher, recipe, report
from toolchains.offline.report import SetupError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path_only(tmp_path, monkeypatch):
    """A PATH with one empty directory."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def test_the_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("BAZELW_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert launcher.cache_dir() == Path("/home/someone/.cache/aotriton-bazelw")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert launcher.cache_dir() == Path("/xdg/aotriton-bazelw")
    monkeypatch.setenv("BAZELW_CACHE", str(tmp_path))
    assert launcher.cache_dir() == tmp_path


@pytest.mark.parametrize(
    "text, suitable",
    [
        (f"echo bazel {recipe.VERSION}", True),
        ("echo bazel 6.0.0", False),
        ('echo "bazel $USE_BAZEL_VERSION"', True),  # a bazelisk that has, or gets, the right one
        ("echo could not resolve; exit 1", False),  # a bazelisk without a network
    ],
)
def test_is_suitable(script, text, suitable):
    assert launcher.is_suitable(script("bazel", text + "\n")) is suitable


def test_a_program_that_hangs_is_not_suitable(script, monkeypatch):
    monkeypatch.setattr(launcher, "PROBE_SECONDS", 0.2)
    assert not launcher.is_suitable(script("bazel", "exec /bin/sleep 30\n"))


def test_a_ready_prefix_goes_first(tmp_path):
    prefix = tmp_path / recipe.name()
    prefix.mkdir()
    assert launcher.choose(tmp_path) == (prefix / "bin/bazel", prefix)


def test_a_bazel_on_path_goes_before_a_new_prefix(tmp_path, path_only, script):
    real = script("bin/bazelisk", f"echo bazel {recipe.VERSION}\n")
    script("bin/bazel", "echo bazel 6.0.0\n")
    assert launcher.choose(tmp_path / "cache") == (real, None)


def test_neither_way_says_what_to_install(tmp_path, path_only, monkeypatch, capsys):
    monkeypatch.setenv("BAZELW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(recipe, "FREE_BYTES", 0)
    assert launcher.main(["build"]) == 1
    error = capsys.readouterr().err
    assert "there is no apt-get" in error
    assert "install bazelisk" in error


def test_another_system_is_named(monkeypatch):
    release = {"ID": "other", "PRETTY_NAME": "Other 1"}
    monkeypatch.setattr(debian.platform, "freedesktop_os_release", lambda: release)
    with pytest.raises(SetupError, match="this is Other 1, not Debian"):
        debian.own_suite()


def test_a_failing_program_is_quoted(script):
    with pytest.raises(SetupError, match="(?s)apt failed:.*no such package"):
        report.run([script("apt", "echo no such package >&2; exit 100\n")])


def run_bazelw(cwd, cache, *arguments):
    env = {**os.environ, "BAZELW_CACHE": str(cache)}
    return subprocess.run([sys.executable, ROOT / "bazelw", *arguments], cwd=cwd, env=env, capture_output=True, text=True)


@pytest.fixture
def fake_prefix(tmp_path, script):
    """A cache whose prefix has a Bazel that prints its arguments."""
    name = f"cache/{recipe.name()}"
    script(f"{name}/bin/bazel", 'printf "%s|" real "$@"\n')
    return tmp_path / "cache", tmp_path / name


def test_runs_bazel_with_the_prefix_rc(tmp_path, fake_prefix):
    cache, prefix = fake_prefix
    result = run_bazelw(tmp_path, cache, "build", "a b")
    expected = ["real", "--nosystem_rc", f"--bazelrc={prefix}/bazelw.rc", "build", "a b"]
    assert result.stdout == "".join(f"{part}|" for part in expected)
    assert result.stderr == ""


def test_runs_the_hook_of_the_workspace_around(tmp_path, fake_prefix, script):
    cache, prefix = fake_prefix
    script("tools/bazel", 'printf "%s|" hook "$BAZEL_REAL"\n')
    (tmp_path / "MODULE.bazel").touch()
    (tmp_path / "deep/inside").mkdir(parents=True)
    result = run_bazelw(tmp_path / "deep/inside", cache, "build")
    assert result.stdout == f"hook|{prefix}/bin/bazel|"


def test_where_and_version(tmp_path, fake_prefix):
    cache, prefix = fake_prefix
    assert run_bazelw(tmp_path, cache, "--version").stdout == f"bazel {recipe.VERSION}\n"
    where = run_bazelw(tmp_path, cache, "--where").stdout
    assert where == f"bazel:  {prefix}/bin/bazel\ncache:  {cache}\nprefix: {prefix}\n"
