"""What bazelw says on the terminal, and how it runs other programs."""
import contextlib
import os
import subprocess
import sys
import time


class SetupError(Exception):
    """Bazel cannot be set up; the text says why and what to do."""


def say(text):
    with contextlib.suppress(BrokenPipeError):  # a reader that went away must not stop the set-up
        print(f"bazelw: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(text):
    """Times one step and says so when it is done."""
    start = time.monotonic()
    yield
    say(f"{text} ({time.monotonic() - start:.1f} s)")


def run(command, **options):
    """Runs a program quietly and returns what it printed; its last lines are the error."""
    result = subprocess.run(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
        **options,
    )
    if result.returncode:
        said = (result.stderr.strip() or result.stdout.strip()).splitlines()[-12:]
        raise SetupError("\n  ".join([f"{command[0]} failed:", *said]))
    return result.stdout
