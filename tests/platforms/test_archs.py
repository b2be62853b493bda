"""Everything that lists archs agrees with the arch table."""

import ast
import json
import os
import re

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEVELS = ("supported", "experimental", "tech_preview")


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
    archs, gpus = table()["ARCHS"], table()["GPUS"]
    for name, arch in archs.items():
        assert set(arch) == {"vendor", "family", "wave_size", "level", "lds"}, name
        assert arch["wave_size"] in (32, 64) and arch["level"] in LEVELS, name
        assert any(gpu["arch"] == name for gpu in gpus.values()), f"{name} has no GPU"
    for name, gpu in gpus.items():
        assert re.fullmatch(re.escape(gpu["arch"]) + r"_mod\d+", name) and gpu["arch"] in archs


def test_json_is_the_table():
    assert json.loads(text("platforms/archs.json")) == {
        "archs": table()["ARCHS"], "families": table()["FAMILIES"], "gpus": table()["GPUS"]}


def test_header_is_the_table():
    rows = re.findall(r'\{"(\w+)", "(\w+)", "(\w+)", (\d+), "(\w+)", (\d+), (\d+)\},', text("platforms/archs.h"))
    gpus = table()["GPUS"].values()
    assert rows == [
        (name, arch["vendor"], arch["family"], str(arch["wave_size"]), arch["level"], str(arch["lds"]),
         str(sum(gpu["arch"] == name for gpu in gpus)))
        for name, arch in table()["ARCHS"].items()
    ] + [
        (name, family["vendor"], key, str(family["wave_size"]), family["level"], str(family["lds"]), "0")
        for key, family in table()["FAMILIES"].items() for name in family["others"]
    ]


def test_families_add_archs_to_those_of_the_table():
    archs = table()["ARCHS"]
    for key, family in table()["FAMILIES"].items():
        assert set(family) == {"others", "vendor", "wave_size", "level", "lds"} and family["level"] in LEVELS
        members = [arch for arch in archs.values() if arch["family"] == key]
        assert members and not set(family["others"]) & set(archs), key
        assert all(arch[field] == family[field] for arch in members for field in ("vendor", "wave_size", "lds")), key


def test_every_arch_has_a_config():
    configs = dict(re.findall(r"^build:(\w+) --platforms=//platforms:(\w+)$", text(".bazelrc"), re.M))
    assert configs == {name: name for name in table()["ARCHS"]}


def test_every_arch_stands_in_the_readme():
    rows = re.findall(r"^\| `((?:gfx|sm_)\w+)` \| (.+?) \| (.+?) \|", text("README.md"), re.M)
    assert [(name, level) for name, _, level in rows] == [
        (name, arch["level"].replace("_", " ")) for name, arch in table()["ARCHS"].items()
    ]
    for name, products, _ in rows:
        for gpu in table()["GPUS"].values():
            assert gpu["arch"] != name or gpu["name"] in products
