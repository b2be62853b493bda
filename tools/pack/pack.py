"""Gathers the code objects of one kernel and arch, with their reports, into a pack."""

import argparse
import hashlib
import json
import sys

from tools.code_object.elf import ElfError, stripped
from tools.pack.format import ABI, Choice, Functional, Pack, PackError, Variant, write_pack
from tools.pack.version import VERSION

# What a config may say about the calls it is for; one that says nothing is for all.
BOUNDS = ("max_seqlen_q", "max_seqlen_k", "min_fill")


def read_variant(report_path):
    """(report, Variant) of a report and the code object beside it."""
    with open(report_path) as file:
        report = json.load(file)
    code_path = report_path[:-len("json")] + {"amd": "hsaco", "nvidia": "cubin"}[report["vendor"]]
    with open(code_path, "rb") as file:
        code = file.read()
    if hashlib.sha256(code).hexdigest() != report["sha256"]:
        raise PackError(f"{code_path} is not the code object that {report_path} describes")
    try:
        code = stripped(code)
    except ElfError as error:
        raise PackError(f"{code_path} is no code object: {error}") from error
    return report, Variant(report["symbol"], code, report["threads"], report["shared"], report["config"]["constants"],
                           report["sha256"][:16])


def make_pack(report_paths, settings):
    """The pack of all variants; each must be of the same kernel, arch and axes. `settings` chose them."""
    if not report_paths:
        raise PackError("there is no variant to pack: does --//kernels:only exclude every functional?")
    meta, axes, functionals = None, None, {}
    for path in report_paths:
        report, variant = read_variant(path)
        this_meta = {key: report[key] for key in ("kernel", "family", "vendor", "arch", "triton")}
        this_meta.update(abi=ABI, version=VERSION, settings=settings)
        this_axes = [(name, tuple(values)) for name, values in report["axes"]]
        if meta is None:
            meta, axes = this_meta, this_axes
        elif (this_meta, this_axes) != (meta, axes):
            raise PackError(f"{path} is of {this_meta}, the first report of {meta}: one pack holds one kernel for one arch")
        values = tuple(report["functional"][name] for name, _ in axes)
        arguments = [tuple(argument) for argument in report["arguments"]]
        functional = functionals.setdefault(values, Functional(values, arguments, [], []))
        if functional.arguments != arguments:
            raise PackError(f"{path}: the variants of one functional take different arguments")
        bounds = {name: report["config"][name] for name in BOUNDS if report["config"].get(name) is not None}
        functional.choices.append(Choice(len(functional.variants), **bounds))
        functional.variants.append(variant)
    return Pack(meta, axes, list(functionals.values()))


def main():
    parser = argparse.ArgumentParser(prog="pack", fromfile_prefix_chars="@", description=__doc__)
    parser.add_argument("--out", required=True, help="the pack")
    parser.add_argument("--settings", required=True, help="what chose the functionals, as on Bazel's command line")
    parser.add_argument("reports", nargs="*", metavar="REPORT", help="report of a code object; the code object lies beside it")
    options = parser.parse_args()
    try:
        write_pack(options.out, make_pack(options.reports, options.settings))
    except PackError as error:
        sys.exit(f"pack: {error}")


if __name__ == "__main__":
    main()
