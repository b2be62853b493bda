"""Measures what it takes to plan a build of every arch, and says what it would compile.

    python3 tools/bench/build_scale.py [--seconds 3.1] [--bazel OPTION ...]

Nothing is compiled. `--seconds` is what one code object takes on average, measured elsewhere (`bazel --profile`).
"""

import argparse
import ast
import collections
import os
import subprocess
import sys
import tempfile
import time

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROFILES = ("smoke", "core", "full")

# One line a pack.
FORMAT = """
def format(target):
    for name, info in providers(target).items():
        if name.endswith("TritonKernelInfo"):
            return "%s %s %d %d" % (info.arch, info.kernel, len(info.functionals), len(info.reports.to_list()))
    return ""
"""


def bazelw(*arguments):
    result = subprocess.run([os.path.join(REPO, "bazelw"), *arguments], cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"build_scale: bazelw {' '.join(arguments)} failed:\n{result.stderr}")
    return result.stdout


def all_targets():
    """Every arch and every family of the table."""
    with open(os.path.join(REPO, "platforms/archs.bzl")) as file:
        dicts = {ast.unparse(node.targets[0]): ast.literal_eval(node.value) for node in ast.parse(file.read()).body if isinstance(node, ast.Assign)}
    return [*dicts["ARCHS"], *(f"{family}-generic" for family in dicts["FAMILIES"])]


def counts(profile, archs, options):
    """{arch: (functionals, code objects)}"""
    with tempfile.NamedTemporaryFile("w", suffix=".star") as file:
        file.write(FORMAT)
        file.flush()
        lines = bazelw("cquery", f"--//:profile={profile}", archs, *options, "--output=starlark", f"--starlark:file={file.name}",
                       "--noshow_progress", "kind(triton_pack, deps(//:images, 1))")
    result = collections.defaultdict(lambda: [0, 0])
    for line in filter(None, lines.splitlines()):
        arch, _, functionals, codes = line.split()
        result[arch][0] += int(functionals)
        result[arch][1] += int(codes)
    return result


def main():
    parser = argparse.ArgumentParser(prog="build_scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="of one compilation")
    parser.add_argument("--bazel", action="append", default=[], metavar="OPTION", help="an option of every Bazel command")
    choice = parser.parse_args()
    archs = "--//:archs=" + ",".join(all_targets())

    bazelw("shutdown")
    bazelw("build", "--nobuild", "//:library", *choice.bazel, "--noshow_progress")  # starts the server, reads the modules
    begin = time.monotonic()
    bazelw("build", "--nobuild", "//:images", archs, "--//:profile=full", *choice.bazel, "--noshow_progress")
    seconds = time.monotonic() - begin
    print(f"analysis of full for all archs: {seconds:.1f} s, heap {bazelw('info', 'used-heap-size-after-gc').split()[-1]}")

    total = {}
    tables = {profile: counts(profile, archs, choice.bazel) for profile in PROFILES}
    print("| arch |" + "".join(f" {profile}: functionals, code objects |" for profile in PROFILES) + "\n" + "|---" * (len(PROFILES) + 1) + "|")
    for arch in filter(tables["full"].__contains__, all_targets()):
        print(f"| {arch} |" + "".join(f" {tables[profile][arch][0]}, {tables[profile][arch][1]} |" for profile in PROFILES))
    for profile, table in tables.items():
        total[profile] = sum(codes for _, codes in table.values())
    print("| all |" + "".join(f" {total[profile]} code objects |" for profile in PROFILES))
    if choice.seconds:
        print(", ".join(f"{profile}: {codes * choice.seconds / 3600:.1f} core-hours" for profile, codes in total.items()))


if __name__ == "__main__":
    main()
