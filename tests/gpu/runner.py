"""Runs tests one after another. A test is a pair (name, function); it fails by raising."""

import os
import threading
import time
import traceback

# A kernel that does not end cannot be stopped from here, only the process can.
LIMIT_SECONDS = 120

# After one of these every later CUDA call fails too: going on would only hide the cause.
_FATAL = ("illegal memory access", "misaligned address", "unspecified launch failure", "device-side assert")


def run(tests, only=""):
    """Runs the tests whose name contains `only`.

    Returns:
      list of {"name", "ok", "seconds", "text"}; text is the failure's last line.
    """
    results = []
    for name, function in tests:
        if only not in name:
            continue
        begin = time.perf_counter()
        text = ""
        watchdog = threading.Timer(LIMIT_SECONDS, _give_up, [name])
        watchdog.daemon = True
        watchdog.start()
        try:
            function()
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            print(f"FAILED {name}\n    {text}", flush=True)
            if not isinstance(error, AssertionError):
                traceback.print_exc()
        finally:
            watchdog.cancel()
        results.append({"name": name, "ok": not text, "seconds": time.perf_counter() - begin, "text": text})
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
    print(f"{len(results) - failed} passed, {failed} failed", flush=True)
    return failed
