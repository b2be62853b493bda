"""Measures what the build promises, on two fresh clones of this repository.

    python3 tools/bench/build_facts.py [--arch gfx950] [--only attn_fwd.bf16.d128*]

- the same code objects and pack from two checkout paths, one compiled by workers, one without
- the time of a build that has nothing to do
- which actions a changed comment of the kernel runs again
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = "kernels/flash/attn_fwd.py"
TARGETS = ["//kernels/flash:attn_fwd", "//kernels/flash:attn_fwd_pack"]


def run(clone, *arguments):
    """(seconds, stdout and stderr) of one command of bazelw."""
    begin = time.monotonic()
    result = subprocess.run(["./bazelw", *arguments], cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode:
        sys.exit(f"build_facts: bazelw {' '.join(arguments)} failed in {clone}:\n{result.stdout}")
    return time.monotonic() - begin, result.stdout


def outputs(clone, options):
    """{name: sha256} of the code objects and the pack."""
    _, listing = run(clone, "cquery", *options, "--output=files", "--noshow_progress", " + ".join(TARGETS))
    result = {}
    for path in listing.splitlines():
        if path.endswith((".hsaco", ".cubin", ".pack")):
            with open(os.path.join(clone, path), "rb") as file:
                result[os.path.join(*path.split("/")[-2:])] = hashlib.sha256(file.read()).hexdigest()
    return result


def executed(explanation):
    """{mnemonic-like kind: count} of the actions that --explain lists."""
    kinds = {}
    for name in re.findall(r"^Executing action '(\w+)", explanation, re.M):
        kinds[name] = kinds.get(name, 0) + 1
    return kinds


def main():
    parser = argparse.ArgumentParser(prog="build_facts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="gfx950")
    parser.add_argument("--only", default="attn_fwd.bf16.d128*", help="functionals to compile, as --//kernels:only")
    choice = parser.parse_args()
    options = [f"--platforms=//platforms:{choice.arch}", f"--//kernels:only={choice.only}"]

    with tempfile.TemporaryDirectory(dir=os.path.expanduser("~/.cache")) as folder:
        first, second = os.path.join(folder, "one"), os.path.join(folder, "two/levels/deeper")
        for clone in (first, second):
            subprocess.run(["git", "clone", "--quiet", REPO, clone], check=True)
        try:
            cold, _ = run(first, "build", *options, "--noshow_progress", *TARGETS)
            run(second, "build", *options, "--strategy=TritonCompile=sandboxed", "--noshow_progress", *TARGETS)
            one, two = outputs(first, options), outputs(second, options)
            for name, digest in sorted(one.items()):
                print(f"{digest}  {name}")
            if not one or one != two:
                sys.exit(f"build_facts: the two clones differ: {sorted(one.items() ^ two.items())}")
            print(f"{len(one)} outputs are equal from two checkout paths, by workers and one by one")

            null = sorted(run(first, "build", *options, "--noshow_progress", *TARGETS)[0] for _ in range(5))
            print(f"cold {cold:.1f} s; null build: median {null[2]:.2f} s of five, {null[0]:.2f} to {null[4]:.2f}")

            with open(os.path.join(first, SOURCE), "a") as file:
                file.write("# a comment more\n")
            log = os.path.join(folder, "explain")
            run(first, "build", *options, "--noshow_progress", f"--explain={log}", "--verbose_explanations", *TARGETS)
            with open(log) as file:
                print("a comment more in the kernel runs again:", executed(file.read()))
            if outputs(first, options) != one:
                sys.exit("build_facts: the comment changed the outputs")
            print("and changes no byte of the outputs")
        finally:
            for clone in (first, second):
                run(clone, "clean", "--expunge")


if __name__ == "__main__":
    main()
