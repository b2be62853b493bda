"""The prefix is made once: whole or not at all, by one process at a time."""
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolchains.offline import store
from toolchains.offline.report import SetupError

ROOT = Path(__file__).parents[2]
# A process that makes cache/thing in two steps, with a long wait between them.
SLOW = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from toolchains.offline import store
def build(work, final):
    (work / "half").touch()
    print("half", flush=True)
    time.sleep(float(sys.argv[3]))
    (work / "whole").touch()
store.ensure(Path(sys.argv[2]), "thing", build, 0)
"""


def start_slow(cache, seconds):
    process = subprocess.Popen(
        [sys.executable, "-B", "-c", SLOW, str(ROOT), str(cache), str(seconds)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return process


def fill(work, final):
    (work / "whole").touch()


def never(work, final):
    raise AssertionError("built again")


def content(cache):
    return sorted(path.name for path in cache.iterdir() if path.name != "lock")


def test_builds_once(tmp_path):
    cache = tmp_path / "new" / "cache"
    final = store.ensure(cache, "thing", fill, 0)
    assert (final / "whole").exists()
    assert store.ensure(cache, "thing", never, 0) == final
    assert content(cache) == ["thing"]


def test_build_knows_the_final_place(tmp_path):
    seen = []
    store.ensure(tmp_path, "thing", lambda work, final: seen.append((work.parent, final)), 0)
    assert seen == [(tmp_path, tmp_path / "thing")]


def test_a_failed_build_leaves_nothing(tmp_path):
    def fail(work, final):
        (work / "half").touch()
        raise SetupError("no luck")

    with pytest.raises(SetupError, match="no luck"):
        store.ensure(tmp_path, "thing", fail, 0)
    assert content(tmp_path) == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_after_an_interrupt_the_next_run_starts_over(tmp_path, how):
    process = start_slow(tmp_path, 60)
    assert process.stdout.readline() == "half\n"
    process.send_signal(how)
    process.communicate()
    assert not (tmp_path / "thing").exists()
    final = store.ensure(tmp_path, "thing", fill, 0)
    assert [path.name for path in final.iterdir()] == ["whole"]
    assert content(tmp_path) == ["thing"]


def test_the_second_waits_for_the_first(tmp_path, capsys):
    process = start_slow(tmp_path, 1)
    assert process.stdout.readline() == "half\n"
    start = time.monotonic()
    final = store.ensure(tmp_path, "thing", never, 0)
    assert time.monotonic() - start > 0.5
    assert (final / "whole").exists()
    assert process.wait() == 0
    assert f"waiting for another bazelw that works in {tmp_path}" in capsys.readouterr().err


def test_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="(?s)cannot write to the cache .*set BAZELW_CACHE"):
        store.ensure(tmp_path / "file" / "cache", "thing", never, 0)


def test_too_little_room_is_said_before_the_work(tmp_path):
    with pytest.raises(SetupError, match="1048576 MiB are needed in .* are free"):
        store.ensure(tmp_path, "thing", never, 1 << 40)


def test_a_full_disk(tmp_path):
    def full(work, final):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(SetupError, match="the disk of .* is full"):
        store.ensure(tmp_path, "thing", full, 0)
    assert content(tmp_path) == []
