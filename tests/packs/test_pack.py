"""The pack format: what is written is read back, equal packs are equal bytes, bad ones are refused."""

import hashlib
import json
import os
import random
import re

import pytest

from tests.packs.elf_file import ABSOLUTE, GLOBAL_FUNCTION, TEXT, elf_file
from tools.code_object.elf import stripped
from tools.pack.format import Choice, Functional, Pack, PackError, Variant, decode, encode, read_pack, write_pack
from tools.pack.pack import make_pack


def functional(dtype, head_dim, *codes):
    variants = [Variant("attn_fwd", code, 256, 1024, {"BLOCK_M": 64 + i, "BLOCK_N": -1}) for i, code in enumerate(codes)]
    last = len(codes) - 1
    choices = [Choice(i, max_seqlen_q=64 * (i + 1), max_seqlen_k=1000, min_fill=50) for i in range(last)] + [Choice(last)]
    return Functional((dtype, head_dim), [("Q", f"*{dtype}"), ("seqlen_q", "i32")], variants, choices)


def sample():
    return Pack(
        {"kernel": "attn_fwd", "arch": "gfx942"},
        [("dtype", ("fp16", "bf16")), ("head_dim", ("16", "32"))],
        [functional("fp16", "16", b"\x01" * 400, b"\x02" * 300), functional("bf16", "32", b"\x03" * 500)],
    )


def test_round_trip(tmp_path):
    path = str(tmp_path / "a.pack")
    write_pack(path, sample())
    assert read_pack(path) == sample()
    assert os.listdir(tmp_path) == ["a.pack"]


def test_equal_packs_are_equal_bytes_whatever_the_order():
    shuffled = sample()
    shuffled.functionals.reverse()
    assert encode(shuffled) == encode(sample())


def test_equal_code_objects_are_stored_once():
    code = bytes(range(256)) * 40
    twice = Pack({}, [("dtype", ("a", "b"))], [
        Functional(("a",), [], [Variant("k", code, 1, 0, {}), Variant("k", code, 1, 0, {})], [Choice(0, max_seqlen_q=8), Choice(1)]),
        Functional(("b",), [], [Variant("k", code, 1, 0, {})], [Choice(0)]),
    ])
    once = Pack({}, [("dtype", ("a", "b"))], [twice.functionals[1]])
    assert len(encode(twice)) - len(encode(once)) < 300  # records, but no second blob
    assert decode(encode(twice)) == twice


def test_functionals_that_are_alike_share_a_blob():
    random_bytes = random.Random(1).randbytes
    bodies = [random_bytes(40_000) for _ in range(8)]

    def size(*codes):
        rows = [Functional((str(i),), [], [Variant("k", code, 1, 0, {})], [Choice(0)]) for i, code in enumerate(codes)]
        pack = Pack({}, [("n", tuple(str(i) for i in range(len(codes))))], rows)
        assert decode(encode(pack)) == pack
        return len(encode(pack))

    # 16 code objects of 40 kB do not fit into one blob. Each body is there twice, far apart by number.
    twins = [body[:-8] + random_bytes(8) for body in bodies]
    assert size(*bodies, *twins) < size(*bodies) + 20_000


def test_equal_lists_of_arguments_and_constants_are_stored_once():
    rows = [Functional((str(i),), [("Q", "*fp16")] * 100, [Variant("k", b"code", 1, 0, {"BLOCK_M": 64})], [Choice(0)]) for i in range(64)]
    few, many = (len(encode(Pack({}, [("n", tuple(map(str, range(64))))], rows[:count]))) for count in (1, 64))
    assert many - few < 64 * 100  # two records, not a hundred


@pytest.mark.parametrize("choices, text", [
    ([], "the last of its choices must have no bounds"),
    ([Choice(0, max_seqlen_q=64)], "the last of its choices must have no bounds"),
    ([Choice(0, max_seqlen_k=64)], "the last of its choices must have no bounds"),
    ([Choice(0, min_fill=1)], "the last of its choices must have no bounds"),
    ([Choice(5)], "names variant 5 of 1"),
    ([Choice(0), Choice(0)], "is never reached"),
    ([Choice(0, max_seqlen_k=64), Choice(0, max_seqlen_q=8, max_seqlen_k=32), Choice(0)], "is never reached"),
])
def test_a_tuning_table_with_holes_or_dead_rows_is_refused(choices, text):
    bad = sample()
    bad.functionals[1].choices = choices
    with pytest.raises(PackError, match=text):
        encode(bad)


