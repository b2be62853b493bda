"""The launcher of the GPU tests: which GPUs it sees, what it says without one, that tests share none."""

import json
import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree

import pytest

from tests.rocm import gpu_test, gpus


def machine(root, versions, hidden=()):
    """The files of the kernel driver: node 0 is a CPU, then a GPU for each gfx_target_version."""
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    (root / "dev/dri").mkdir(parents=True)
    (root / "dev/kfd").touch()
    for number, version in enumerate((0, *versions)):
        (nodes / str(number)).mkdir(parents=True)
        minor = 127 + number
        (nodes / str(number) / "properties").write_text(f"simd_count 4\ngfx_target_version {version}\ndrm_render_minor {minor}\n")
        if version and number not in hidden:
            (root / f"dev/dri/renderD{minor}").touch()
    return root


def run(arguments, tmp_path, root, **environment):
    """(exit status, the cases of its report)."""
    report, locks = tmp_path / "test.xml", tmp_path / "locks"
    locks.mkdir(exist_ok=True)
    base = {"PATH": os.environ["PATH"], "TEST_TMPDIR": str(tmp_path), "XML_OUTPUT_FILE": str(report), "AOTRITON_GPU_LOCKS": str(locks)}
    status = gpu_test.main(arguments, {**base, **environment}, root)
    return status, list(ElementTree.parse(report).getroot()) if report.exists() else []


def test_archs(tmp_path):
    versions = [90402, 90010, 90500, 110000, 120001] + [90402] * 6
    names = ["gfx942", "gfx90a", "gfx950", "gfx1100", "gfx1201"] + ["gfx942"] * 6
    assert gpus.find(machine(tmp_path, versions)) == (names, "")


def test_what_may_not_be_opened_is_not_there(tmp_path):
    assert gpus.find(machine(tmp_path / "some", [90402, 90010], hidden=[1])) == (["gfx90a"], "")
    archs, why = gpus.find(machine(tmp_path / "none", [90402], hidden=[1]))
    assert archs == [] and "gfx942" in why and "renderD128" in why
    assert gpus.find(machine(tmp_path / "cpu", [])) == ([], "no device that may be opened: only CPUs")


@pytest.mark.parametrize("versions, reason", [
    (None, "sys/class/kfd/kfd/topology/nodes is not there"),
    ([90402, 90402], "it has gfx942, gfx942"),
])
def test_skipped_with_the_reason(versions, reason, tmp_path, capsys):
    root = tmp_path / "root"
    if versions:
        machine(root, versions)
    status, (case,) = run(["--arch=gfx950"], tmp_path, root)
    assert status == 0 and "SKIPPED: no gfx950 GPU on this machine: " in capsys.readouterr().out
    assert reason in case.find("skipped").get("message")


def test_a_gpu_that_bazel_did_not_see_is_no_skip(tmp_path, capsys):
    status, cases = run(["--arch=gfx942"], tmp_path, machine(tmp_path / "root", [90402]))
    assert (status, cases) == (1, []) and "bazel shutdown" in capsys.readouterr().out


def program(path, code):
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{code}\n")
    path.chmod(0o755)
    return path


def test_binary(tmp_path):
    root = machine(tmp_path / "root", [90010, 90402])
    seen = tmp_path / "seen"
    binary = program(tmp_path / "binary", f"""json.dump([sys.argv[1:], os.environ["ROCR_VISIBLE_DEVICES"], os.environ["AOTRITON_IMAGES_DIR"],
        "PYTHONPATH" in os.environ], open({str(seen)!r}, "w")); sys.exit(3)""")
    arguments = ["--arch=gfx942", f"--binary={binary}", f"--images={tmp_path}", "--gtest_repeat=2"]
    assert run(arguments, tmp_path, root, PYTHONPATH="/ours")[0] == 3
    assert json.loads(seen.read_text()) == [["--gtest_repeat=2"], "1", str(tmp_path), False]


def test_bundle(tmp_path):
    root = machine(tmp_path / "root", [90402])
    results = {"tests": [{"name": "a", "ok": True, "skipped": False, "seconds": 1, "text": ""},
                         {"name": "b", "ok": False, "skipped": False, "seconds": 2, "text": "dq errs 9"},
                         {"name": "c", "ok": True, "skipped": True, "seconds": 0, "text": "not built"}]}
    run_py = program(tmp_path / "run.py", f"""assert sys.argv[1:3] == ["--only-tests", "--json"] and sys.argv[4:] == ["--quick"], sys.argv
open(sys.argv[3], "w").write({json.dumps(results)!r}); sys.exit(1)""")
    bundle = tmp_path / "bundle.tar.gz"
    with tarfile.open(bundle, "w:gz") as archive:
        archive.add(run_py, "aotriton_bundle/run.py")
    status, cases = run(["--arch=gfx942", f"--bundle={bundle}", "--quick"], tmp_path, root, AOTRITON_GPU_PYTHON=sys.executable)
    assert status == 1
    assert [(case.get("name"), [child.tag for child in case]) for case in cases] == [("a", []), ("b", ["failure"]), ("c", ["skipped"])]
    assert cases[1].find("failure").get("message") == "dq errs 9"


def test_tests_share_no_gpu(tmp_path):
    first, held = gpu_test.take([2, 5], tmp_path)
    second, _held = gpu_test.take([2, 5], tmp_path)
    assert (first, second) == (2, 5)
    code = f"import sys; sys.path[:0] = {sys.path!r}; from tests.rocm import gpu_test; print(gpu_test.take([2, 5], {str(tmp_path)!r})[0])"
    waiting = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.communicate(timeout=1)
    held.close()
    assert waiting.communicate(timeout=30)[0] == "2\n"
