"""Everything that lists archs agrees with the arch table."""

import ast
import json
import os
import re

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEVELS = ("supported", "experimental", "tech_preview", "compile_only")
FIELDS = {"vendor", "family", "wave_size", "level", "lds", "mach", "gpus"}


def text(path):
    with open(os.path.join(REPO, path)) as file:
        return file.read()


def table():
    """The literals of archs.bzl, read as `tools/bazel` reads them."""
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(text("platforms/archs.bzl")).body
        if isinstance(node, ast.Assign)
    }


def test_rows_are_complete():
    archs = table()["ARCHS"]
    for name, arch in archs.items():
        assert set(arch) - {"code_of"} == FIELDS, name
        assert arch["wave_size"] in (32, 64) and arch["level"] in LEVELS, name
        assert (arch["mach"] > 0) == (arch["vendor"] == "amd"), name
        assert arch["gpus"] and set(arch["gpus"][0]) == {"name"}, f"{name}: the first GPU is what no properties tell"
        for gpu in arch["gpus"][1:]:
            assert {"name"} < set(gpu) <= {"name", "multiprocessors", "memory_gib"}, name
    machs = [arch["mach"] for arch in [*archs.values(), *table()["FAMILIES"].values()] if arch["mach"]]
    assert len(set(machs)) == len(machs)


def test_archs_of_the_same_code_are_of_one_family():
    archs = table()["ARCHS"]
    for name, arch in archs.items():
        other = archs[arch.get("code_of", name)]
        assert "code_of" not in other or other is arch, name
        assert all(arch[field] == other[field] for field in ("vendor", "family", "wave_size", "lds")), name
        assert len(arch.get("code_of", name)) == len(name), "the name is written over the other"


def test_archs_of_a_family_are_alike():
    archs = table()["ARCHS"]
    for key, family in table()["FAMILIES"].items():
        assert set(family) == FIELDS - {"family", "gpus"} and family["level"] in LEVELS
        members = [arch for arch in archs.values() if arch["family"] == key]
        assert len(members) > 1, key
        assert all(arch[field] == family[field] for arch in members for field in ("vendor", "wave_size", "lds")), key
    for name, arch in archs.items():
        assert arch["family"] in (name, *table()["FAMILIES"]), name


def test_json_is_the_table():
    assert json.loads(text("platforms/archs.json")) == {"archs": table()["ARCHS"], "families": table()["FAMILIES"]}


def test_header_is_the_table():
    rows = re.findall(r'\{"(\w+)", "(\w+)", "(\w+)", "(\w+)", (\d+), "(\w+)", (\d+), (\d+)\},', text("platforms/archs.h"))
    assert rows == [
        (name, arch["vendor"], arch["family"], arch.get("code_of", name), str(arch["wave_size"]), arch["level"], str(arch["lds"]),
         str(arch["mach"]))
        for name, arch in table()["ARCHS"].items()
    ]
    gpus = re.findall(r'\{"(\w+)", (\d+), (\d+), (\d+)\},', text("platforms/archs.h"))
    assert gpus == [
        (name, str(mod), str(gpu.get("multiprocessors", 0)), str(gpu.get("memory_gib", 0)))
        for name, arch in table()["ARCHS"].items() for mod, gpu in enumerate(arch["gpus"]) if mod
    ]


def test_every_arch_stands_in_the_readme():
    rows = re.findall(r"^\| `((?:gfx|sm_)\w+)` \| (.+?) \| (.+?) \|", text("README.md"), re.M)
    assert [(name, level) for name, _, level in rows] == [
        (name, arch["level"].replace("_", " ")) for name, arch in table()["ARCHS"].items()
    ]
    for name, products, _ in rows:
        for gpu in table()["ARCHS"][name]["gpus"]:
            assert gpu["name"] in products
