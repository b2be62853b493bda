"""Prints "N passed, N failed" of the last `bazel test`, counted from the reports that it left.

Every test case of every report in bazel-testlogs counts; a skipped one counts as neither.
"""

import argparse
import glob
import os
import sys
import xml.etree.ElementTree as ElementTree


def count(directory):
    """(passed, failed, skipped) of all reports below `directory`."""
    passed = failed = skipped = 0
    for path in sorted(glob.glob(os.path.join(glob.escape(directory), "**", "test.xml"), recursive=True)):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            outcomes = {child.tag for child in case}
            if outcomes & {"failure", "error"}:
                failed += 1
            # googletest writes what it did not run as an attribute, pytest as a child.
            elif "skipped" in outcomes or case.get("status") == "notrun":
                skipped += 1
            else:
                passed += 1
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(prog="count_results", description=__doc__)
    parser.add_argument("directory", help="bazel-testlogs")
    parser.add_argument("--exit_code", type=int, default=0, help="of `bazel test`: a run that failed without a failed test counts as one")
    options = parser.parse_args()
    passed, failed, skipped = count(options.directory)
    if options.exit_code and not failed:
        failed = 1
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
