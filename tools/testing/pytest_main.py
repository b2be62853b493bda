"""Runs pytest on the files that the command line names, as Bazel asks: report, filter, shards."""

import os
import sys

import pytest


class Shard:
    """Keeps every TEST_TOTAL_SHARDS-th test, from TEST_SHARD_INDEX on."""

    def __init__(self, environment):
        self.index = int(environment["TEST_SHARD_INDEX"])
        self.total = int(environment["TEST_TOTAL_SHARDS"])
        # Tells Bazel that the shards are not all the same.
        with open(environment["TEST_SHARD_STATUS_FILE"], "w"):
            pass

    def pytest_collection_modifyitems(self, items):
        items[:] = items[self.index::self.total]


def main(arguments, environment):
    options, plugins = ["-p", "no:cacheprovider", "--import-mode=importlib", "-q"], []
    if "XML_OUTPUT_FILE" in environment:
        options.append(f"--junitxml={environment['XML_OUTPUT_FILE']}")
    if "TESTBRIDGE_TEST_ONLY" in environment:
        options += ["-k", environment["TESTBRIDGE_TEST_ONLY"]]
    if "TEST_SHARD_STATUS_FILE" in environment:
        plugins.append(Shard(environment))
    return pytest.main(options + arguments, plugins)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
