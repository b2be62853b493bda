"""The compile tool: the same bytes in every way it is run, and errors that help."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import triton

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(REPO, "tools/triton_compile/triton_compile.py")
SITE = os.path.dirname(os.path.dirname(os.path.abspath(triton.__file__)))
KERNEL = os.path.join(REPO, "tests/build/small_kernel.py")

SIGNATURE = {
    "types": {"X": "*fp32", "Y": "*fp32", "factor": "fp32", "n": "i32"},
    "alignments": {"X": 16, "Y": 16},
    "constants": {},
}
CONFIG = {"constants": {"BLOCK": 128}, "num_warps": 4, "num_stages": 1, "waves_per_eu": 0, "max_registers": 0, "max_seqlen_q": None}
TARGETS = {"gfx942": ("amd", 64), "gfx1100": ("amd", 32), "sm_90": ("nvidia", 32)}


def request(out, arch="gfx942", root=None, **changes):
    """The arguments of one compilation into the directory `out`, and its two outputs."""
    root = root or out
    source = os.path.join(root, "small_kernel.py")
    if not os.path.exists(source):
        os.makedirs(root, exist_ok=True)
        shutil.copyfile(KERNEL, source)
    vendor, wave_size = TARGETS[arch]
    code, report = os.path.join(out, f"{arch}.code"), os.path.join(out, f"{arch}.json")
    options = {
        "root": root, "src": source, "entry": "scale", "kernel": "scale", "family": "test", "arch": arch, "vendor": vendor,
        "wave_size": str(wave_size), "axes": "[]", "functional": "{}", "signature": json.dumps(SIGNATURE),
        "config": json.dumps(CONFIG), "max_spills": "0", "fp_fusion": "1", "code": code, "report": report, **changes,
    }
    return [word for name, value in options.items() for word in (f"--{name}", value)], code, report


def one_shot(arguments, *startup, **kwargs):
    return subprocess.run([sys.executable, TOOL, "--site", SITE, *startup] + arguments, capture_output=True, text=True, **kwargs)


def in_worker(*requests):
    lines = "".join(json.dumps({"arguments": arguments, "requestId": i}) + "\n" for i, arguments in enumerate(requests))
    result = subprocess.run([sys.executable, TOOL, "--site", SITE, "--persistent_worker"],
                            input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in result.stdout.splitlines()]


def content(path):
    with open(path, "rb") as file:
        return file.read()


@pytest.mark.parametrize("arch", TARGETS)
def test_one_shot_worker_and_another_path_give_the_same_bytes(tmp_path, arch):
    first, code, report = request(str(tmp_path / "one"), arch)
    assert one_shot(first).returncode == 0
    second, worker_code, worker_report = request(str(tmp_path / "two/deeper"), arch)
    assert in_worker(second) == [{"exitCode": 0, "output": "", "requestId": 0}]
    assert content(code) == content(worker_code)
    assert content(report) == content(worker_report)


def test_the_report_describes_the_code_object(tmp_path):
    arguments, code, report = request(str(tmp_path))
    assert one_shot(arguments).returncode == 0
    facts = json.loads(content(report))
    assert facts["sha256"] == hashlib.sha256(content(code)).hexdigest()
    assert facts["threads"] == 4 * 64 and facts["symbol"] == "scale" and facts["spills"] == 0
    assert [name for name, _ in facts["arguments"]] == ["X", "Y", "factor", "n", "global_scratch", "profile_scratch"]


def test_a_worker_goes_on_after_a_failed_request(tmp_path):
    good, code, _ = request(str(tmp_path / "good"))
    bad, bad_code, _ = request(str(tmp_path / "bad"), entry="nothing")
    responses = in_worker(bad, good, ["--nonsense"])
    assert [(r["exitCode"], r["requestId"]) for r in responses] == [(1, 0), (0, 1), (1, 2)]
    assert "has no function nothing" in responses[0]["output"]
    assert os.path.exists(code) and not os.path.exists(bad_code)


def test_a_failure_prints_a_command_that_reproduces_it(tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    with open(KERNEL) as kernel:
        (broken / "small_kernel.py").write_text(kernel.read().replace("* factor", "* undefined_name"))
    arguments, code, report = request(str(broken))
    result = one_shot(arguments, cwd=tmp_path)
    assert result.returncode == 1 and "undefined_name" in result.stderr
    assert not os.path.exists(code) and not os.path.exists(report)
    command = [line for line in result.stderr.splitlines() if "triton_compile.py --site" in line][-1]
    again = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 1 and "undefined_name" in again.stderr


def test_declaration_and_source_must_name_the_same_arguments(tmp_path):
    signature = {"types": {**SIGNATURE["types"], "extra": "i32"}, "alignments": {}, "constants": {}}
    arguments, _, _ = request(str(tmp_path), signature=json.dumps(signature))
    result = one_shot(arguments)
    assert result.returncode == 1
    assert "only declared: ['extra']; only in the source: none" in result.stderr


def test_a_compilation_that_takes_too_long_fails(tmp_path):
    slow = tmp_path / "slow"
    slow.mkdir()
    # Like a compiler's endless loop, this does not look at Python's signals.
    (slow / "small_kernel.py").write_text(
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\ntime.sleep(60)\n")
    arguments, code, report = request(str(slow))
    result = one_shot(arguments, "--timeout", "1")
    assert result.returncode == 1 and "not finished after 1 s" in result.stderr
    assert not os.path.exists(code) and not os.path.exists(report)


def test_a_compiler_that_crashes_is_an_error_of_one_request(tmp_path):
    broken, good = tmp_path / "broken", tmp_path / "good"
    broken.mkdir()
    (broken / "small_kernel.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    bad, _, _ = request(str(broken))
    fine, code, _ = request(str(good))
    responses = in_worker(bad, fine)
    assert [response["exitCode"] for response in responses] == [1, 0]
    assert "died of signal 11" in responses[0]["output"] and os.path.exists(code)


def test_an_interrupted_build_leaves_no_compiler_behind(tmp_path):
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "small_kernel.py").write_text(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n")
    arguments, _, _ = request(str(slow))
    tool = subprocess.Popen([sys.executable, TOOL, "--site", SITE] + arguments)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    tool.kill()
    tool.wait()
    for _ in range(100):
        if not os.path.exists(f"/proc/{child}") or " Z " in content(f"/proc/{child}/stat").decode():
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("the compiling child outlived its parent")


def gluon_request(out, entry, types):
    """The arguments of one compilation of small_gluon_kernel.py for sm_90, and its report."""
    source = os.path.join(out, "small_gluon_kernel.py")
    shutil.copyfile(os.path.join(REPO, "tests/build/small_gluon_kernel.py"), source)
    signature = {"types": types, "alignments": {}, "constants": {}}
    arguments, _, report = request(out, "sm_90", src=source, entry=entry, kernel=entry, signature=json.dumps(signature),
                                   config=json.dumps({**CONFIG, "constants": {"ROWS": 64}}), max_spills="-1")
    return arguments, report


def test_a_gluon_kernel_takes_tensor_maps(tmp_path):
    arguments, report = gluon_request(
        str(tmp_path), "copy", {"map_X": "tensor_map<bf16,ROWS,64>", "map_Y": "tensor_map<bf16,64,64>", "row": "i32"})
    result = one_shot(arguments)
    assert result.returncode == 0, result.stderr
    with open(report) as file:
        made = json.load(file)["arguments"]
    unread = [["unread", "i32"]] * 4 + [["unread", "i64"]] * 4
    assert made == [["map_X", "tensor_map<ROWS>"], *unread, ["map_Y", "tensor_map<64>"], *unread, ["row", "i32"],
                    ["global_scratch", "*i8"], ["profile_scratch", "*i8"]]


def test_matrix_instructions_one_after_another_are_an_error(tmp_path):
    arguments, report = gluon_request(str(tmp_path), "serialised", {"map_X": "tensor_map<bf16,ROWS,64>", "Y": "*fp32", "count": "i32"})
    result = one_shot(arguments)
    assert result.returncode == 1 and not os.path.exists(report)
    assert "ptxas runs the matrix instructions one after another: " in result.stderr and "(C7514)" in result.stderr, result.stderr