def test_rows_of_the_tuning_table_may_overlap():
    pack = sample()
    pack.functionals[0].choices = [
        Choice(0, max_seqlen_q=64, min_fill=100), Choice(1, max_seqlen_q=64), Choice(0, max_seqlen_k=64), Choice(1)]
    assert decode(encode(pack)) == pack


def test_a_functional_given_twice_is_refused():
    bad = sample()
    bad.functionals.append(bad.functionals[0])
    with pytest.raises(PackError, match="given twice"):
        encode(bad)


def test_damage_is_noticed():
    data = encode(sample())
    for length in range(0, len(data), 37):
        with pytest.raises(PackError):
            decode(data[:length])
    with pytest.raises(PackError, match="CRC"):
        decode(data[:100] + bytes([data[100] ^ 1]) + data[101:])


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(OSError):
        write_pack(str(tmp_path / "missing" / "a.pack"), sample())
    full = tmp_path / "a.pack"
    full.mkdir()  # os.replace cannot put a file there
    with pytest.raises(OSError):
        write_pack(str(full), sample())
    assert os.listdir(tmp_path) == ["a.pack"]


def code_object(name):
    return elf_file([(name, GLOBAL_FUNCTION, TEXT, 0x1000), ("num_vgpr", GLOBAL_FUNCTION, ABSOLUTE, 8)])


def report(directory, name, code=code_object("attn_fwd"), **changes):
    facts = {
        "kernel": "attn_fwd", "family": "flash", "vendor": "amd", "arch": "gfx942", "triton": "3.6.0",
        "axes": [["dtype", ["fp16", "bf16"]]], "functional": {"dtype": "fp16"},
        "config": {"constants": {"BLOCK_M": 64}, "max_seqlen_q": None}, "symbol": "attn_fwd", "threads": 256, "shared": 0,
        "arguments": [["Q", "*fp16"]], "sha256": hashlib.sha256(code).hexdigest(), **changes,
    }
    (directory / f"{name}.json").write_text(json.dumps(facts))
    (directory / f"{name}.hsaco").write_bytes(code)
    return str(directory / f"{name}.json")


def test_reports_become_a_pack(tmp_path):
    codes = code_object("s"), code_object("l")
    small = report(tmp_path, "small", codes[0], config={"constants": {"BLOCK_M": 16}, "max_seqlen_q": 64, "max_seqlen_k": None, "min_fill": 150})
    pack = make_pack([small, report(tmp_path, "large", codes[1])], "--//:profile=core")
    assert pack.meta["arch"] == "gfx942" and pack.meta["abi"] == "1" and pack.meta["settings"] == "--//:profile=core"
    assert re.fullmatch(r"\d+\.\d+\.\d+", pack.meta["version"])
    assert pack.functionals[0].choices == [Choice(0, max_seqlen_q=64, min_fill=150), Choice(1)]
    assert [variant.code for variant in pack.functionals[0].variants] == [stripped(code) for code in codes]
    # The hash is that of the report, which says how the code object was compiled.
    assert [variant.hash for variant in pack.functionals[0].variants] == [hashlib.sha256(code).hexdigest()[:16] for code in codes]


def test_what_does_not_belong_together_is_refused(tmp_path):
    first = report(tmp_path, "a")
    with pytest.raises(PackError, match="one pack holds one kernel for one arch"):
        make_pack([first, report(tmp_path, "b", arch="gfx950")], "--//:profile=core")
    with pytest.raises(PackError, match="different arguments"):
        make_pack([first, report(tmp_path, "c", arguments=[["K", "*fp16"]])], "--//:profile=core")
    with pytest.raises(PackError, match="is not the code object"):
        make_pack([report(tmp_path, "d", sha256="0" * 64)], "--//:profile=core")
    with pytest.raises(PackError, match="e.hsaco is no code object: it starts with b'text'"):
        make_pack([report(tmp_path, "e", b"text")], "--//:profile=core")
    with pytest.raises(PackError, match="no variant to pack"):
        make_pack([], "--//:profile=core")
