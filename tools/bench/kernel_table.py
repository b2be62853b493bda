"""Prints what the code objects of each kernel consist of, from the figures that their check wrote (tools/code_object).

    ./bazelw build //kernels/flash:all --platforms=gfx950 --output_groups=figures
    python3 tools/bench/kernel_table.py bazel-bin/kernels/flash

One row a kernel, arch, width of dtype and layout. Of its functionals: how many; the most registers; the waves that a SIMD holds, the
fewest and the median; how many spill, the most registers, and how many access scratch in the loop; the most local memory; the
instructions by class, and the share of matrix instructions among those of the innermost loop, the median; bytes as compiled.
--each prints a row for each functional.
"""

import argparse
import glob
import json
import os
import statistics

CLASSES = ("matrix", "vector", "scalar", "local", "global", "scratch")


def read_figures(directories):
    rows = []
    for path in sorted(path for directory in directories for path in glob.glob(os.path.join(directory, "*_pack", "*.figures.json"))):
        with open(path) as file:
            rows += json.load(file)
    return rows


def matrix_share(row):
    return row["loop"]["matrix"] / max(row["loop"]["instructions"], 1) if row["loop"] else 0


def spills_in_loop(row):
    return row["loop"]["scratch"] if row["loop"] else 0


def show_groups(rows):
    print("| kernel | arch | bits | layout | functionals | registers | waves: fewest, median | spill: functionals, most, in the loop | "
          f"local memory | {' | '.join(CLASSES)} | matrix in the loop | bytes |")
    print("|" + "---|" * (10 + len(CLASSES)) + "---|")
    groups = {}
    for row in rows:
        bits = "32" if row["axes"]["dtype"] in ("fp32", "i32") else "16"
        groups.setdefault((row["kernel"], row["arch"], bits, row["axes"].get("layout", "-")), []).append(row)
    for key, group in sorted(groups.items()):
        waves = sorted(row["waves"] or 0 for row in group)
        spilling = [row["spills"] for row in group if row["spills"]]
        counts = [str(sum(row["instructions"][name] for row in group)) for name in CLASSES]
        print(f"| {' | '.join(key)} | {len(group)} | {max(row['registers'] for row in group)} | {waves[0]}, {waves[len(waves) // 2]} | "
              f"{len(spilling)}, {max(spilling, default=0)}, {sum(spills_in_loop(row) > 0 for row in group)} | "
              f"{max(row['shared'] for row in group)} | {' | '.join(counts)} | {statistics.median(map(matrix_share, group)):.1%} | "
              f"{sum(row['size'] for row in group)} |")


def show_each(rows):
    print("| functional | arch | registers | waves | spills | scratch in the loop | local memory | instructions | matrix in the loop |")
    print("|" + "---|" * 9)
    for row in rows:
        print(f"| {row['functional']} | {row['arch']} | {row['registers']} | {row['waves'] or '-'} | {row['spills']} | {spills_in_loop(row)} | "
              f"{row['shared']} | {sum(row['instructions'].values())} | {matrix_share(row):.1%} |")


def main():
    parser = argparse.ArgumentParser(prog="kernel_table", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", action="store_true", help="a row for each functional")
    parser.add_argument("directories", nargs="+", metavar="DIR", help="a package's outputs")
    options = parser.parse_args()
    rows = read_figures(options.directories)
    if not rows:
        raise SystemExit(f"kernel_table: there are no */*_pack/*.figures.json in {', '.join(options.directories)}; build with --output_groups=figures")
    (show_each if options.each else show_groups)(rows)


if __name__ == "__main__":
    main()
