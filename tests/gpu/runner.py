"""Runs tests one after another. A test is a pair (name, function); it fails by raising."""

import os
import threading
import time
import traceback

from tests.gpu import ledger

# A kernel that does not end cannot be stopped from here, only the process can.
LIMIT_SECONDS = 120

# After one of these every later CUDA call fails too: going on would only hide the cause.
_FATAL = ("illegal memory access", "misaligned address", "unspecified launch failure", "device-side assert")


# How the library refuses what a pack was built without: with skip_missing no failure.
_MISSING = "was built without a kernel for"


def run(tests, only="", skip_missing=False):
    """Runs the tests whose name contains `only`.

    Returns:
      list of {"name", "ok", "skipped", "seconds", "text"}; text is the failure's last line.
    """
    results = []
    for name, function in tests:
        if only not in name:
            continue
        begin = time.perf_counter()
        text, skipped = "", False
        ledger.test = name
        watchdog = threading.Timer(LIMIT_SECONDS, _give_up, [name])
        watchdog.daemon = True
        watchdog.start()
        try:
            function()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            skipped = skip_missing and _MISSING in text
            if not skipped:
                print(f"FAILED {name}\n    {text}", flush=True)
            if not skipped and not isinstance(error, AssertionError):
                traceback.print_exc()
        finally:
            watchdog.cancel()
            ledger.finished(not text)
        results.append({"name": name, "ok": not text or skipped, "skipped": skipped,
                        "seconds": time.perf_counter() - begin, "text": text})
        if any(word in text for word in _FATAL):
            print("the GPU context is lost: the rest is not run", flush=True)
            break
    return results


def _give_up(name):
    print(f"FAILED {name}: still running after {LIMIT_SECONDS} s; the rest is not run", flush=True)
    os._exit(1)


def summary(results):
    """Prints the slowest tests and the count; returns how many failed."""
    failed = sum(not one["ok"] for one in results)
    slow = sorted(results, key=lambda one: -one["seconds"])[:3]
    print("slowest: " + ", ".join(f"{one['name']} {one['seconds']:.1f} s" for one in slow))
    for one in results:
        if not one["ok"]:
            print(f"FAILED {one['name']}: {one['text'][:200]}")
    skipped = sum(one["skipped"] for one in results)
    note = f", {skipped} skipped: not in the packs" if skipped else ""
    print(f"{len(results) - failed - skipped} passed, {failed} failed{note}", flush=True)
    return failed
