"""A tree for several archs: each has what it has alone, and archs of the same code are there once."""

import glob
import os

from tools.pack.format import read_pack

HERE = os.path.dirname(os.path.abspath(__file__))


def tree(name):
    """{path below the images: content}"""
    files = {}
    for path in glob.glob(os.path.join(HERE, name, "*/**/*"), recursive=True):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                files[os.path.relpath(path, os.path.join(HERE, name))] = file.read()
    return files


def test_an_arch_has_the_same_bytes_as_alone():
    alone, together = tree("alone"), tree("together")
    assert len(alone) == 4 and {path.split("/")[0] for path in alone} == {"amd-gfx1100"}
    assert {path: together[path] for path in alone} == alone


def test_archs_of_the_same_code_are_there_once():
    assert {path.split("/")[0] for path in tree("together")} == {"amd-gfx942", "amd-gfx1100", "amd-gfx1201"}


def test_archs_have_code_of_their_own():
    first, second = (read_pack(os.path.join(HERE, f"together/amd-{arch}/flash/bwd_preprocess.pack")) for arch in ("gfx1100", "gfx1201"))
    assert first.functionals[0].variants[0].code != second.functionals[0].variants[0].code
