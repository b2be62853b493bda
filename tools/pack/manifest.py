"""Says what a folder of packs holds: manifest.json beside them."""

import argparse
import hashlib
import json

from tools.pack.version import VERSION


def digest(path):
    with open(path, "rb") as file:
        content = file.read()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def main():
    parser = argparse.ArgumentParser(prog="manifest", description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--facts", required=True, help="JSON: {arch, vendor, triton, settings, kernels: {path: {...}}}")
    parser.add_argument("packs", nargs="*", metavar="PACK", help="in the order of `kernels`")
    options = parser.parse_args()
    with open(options.facts) as file:
        facts = json.load(file)
    packs = {path: {**kernel, **digest(pack)} for (path, kernel), pack in zip(facts.pop("kernels").items(), options.packs, strict=True)}
    with open(options.out, "w") as file:
        json.dump({"version": VERSION, **facts, "packs": packs}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
