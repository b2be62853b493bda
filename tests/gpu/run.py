"""Tests and times the packed library on this machine's GPU. See README.md beside it.

    python3 run.py [--only-tests | --only-bench] [--quick] [--skip-missing] [-k TEXT] [--json FILE]

Exits with 0 if every test passed, else 1.
"""

import argparse
import json
import os
import pathlib
import platform
import sys
import time
import types


def _set_paths():
    """Makes `aotriton` and `tests` importable, from the unpacked bundle or from the repository."""
    here = pathlib.Path(__file__).resolve().parent
    root = next(folder for folder in (here, *here.parents) if (folder / "tests" / "kernels" / "reference.py").is_file())
    package = root / "python" if (root / "python").is_dir() else root / "bindings" / "python"
    sys.path[:0] = [str(package), str(root)]
    # Some installed packages bring a top-level `tests` of their own: this one is ours.
    tests = types.ModuleType("tests")
    tests.__path__ = [str(root / "tests")]
    sys.modules["tests"] = tests
    library = root / "lib" / "libaotriton_v2.so"
    if library.is_file():
        os.environ.setdefault("AOTRITON_LIBRARY", str(library))


def _facts(torch, aotriton):
    properties = torch.cuda.get_device_properties(0)
    return {
        "gpu": properties.name,
        "arch": aotriton.gpu_arch(),
        "multiprocessors": properties.multi_processor_count,
        "memory_gib": round(properties.total_memory / 2**30),
        "torch": torch.__version__,
        "runtime": torch.version.cuda or torch.version.hip,
        "cudnn": torch.backends.cudnn.version(),
        "python": platform.python_version(),
        "aotriton": aotriton.version(),
        "library": os.environ.get("AOTRITON_LIBRARY", ""),
    }


def _plain_precision(torch):
    """The plain formula is the yardstick: fp32 means fp32, and half matmuls accumulate in fp32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False


def all_tests(quick):
    """Every test, (name, function), in the order of the run."""
    from tests.gpu import (
        api_cases,
        backward_cases,
        bias_cases,
        dropout_cases,
        error_cases,
        family_cases,
        forward_cases,
        hopper_cases,
        persistent_cases,
        random_cases,
        report_cases,
        rng_cases,
        runtime_cases,
        upstream_cases,
        varlen_cases,
    )

    return [
        *runtime_cases.tests(), *error_cases.tests(), *api_cases.tests(quick), *report_cases.tests(),
        *forward_cases.tests(quick), *hopper_cases.tests(), *persistent_cases.tests(), *dropout_cases.tests(), *rng_cases.tests(), *bias_cases.tests(),
        *varlen_cases.tests(), *backward_cases.tests(), *family_cases.tests(quick), *random_cases.tests(quick), *upstream_cases.tests(quick)]


def _run_tests(options):
    from tests.gpu import runner

    begin = time.perf_counter()
    results = runner.run(all_tests(options.quick), options.k, options.skip_missing)
    print(f"tests took {time.perf_counter() - begin:.0f} s")
    return results, runner.summary(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--only-tests", action="store_true")
    only.add_argument("--only-bench", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a third of the grid, one bench round")
    parser.add_argument("--skip-missing", action="store_true", help="a kernel that the packs were built without is no failure")
    parser.add_argument("-k", metavar="TEXT", default="", help="only tests whose name contains TEXT")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="write facts and results there")
    options = parser.parse_args()

    _set_paths()
    import aotriton
    import torch

    from tests.gpu import ledger

    if not torch.cuda.is_available():
        sys.exit("torch finds no GPU on this machine")
    _plain_precision(torch)
    report = {"machine": _facts(torch, aotriton)}
    print("  ".join(f"{name} {value}" for name, value in report["machine"].items()), flush=True)
    failed = 0
    try:
        if not options.only_bench:
            report["tests"], failed = _run_tests(options)
            failed += not report["tests"]  # a filter that matches nothing is a mistake
            report.update(ledger.report())
            ledger.print_tables()
        if not options.only_tests:
            from tests.gpu import bench

            report["bench"] = bench.run(options.quick)
    finally:
        if options.json:
            options.json.write_text(json.dumps(report, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
