"""Shows what the family test found, arch x kernel x functional.

    ./bazelw test --config=gate //tests/simulator/... ; ./bazelw run //tests/simulator:table [-- --all]

It reads the test's outputs in bazel-testlogs (or the folder that is named). Without --all: a line for each arch, kernel, dtype
and head_dim, the worst of its functionals, and every functional that is not right. Exits with 1 if there is one, or none at all.
"""

import argparse
import collections
import json
import os
import pathlib
import sys


def read(folder):
    """The lines of all shards."""
    paths = sorted(folder.glob("shard_*/test.outputs/functionals.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def grouped(lines, key):
    """Lines as rows of the table, by `key` of a line."""
    groups = collections.defaultdict(list)
    for line in lines:
        groups[key(line)].append(line)
    rows = []
    for name, group in sorted(groups.items()):
        verdicts = collections.Counter(line["verdict"] for line in group)
        worst = max(group, key=lambda line: line["ratio"])
        instructions, seconds = (sum(line[what] for line in group) for what in ("instructions", "seconds"))
        rows.append([*name, len({line["functional"] for line in group}), len(group), verdicts["right"], verdicts["wrong"] + verdicts["stopped"],
                     verdicts["refused"], f"{worst['ratio']:.2f} {worst['output']}", f"{instructions / 1e6:.2f}",
                     f"{instructions / seconds / 1e6:.1f}" if seconds else ""])
    return rows


def show(head, rows):
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(f"{text!s:<{width}}" if isinstance(text, str) else f"{text:>{width}}" for text, width in zip(row, widths)).rstrip())


COUNTS = ["functionals", "runs", "right", "wrong", "refused", "worst/floor", "M wave instr", "M/s"]


def main():
    parser = argparse.ArgumentParser(prog="table", description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="a line for every functional")
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="of the test's logs; default: that of family_test")
    options = parser.parse_args()
    folder = options.folder or pathlib.Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."), "bazel-testlogs/tests/simulator/family_test")
    lines = read(folder)
    if not lines:
        sys.exit(f"{folder} has no outputs of a run: ./bazelw test --config=gate //tests/simulator/... makes them")

    def by_head_dim(line):
        kernel, *words = line["functional"].split(".")
        return line["arch"], kernel, ".".join(words if options.all else words[:2])

    show(["arch", "kernel", "functional" if options.all else "of", *COUNTS], grouped(lines, by_head_dim))
    print()
    show(["arch", "kernel", *COUNTS], grouped(lines, lambda line: (line["arch"], line["functional"].split(".")[0])))
    wrong = [line for line in lines if line["verdict"] != "right"]
    for line in wrong:
        print(f"{line['verdict']}: {line['arch']} {line['functional']} [{line['config']}] by {line['op']}: {line['text']}")
    print(f"\n{len({(line['arch'], line['functional']) for line in lines})} functionals, {len(lines)} launches, {len(wrong)} not right")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
