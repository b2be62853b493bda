"""The problems of tests/gpu on simulated GPUs: public reports, variable lengths, broadcast biases, windows, random problems.

Public reports run on every arch, the lists by turns on one. What needs a graph, a second stream or gigabytes is left out, and a
problem of more work than AOTRITON_TEST_MOST_WORK is passed over.
"""

import re

import pytest

from tests.gpu import ledger, run
from tests.gpu.attention_case import TooLarge
from tests.simulator import host_memory, simulated_gpu
from tests.simulator.functionals import BUILT

# Groups of tests/gpu, or tests of which one arch is enough.
BY_TURNS = ("random/", "varlen/", "bias/", "dropout/", "head_dim/", "window/", "sm_scale/", "no_logsumexp/", "rng/", "persistent/", "backward/")
_PUBLIC = re.compile(r"^(\w+/)?[a-zA-Z]\d\d(_|/)")
# They ask torch for a GPU, or for more memory than the host has, or run in a process of their own (tests/dispatch has those).
LEFT_OUT = ("r01_graph_capture", "persistent/graph", "v05_launches", "offsets_past_32_bits", "many_heads", "more_tiles_than_workgroups",
            "r07_deterministic", "persistent/many_tiles", "d04_packs", "d11_module_load_fails")


def _chosen():
    turn = 0
    for name, function in run.all_tests(quick=False):
        if any(word in name for word in LEFT_OUT):
            continue
        if _PUBLIC.match(name) or name.startswith("report/"):
            for arch in BUILT:
                yield pytest.param(arch, name, function, id=f"{arch}-{name}")
        elif BUILT and name.startswith(BY_TURNS):
            arch = BUILT[turn % len(BUILT)]
            turn += 1
            yield pytest.param(arch, name, function, id=f"{arch}-{name}")


@pytest.mark.parametrize("arch,name,function", list(_chosen()))
def test_problem(arch, name, function):
    simulated_gpu.use(arch)
    ledger.test = f"{arch} {name}"
    try:
        function()
    except TooLarge as large:
        pytest.skip(str(large))
    finally:
        host_memory.release()


def test_what_it_showed(capsys):
    with capsys.disabled():
        ledger.print_tables()
