"""pytest_test: Python tests run by pytest."""

load("@rules_python//python:defs.bzl", "py_test")

def pytest_test(name, srcs, deps = [], data = [], env = {}, **kwargs):
    """Runs the tests in `srcs` with pytest.

    Args:
      name: of the test.
      srcs: test files, and files beside them that they import or pytest reads (conftest.py).
      deps: as of py_test; the locked packages are added.
      data: as of py_test.
      env: as of py_test.
      **kwargs: as of py_test.
    """
    py_test(
        name = name,
        srcs = srcs + [Label("//tools/testing:pytest_main.py")],
        main = Label("//tools/testing:pytest_main.py"),
        args = ["$(rootpath %s)" % src for src in srcs if src.split("/")[-1].startswith("test_")],
        data = data,
        deps = deps + ["@python_packages//:packages"],
        # Byte code would be written into the source directories of the packages, where a sandbox lets
        # it, and Bazel would take them for changed.
        env = env | {"PYTHONDONTWRITEBYTECODE": "1"},
        **kwargs
    )
