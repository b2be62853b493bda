"""Chooses the Bazel to run and becomes it."""
import os
import shutil
import subprocess
from pathlib import Path

from toolchains.offline import recipe, store
from toolchains.offline.report import SetupError, say

BOUNDARIES = ("MODULE.bazel", "REPO.bazel", "WORKSPACE", "WORKSPACE.bazel")
PROBE_SECONDS = 60


def main(arguments):
    cache = cache_dir()
    try:
        bazel, prefix = choose(cache)
    except SetupError as error:
        say(f"error: {error}\n"
            f"  or, instead: install bazelisk (or Bazel {recipe.VERSION} as `bazel`), put it on PATH, run again")
        return 1
    except KeyboardInterrupt:
        say("stopped; the next run starts over")
        return 130
    if arguments == ["--where"]:
        print(f"bazel:  {bazel}\ncache:  {cache}\nprefix: {prefix or 'none: this Bazel was on PATH'}")
        return 0
    if prefix and arguments == ["--version"]:  # which Bazel looks up in a part that Debian left out
        print(f"bazel {recipe.VERSION}")
        return 0
    if prefix:
        arguments = ["--nosystem_rc", f"--bazelrc={prefix}/bazelw.rc", *arguments]
    start(bazel, arguments)


def cache_dir():
    if "BAZELW_CACHE" in os.environ:
        return Path(os.environ["BAZELW_CACHE"]).absolute()
    home_cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home_cache) / "aotriton-bazelw"


def choose(cache):
    """Returns the Bazel to run, and the prefix it lives in or None.

    A prefix that is there goes first: it needs no probing, which can take long without a network.
    """
    prefix = cache / recipe.name()
    if not prefix.is_dir():
        for program in ("bazel", "bazelisk"):
            path = shutil.which(program)
            if path and is_suitable(path):
                return Path(path), None
        prefix = store.ensure(cache, prefix.name, recipe.build, recipe.FREE_BYTES)
    return prefix / "bin/bazel", prefix


def is_suitable(path):
    """Whether this program, Bazel or bazelisk by whatever name, can be the Bazel we want.

    A bazelisk without a network cannot, unless it has that Bazel already. Asked in / so that no
    workspace has a say.
    """
    try:
        answer = subprocess.run(
            [path, "--version"], cwd="/", env={**os.environ, "USE_BAZEL_VERSION": recipe.VERSION},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.split() == ["bazel", recipe.VERSION]


def start(bazel, arguments):
    """Becomes Bazel, through the workspace's launcher hook as Bazel's own launcher does it."""
    root = next((folder for folder in (Path.cwd(), *Path.cwd().parents)
                 if any((folder / name).is_file() for name in BOUNDARIES)), None)
    hook = root and root / "tools/bazel"
    os.environ.setdefault("USE_BAZEL_VERSION", recipe.VERSION)  # should it be bazelisk
    if hook and os.access(hook, os.X_OK):
        os.environ["BAZEL_REAL"] = str(bazel)
        os.execv(hook, [str(hook), *arguments])
    os.execv(bazel, [str(bazel), *arguments])
