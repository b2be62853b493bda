"""The tool: it shows a code object, runs its kernel, and says what is wrong in one line."""

import pathlib
import re
import struct
import subprocess

import pytest

from tests.kernels import philox
from tests.simulator.simulated_gpu import ARCHS
from tools.pack import format as pack_format

IMAGES = pathlib.Path.cwd() / "aotriton.images"
MATRIX_CLASSES = {"gfx90a": "v_mfma", "gfx942": "v_mfma", "gfx950": "v_mfma", "gfx1100": "v_wmma", "gfx1201": "v_wmma"}
# debug_fill_dropout_rng of 8 x 8 words: R, its strides, heads, sequence lengths, seed, offset, Triton's two.
SEED, OFFSET = 114514, 1919810
WORDS = ["i32:64:undefined", "i64=64", "i64=64", "i64=8", "i64=1", "i32=1", "i32=8", "i32=8", f"i64={SEED}", f"i64={OFFSET}", "null", "null"]


def code_of(arch, kernel="attn_fwd", value="fp16"):
    """Of the first functional with that dtype."""
    pack = pack_format.read_pack(str(IMAGES / f"amd-{arch}/flash/{kernel}.pack"))
    return next(one for one in pack.functionals if one.values[0] == value).variants[0].code


def tool(tmp_path, code, *words):
    path = tmp_path / "kernel.hsaco"
    path.write_bytes(code)
    return subprocess.run(["simulator/run", str(path), *words], capture_output=True, text=True)


def random_words(tmp_path, arch, *words, arguments=WORDS):
    return tool(tmp_path, code_of(arch, "debug_fill_dropout_rng", "i32"), "--grid", "1", "--lds", "8192", *words, *arguments)


def counts_of(text):
    return {name: int(count) for name, count in (line.split() for line in text.splitlines() if line.startswith("  "))}


@pytest.mark.parametrize("arch", ARCHS)
def test_tool_shows_a_code_object(arch, tmp_path):
    done = tool(tmp_path, code_of(arch), "--print")
    assert done.returncode == 0, done.stderr
    assert f"{arch} attn_fwd, " in done.stdout
    counts = dict(line.split() for line in done.stdout.splitlines() if line.startswith("  "))
    assert int(counts[MATRIX_CLASSES[arch]]) > 0
    assert int(counts["all"]) == sum(int(count) for name, count in counts.items() if name != "all")


@pytest.mark.parametrize("arch", ARCHS)
def test_runs_a_kernel(arch, tmp_path):
    done = random_words(tmp_path, arch)
    assert done.returncode == 0, done.stderr
    due = philox.random_words(SEED, OFFSET, 1, 1, 8, 8).flatten()[:8]
    assert f"argument 1 was written: {' '.join(map(str, due))} ...\n" in done.stdout
    counts = counts_of(done.stdout)
    assert counts["global_store"] > 0 and counts["all"] == sum(count for name, count in counts.items() if name != "all")
    assert random_words(tmp_path, arch, "--seed", "7").stdout == done.stdout


@pytest.mark.parametrize("arch", ARCHS)
def test_traces_one_wave(arch, tmp_path):
    done = random_words(tmp_path, arch, "--trace", "--wave", "1")
    assert done.returncode == 0, done.stderr
    traced = [line for line in done.stdout.splitlines() if line.startswith("(")]
    assert traced and all(line.startswith("(0,0,0) wave 1  ") for line in traced)
    assert traced[-1].endswith("s_endpgm")
    # What a shift by a constant changed, as the line behind it says.
    shift = re.search(r"wave 1  \w+  s_(?:ashr_i32|lshr_b32|lshl_b32) (s\d+), .*\n    (s\d+) = 0x", done.stdout)
    assert shift and shift[1] == shift[2]
    assert not [line for line in random_words(tmp_path, arch, "--trace", "--workgroup", "1").stdout.splitlines() if line.startswith("(")]


@pytest.mark.parametrize("arch", ARCHS)
def test_says_where_it_stopped(arch, tmp_path):
    done = random_words(tmp_path, arch, arguments=["i32:60:undefined", *WORDS[1:]])
    assert done.returncode == 1
    assert re.fullmatch(r".*: debug_fill_dropout_rng, workgroup \(0, 0, 0\), wave \d+, instruction \d+ at 0x\w+, global_store_\S+ .*: lane \d+ "
                        r"stores \d+ bytes at 0x\w+, which is byte 2\d\d of an allocation of 240 bytes\n", done.stderr), done.stderr


def _cubin():
    """The header of an ELF file for an NVIDIA GPU."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HH", 2, 190) + bytes(200)


def test_says_what_is_wrong(tmp_path):
    arch = ARCHS[0]
    code = code_of(arch)
    kernel = code_of(arch, "debug_fill_dropout_rng", "i32")
    for of, words, due in [
        (code[:1000], [], "lie outside its 1000 bytes"),
        (b"no ELF file" * 20, [], "no 64-bit ELF file for AMD GPUs"),
        (_cubin(), [], "no 64-bit ELF file for AMD GPUs"),
        (kernel, ["--grid", "1", *WORDS[:-1]], "takes 12 arguments, 11 are given"),
        (kernel, ["--grid", "1", WORDS[0], "i32=64", *WORDS[2:]], "argument 2 of debug_fill_dropout_rng has 8 bytes, i32=64 has 4"),
        (kernel, ["--grid", "1", "f32:64:random", *WORDS[1:]], "no such type f32"),
        (kernel, ["--grid", "1", "i32:64:@nowhere", *WORDS[1:]], "nowhere cannot be read"),
        (kernel, ["--grid", "1", "i32::0", *WORDS[1:]], "it has no COUNT"),
        (kernel, ["--grid", "1", "i32:4:x", *WORDS[1:]], "x is no number of i32"),
        (kernel, ["--grid", "1,x", *WORDS], "--grid x: no number"),
        (kernel, ["--grid", "1", "--block", "5000", *WORDS], "a block of 5000 threads"),
        (kernel, ["--grid", "1", "--kernel", "other", *WORDS], "it has no kernel other"),
        (kernel, WORDS, "arguments of a kernel without --grid"),
        (kernel, ["--grit", "1"], "there is no option --grit"),
        (kernel, ["--grid"], "--grid has no value"),
    ]:
        done = tool(tmp_path, of, *words)
        assert done.returncode == 1 and due in done.stderr and done.stderr.count("\n") == 1, (words, done.stderr)
    done = subprocess.run(["simulator/run", "nowhere.hsaco"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == "nowhere.hsaco: it cannot be read\n"
    done = subprocess.run(["simulator/run"], capture_output=True, text=True)
    assert done.returncode == 1 and "no CODE_OBJECT is given" in done.stderr
    done = subprocess.run(["simulator/run", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--grid" in done.stdout


def test_a_float_mode_that_flushes_is_refused(tmp_path):
    code = bytearray(code_of(ARCHS[0]))
    size = int(re.search(r"(\d+) bytes of arguments", tool(tmp_path, bytes(code)).stdout)[1])
    # The kernel descriptor is aligned to 64 bytes; it has the size of the arguments and, in a word of flags, the mode.
    at = next(i for i in range(0, len(code), 64)
              if struct.unpack_from("<I", code, i + 8) == (size,) and struct.unpack_from("<I", code, i + 48)[0] >> 12 & 0xFF == 0xF0)
    struct.pack_into("<I", code, at + 48, struct.unpack_from("<I", code, at + 48)[0] & ~0x30000)
    done = tool(tmp_path, bytes(code))
    assert done.returncode == 1 and "float mode 0xc0 is not modelled" in done.stderr
