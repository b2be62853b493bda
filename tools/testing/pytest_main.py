"""Runs pytest on the files that the command line names, and leaves its report where Bazel looks."""

import os
import sys

import pytest

if __name__ == "__main__":
    options = ["-p", "no:cacheprovider", "--import-mode=importlib", "-q"]
    if "XML_OUTPUT_FILE" in os.environ:
        options.append(f"--junitxml={os.environ['XML_OUTPUT_FILE']}")
    if "TESTBRIDGE_TEST_ONLY" in os.environ:
        options += ["-k", os.environ["TESTBRIDGE_TEST_ONLY"]]
    sys.exit(pytest.main(options + sys.argv[1:]))
