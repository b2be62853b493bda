"""The suite itself, without a GPU: the list of its tests, how they are run, what README.md says of them."""

import collections
import fnmatch
import pathlib
import re
import subprocess
import sys

import pytest

from tests.gpu import ledger, run, runner

HERE = pathlib.Path(__file__).parent
NAMES = [name for name, _ in run.all_tests(quick=False)]


def test_names_tell_tests_apart():
    assert [name for name, count in collections.Counter(NAMES).items() if count > 1] == []


def test_quick_is_a_part():
    quick = [name for name, _ in run.all_tests(quick=True)]
    assert set(quick) < set(NAMES)
    assert {name.partition("/")[0] for name in quick} == {name.partition("/")[0] for name in NAMES}


def _named_in_the_table_of_defects():
    table = (HERE / "README.md").read_text().partition("| defect | test |")[2]
    return re.findall(r"`([a-z]+/[^`]+)`", table)


@pytest.mark.parametrize("name", _named_in_the_table_of_defects())
def test_readme_names_tests(name):
    assert fnmatch.filter(NAMES, name.replace("...", "*")), f"README.md: there is no test {name}"


def test_readme_names_every_file():
    text = (HERE / "README.md").read_text()
    for file in HERE.glob("[a-z]*.py"):
        assert f"`{file.name}`" in text, f"README.md does not say what {file.name} is for"


def test_every_public_case_has_a_test():
    """Its id is in the source of a test, where it goes to the ledger."""
    sources = "".join(file.read_text() for file in HERE.glob("*_cases.py"))
    for case in ledger.PUBLIC:
        assert re.search(rf"\b{case}\b|\bdef {case.lower()}_", sources), case


def _fail(error):
    raise error


def _run(*functions, **options):
    return runner.run([(f"group/{i}", function) for i, function in enumerate(functions)], **options)


def test_goes_on_after_a_failure(capsys):
    results = _run(lambda: None, lambda: _fail(AssertionError("off by one")), lambda: _fail(KeyError("q")), lambda: None)
    assert [one["ok"] for one in results] == [True, False, False, True]
    assert runner.summary(results) == 2
    assert "FAILED group/1: AssertionError: off by one" in capsys.readouterr().out


def test_stops_when_the_context_is_lost():
    assert len(_run(lambda: _fail(RuntimeError("CUDA error: an illegal memory access was encountered")), lambda: None)) == 1


def test_only_names_with_the_text():
    assert [one["name"] for one in _run(lambda: None, lambda: None, only="/1")] == ["group/1"]


def test_skips_what_the_packs_lack_when_told_to():
    missing = lambda: _fail(RuntimeError("the pack x was built without a kernel for fp16"))  # noqa: E731
    assert [(one["ok"], one["skipped"]) for one in _run(missing)] == [(False, False)]
    assert [(one["ok"], one["skipped"]) for one in _run(missing, skip_missing=True)] == [(True, True)]


def test_the_watchdog_ends_the_process():
    code = ("import time; from tests.gpu import runner; runner.LIMIT_SECONDS = 0.5\n"
            "runner.run([('hangs', lambda: time.sleep(60)), ('next', lambda: print('next was run'))])")
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE.parents[1], env={"PYTHONPATH": ":".join(sys.path)},
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "FAILED hangs: still running" in done.stdout, done
    assert "next was run" not in done.stdout


def test_tables(capsys, monkeypatch):
    for name in ("_worst", "_groups", "_same"):
        monkeypatch.setattr(ledger, name, {})
    monkeypatch.setattr(ledger, "_values", [])
    for case in ledger.PUBLIC[1:]:
        ledger.value(f"{case} in words", 1.5, 2)
    ledger.same_bits("v2", "c")
    ledger.test = "K17/d64"
    ledger.ratio("attn_fwd", "torch.float16", "out", 0.5)
    ledger.finished(True)
    ledger.print_tables()
    out = capsys.readouterr().out
    assert "K17: 1 of 1 tests right | all right" in out and "K05 in words: 1.5 | 2" in out
    assert f"not among the tests that were run: {ledger.PUBLIC[0]}\n" in out
    assert re.search(r"^v2 +c +1 problems$", out, re.M) and re.search(r"attn_fwd +float16 +out +0.500", out)
