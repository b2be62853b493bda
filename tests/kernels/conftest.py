"""Kernels run in Triton's interpreter: this must be chosen before they are imported.

When the tests have run, the worst error over the floor is printed for each op, dtype and output.
"""

import os

os.environ["TRITON_INTERPRET"] = "1"

import torch
from hypothesis import HealthCheck, Phase, settings

from tests.gpu import ledger

torch.set_num_threads(1)  # many tiny tensors: threads only wait for each other

# How many random problems test_properties.py tries: "brief", always the same ones, unless pytest's
# --hypothesis-profile=long asks for many, new ones each time.
_ALWAYS = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("brief", max_examples=8, derandomize=True, **_ALWAYS)
# A Case that fails is reported as it was drawn: to shrink it takes hundreds of runs.
settings.register_profile("long", max_examples=100, print_blob=True, phases=[Phase.generate], **_ALWAYS)
settings.load_profile("brief")


def pytest_runtest_setup(item):
    ledger.test = item.name


def pytest_terminal_summary():
    ledger.print_tables()
