"""Checks the code objects of a kernel and arch before they are shipped; writes what they consist of.

A gate that fails names the code object, the functional and its config, the value that is wrong and what would be right
(gates.py has the gates).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from tools.code_object.gates import CodeObject, check, figures

EXTENSION = {"amd": "hsaco", "nvidia": "cubin"}
SHOWN = 20  # of the errors; all of them are counted


def read_instructions(program, paths):
    """{path of a code object: what the program `instructions` says of it}."""
    with tempfile.NamedTemporaryFile("w", suffix=".list") as file:
        file.write("".join(path + "\n" for path in paths))
        file.flush()
        lines = subprocess.run([program, file.name], check=True, capture_output=True, text=True).stdout.splitlines()
    return {row["path"]: row for row in map(json.loads, lines)}


def read_code_objects(reports, program):
    """The code objects that lie beside their reports."""
    objects, on_amd = [], []
    for path in reports:
        with open(path) as file:
            report = json.load(file)
        code_path = f"{path[:-len('.json')]}.{EXTENSION[report['vendor']]}"
        with open(code_path, "rb") as file:
            code = file.read()
        objects.append(CodeObject(os.path.basename(os.path.dirname(path)), code_path, code, report, {}))
        if report["vendor"] == "amd":
            on_amd.append(code_path)
    instructions = read_instructions(program, on_amd) if on_amd else {}
    return [one._replace(instructions=instructions.get(one.path, {})) for one in objects]


def main():
    parser = argparse.ArgumentParser(prog="check", fromfile_prefix_chars="@", description=__doc__)
    parser.add_argument("--archs", required=True, help="archs.json")
    parser.add_argument("--limits", required=True, help="the family's limits, e.g. kernels/flash/limits.json")
    parser.add_argument("--instructions", required=True, help="the program that reads instructions")
    parser.add_argument("--out", required=True, help="JSON: the figures of each code object")
    parser.add_argument("reports", nargs="*", metavar="REPORT", help="report of a code object; the code object lies beside it")
    options = parser.parse_args()
    with open(options.archs) as file:
        table = json.load(file)
    archs = {**table["archs"], **{f"{family}-generic": row for family, row in table["families"].items()}}
    with open(options.limits) as file:
        limits = json.load(file)

    errors, rows = [], []
    for one in read_code_objects(options.reports, options.instructions):
        row = archs[one.report["arch"]]
        config = " ".join(f"{name}={value}" for name, value in {**one.report["config"]["constants"], **one.report["config"]}.items()
                          if name in ("num_warps", "num_stages") or name in one.report["config"]["constants"])
        errors += [f"{one.functional} for {one.report['arch']}, {config}, {one.path}: {problem}" for problem in check(one, row, limits)]
        rows.append(figures(one, row))
    if errors:
        more = f"\nand {len(errors) - SHOWN} more" if len(errors) > SHOWN else ""
        sys.exit("\n".join(f"check: {error}" for error in errors[:SHOWN]) + more)
    with open(options.out, "w") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
