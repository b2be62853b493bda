"""Prints a table of what the compiler made of each kernel, from the reports beside its code objects.

    python3 tools/bench/kernel_table.py bazel-out/*/bin/kernels/flash

One row a kernel, arch and kind of functional: how many there are, and the most registers, spilled
vector registers and local memory among them.
"""

import argparse
import glob
import json
import os


def rows(directories):
    """{(kernel, arch, dtype bits, layout): [reports]} of all reports below `directories`."""
    result = {}
    for directory in directories:
        for path in glob.glob(os.path.join(directory, "*", "*.json")):
            with open(path) as file:
                report = json.load(file)
            functional = report["functional"]
            bits = {"fp32": "32", "i32": "32"}.get(functional["dtype"], "16")
            key = (report["kernel"], report["arch"], bits, functional.get("layout", "-"))
            result.setdefault(key, []).append(report)
    return result


def main():
    parser = argparse.ArgumentParser(prog="kernel_table", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", nargs="+", metavar="DIR", help="a package's outputs")
    print("| kernel | arch | bits | layout | functionals | registers | spills: functionals, most | local memory | bytes |")
    print("|---|---|---|---|---|---|---|---|---|")
    for key, reports in sorted(rows(parser.parse_args().directories).items()):
        most = {name: max(report[name] for report in reports) for name in ("registers", "spills", "shared")}
        spilling = sum(report["spills"] > 0 for report in reports)
        print(f"| {' | '.join(key)} | {len(reports)} | {most['registers']} | {spilling}, {most['spills']} | {most['shared']} | "
              f"{sum(report['size'] for report in reports)} |")


if __name__ == "__main__":
    main()
