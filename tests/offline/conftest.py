import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))


@pytest.fixture(scope="session")
def hook():
    """tools/bazel as a module."""
    loader = importlib.machinery.SourceFileLoader("hook", str(ROOT / "tools/bazel"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("hook", loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


@pytest.fixture
def script(tmp_path):
    """Makes executable shell scripts that play other programs."""

    def make(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    return make
