"""Compares the bytes of our packs with those of AOTriton's AKS2 files, on the same code objects.

    ./bazelw build //:images --platforms=gfx950
    ./bazelw run //tools/bench:pack_sizes -- $PWD/bazel-out/*/bin/kernels/flash
    ./bazelw run //tools/bench:pack_sizes -- --served_by=gfx1100,gfx11-generic DIR...

AKS2: a file for each functional, a header of 16 bytes and one .xz stream (preset 6, CRC-64) of a directory and the code objects as
the compiler wrote them. AOTriton stores these files in a zip archive, whose bytes are not counted.

--served_by: also what all archs that are found take together: an AKS2 file of each, against the packs of the archs named here,
which serve the others as well. Functionals that one of the archs lacks are left out there.
"""

import argparse
import glob
import json
import lzma
import os
import struct

from tools.pack.format import encode
from tools.pack.pack import make_pack

EXTENSION = {"amd": "hsaco", "nvidia": "cubin"}


def aks2_bytes(reports):
    """The size of the AKS2 file of one functional."""
    directory, images = b"", b""
    for path, report in reports:
        with open(f"{path[:-len('json')]}{EXTENSION[report['vendor']]}", "rb") as file:
            code = file.read()
        config = report["config"]
        words = [";".join(f"{name}={value}" for name, value in part.items()) for part in (
            report["functional"], config["constants"],
            {"waves_per_eu": config["waves_per_eu"], "num_warps": config["num_warps"], "num_stages": config["num_stages"]})]
        name = f";;#F;{words[0]};;#P;{words[1]};;#CO;{words[2]};;arch={report['arch']}".encode() + b"\0"
        directory += struct.pack("<5I", report["shared"], report["threads"], len(images), len(code), len(name)) + name
        images += code
    return 16 + len(lzma.compress(directory + images, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, preset=6))


def read_reports(directories):
    """{arch: {kernel: {functional's target: [(path, report)]}}} of all reports below the directories."""
    result = {}
    for path in sorted(path for directory in directories for path in glob.glob(os.path.join(directory, "*", "*.json"))):
        with open(path) as file:
            report = json.load(file)
        if "functional" in report:  # not what a check wrote
            functionals = result.setdefault(report["arch"], {}).setdefault(report["kernel"], {})
            functionals.setdefault(os.path.basename(os.path.dirname(path)), []).append((path, report))
    return result


def pack_bytes(functionals):
    return len(encode(make_pack([path for reports in functionals.values() for path, _ in reports], "")))


def show(name, kernel, functionals, theirs, ours):
    count = sum(len(reports) for reports in functionals.values())
    print(f"| {name} | {kernel} | {len(functionals)} | {count} | {theirs} | {ours} | {ours / theirs:.3f} | {ours // len(functionals)} |", flush=True)


def compare_archs(archs):
    print("| arch | kernel | functionals | code objects | AKS2 bytes | pack bytes | pack / AKS2 | pack bytes a functional |")
    print("|---|---|---|---|---|---|---|---|")
    for arch, kernels in archs.items():
        everything, their_sum, our_sum = {}, 0, 0
        for kernel, functionals in kernels.items():
            theirs, ours = sum(map(aks2_bytes, functionals.values())), pack_bytes(functionals)
            show(arch, kernel, functionals, theirs, ours)
            everything.update(functionals)
            their_sum, our_sum = their_sum + theirs, our_sum + ours
        show(arch, "all", everything, their_sum, our_sum)


def compare_together(archs, served_by):
    for arch in served_by:
        if arch not in archs:
            raise SystemExit(f"pack_sizes: --served_by names {arch}; the folders hold {', '.join(archs)}")
    chips = [arch for arch in archs if not arch.endswith("-generic")]
    theirs = ours = count = 0
    for kernel in archs[served_by[0]]:
        common = set.intersection(*(set(archs[arch].get(kernel, {})) for arch in {*chips, *served_by}))
        if not common:
            continue
        count += len(common)
        theirs += sum(aks2_bytes(archs[chip][kernel][name]) for chip in chips for name in common)
        ours += sum(pack_bytes({name: archs[arch][kernel][name] for name in sorted(common)}) for arch in served_by)
    print(f"\n{len(chips)} chips ({', '.join(chips)}), {count} functionals: AKS2 of each {theirs} bytes, packs of {' and '.join(served_by)} "
          f"{ours} bytes: {ours / theirs:.3f}")


def main():
    parser = argparse.ArgumentParser(prog="pack_sizes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--served_by", type=lambda text: text.split(","), help="the archs whose packs serve all")
    parser.add_argument("directories", nargs="+", metavar="DIR", help="a package's outputs, each with those of one arch or several")
    options = parser.parse_args()
    archs = read_reports(options.directories)
    compare_archs(archs)
    if options.served_by:
        compare_together(archs, options.served_by)


if __name__ == "__main__":
    main()
