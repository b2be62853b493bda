"""The library of every claim: its name, and the names that it exports."""

import os
import pathlib
import re
import subprocess

import pytest

LIBRARIES = sorted(str(path) for path in pathlib.Path(os.getcwd()).glob("libaotriton*.so.*"))
SUFFIX = "_TEprivate"


NM = os.environ["NM"]
OBJDUMP = os.path.join(os.path.dirname(NM), "objdump")


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def expected(suffix):
    """exports.txt, with the suffix behind every `aotriton`; mangled names have its length before it."""
    names = (pathlib.Path(__file__).parent / "exports.txt").read_text().split()
    namespace = "aotriton" + suffix
    names = [name.replace("8aotriton", f"{len(namespace)}{namespace}") if name.startswith("_Z") else name.replace("aotriton", namespace, 1)
             for name in names]
    return set(names)


def test_every_claim_is_here():
    assert [os.path.basename(path) for path in LIBRARIES] == sorted(
        [f"libaotriton_v2.so.{release}" for release in os.environ["RELEASES"].split(",")] + [f"libaotriton{SUFFIX}_v2.so.0.11.2"])


@pytest.mark.parametrize("path", LIBRARIES, ids=os.path.basename)
def test_exports_what_the_table_lists(path):
    suffix = SUFFIX if SUFFIX in path else ""
    lines = run(NM, "--dynamic", "--defined-only", path).splitlines()
    assert {line.split()[-1] for line in lines} == expected(suffix)


@pytest.mark.parametrize("path", LIBRARIES, ids=os.path.basename)
def test_is_called_what_its_file_is(path):
    (soname,) = re.findall(r"SONAME +(\S+)", run(OBJDUMP, "-p", path))
    assert soname == os.path.basename(path)


# Else a copy under the same names, loaded earlier, would take over calls from within.
@pytest.mark.parametrize("path", LIBRARIES, ids=os.path.basename)
def test_calls_itself_directly(path):
    _, relocations = run(OBJDUMP, "--dynamic-reloc", path).split("DYNAMIC RELOCATION RECORDS")
    assert "aotriton" not in relocations, re.findall(r".*aotriton.*", relocations)
