"""Runs one test on a GPU of one arch that no other test has, or says why it is skipped.

    gpu_test.py --arch=gfx942 --bundle=tests/gpu/bundle.tar.gz [options of tests/gpu/run.py]
    gpu_test.py --arch=gfx942 --binary=PATH --images=DIR [options of googletest]

A machine without such a GPU is no failure: the reason is printed, and stands in the report. The bundle
needs a Python with torch: AOTRITON_GPU_PYTHON, else python3.
"""

import argparse
import fcntl
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import time
import xml.etree.ElementTree as ElementTree

from tests.rocm import gpus


def write_report(path, suite, cases):
    """A test.xml. cases: {"name", "ok", "seconds", and the text of what was "failed" or "skipped"}."""
    root = ElementTree.Element("testsuite", name=suite, tests=str(len(cases)))
    for case in cases:
        element = ElementTree.SubElement(root, "testcase", name=case["name"], classname=suite, time=f"{case['seconds']:.3f}")
        if case.get("skipped") or not case["ok"]:
            ElementTree.SubElement(element, "skipped" if case.get("skipped") else "failure", message=case["text"])
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def take(indices, folder):
    """(index, open lock file) of one of the GPUs, once it is free. The lock ends with the process."""
    while True:
        for index in indices:
            lock = open(pathlib.Path(folder) / f"aotriton-gpu-{index}.lock", "w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return index, lock
            except BlockingIOError:
                lock.close()
        time.sleep(0.2)


def child_environment(environment, index):
    """For a child that sees one GPU, and none of the packages of this program."""
    return {**{name: value for name, value in environment.items() if not name.startswith("PYTHON")},
            "ROCR_VISIBLE_DEVICES": str(index)}


def run_bundle(bundle, arguments, environment):
    """Runs the Python suite and turns its results into Bazel's report."""
    folder = pathlib.Path(environment["TEST_TMPDIR"])
    with tarfile.open(bundle) as archive:
        archive.extractall(folder)
    results = folder / "results.json"
    python = environment.get("AOTRITON_GPU_PYTHON", "python3")
    status = subprocess.run(
        [python, folder / "aotriton_bundle/run.py", "--only-tests", "--json", results, *arguments], env=environment).returncode
    if results.is_file() and "XML_OUTPUT_FILE" in environment:
        write_report(environment["XML_OUTPUT_FILE"], "tests/gpu", json.loads(results.read_text()).get("tests", []))
    return status


def main(arguments, environment, root="/"):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--bundle")
    parser.add_argument("--binary")
    parser.add_argument("--images")
    options, rest = parser.parse_known_args(arguments)

    archs, why = gpus.find(root)
    indices = [index for index, arch in enumerate(archs) if arch == options.arch]
    if not indices:
        reason = f"no {options.arch} GPU on this machine: " + (why or f"it has {', '.join(archs)}")
        print(f"SKIPPED: {reason}")
        if "XML_OUTPUT_FILE" in environment:
            case = {"name": options.arch, "ok": True, "skipped": True, "seconds": 0, "text": reason}
            write_report(environment["XML_OUTPUT_FILE"], "tests/rocm", [case])
        return 0
    if not (options.bundle or options.binary):
        print(f"This machine has a {options.arch} GPU that Bazel did not see when it looked. After `bazel shutdown` it looks again.")
        return 1
    index, _lock = take(indices, environment.get("AOTRITON_GPU_LOCKS", "/tmp"))
    print(f"GPU {index} of {len(archs)}, {options.arch}", flush=True)
    environment = child_environment(environment, index)
    if options.bundle:
        return run_bundle(options.bundle, rest, environment)
    environment["AOTRITON_IMAGES_DIR"] = os.path.abspath(options.images)
    return subprocess.run([os.path.abspath(options.binary), *rest], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
