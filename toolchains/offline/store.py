"""A directory that is made once: whole or not at all, by one process at a time."""
import errno
import fcntl
import shutil
import tempfile
from pathlib import Path

from toolchains.offline.report import SetupError, say

UNFINISHED = "unfinished-"


def ensure(cache, name, build, free_bytes):
    """Returns cache/name; where it is missing, build(work, final) fills work, which then becomes it.

    build gets the final path too, since some files must hold it before the move.
    """
    final = cache / name
    if final.is_dir():
        return final
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = open(cache / "lock", "w")
    except OSError as error:
        raise SetupError(
            f"cannot write to the cache {cache}: {error.strerror}\n"
            "  set BAZELW_CACHE to a directory that you can write to"
        ) from error
    with lock:
        _acquire(lock, cache)
        if final.is_dir():  # made while we waited
            return final
        for leftover in cache.glob(UNFINISHED + "*"):  # of a run that was killed
            shutil.rmtree(leftover)
        _check_space(cache, free_bytes)
        work = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=cache))
        try:
            build(work, final)
            work.chmod(0o755)
            work.rename(final)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise SetupError(f"the disk of {cache} is full") from error
            raise
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return final


def _acquire(lock, cache):
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"waiting for another bazelw that works in {cache}")
        fcntl.flock(lock, fcntl.LOCK_EX)


def _check_space(cache, needed):
    free = shutil.disk_usage(cache).free
    if free < needed:
        raise SetupError(
            f"{needed >> 20} MiB are needed in {cache} for a moment, {free >> 20} MiB are free\n"
            "  make room, or set BAZELW_CACHE to a directory on another disk"
        )
