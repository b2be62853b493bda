"""Makes Debian's Bazel run from any directory, on a system with an older C library."""
import os
import shutil

from toolchains.offline.report import SetupError, run

CLASSPATH = "bazel_classpath_debian_depends.txt"


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def relocate_programs(programs, libraries, lib, final_lib, patchelf):
    """Points programs at their loader and libraries in lib, which at last will be final_lib.

    libraries: where the packages put shared libraries. Only the needed ones are copied.
    """
    needed = [name for program in programs for name in _needed(program, patchelf)]
    while needed:
        name = needed.pop()
        if (lib / name).exists():
            continue
        if not (libraries / name).exists():
            raise SetupError(f"no package brings {name}, which Bazel needs")
        shutil.copy(libraries / name, lib / name)
        needed += _needed(lib / name, patchelf)
    (loader,) = lib.glob("ld-linux*.so.*")
    for program in programs:
        run([patchelf, "--set-interpreter", final_lib / loader.name,
             "--force-rpath", "--set-rpath", final_lib, program])


def _needed(path, patchelf):
    return run([patchelf, "--print-needed", path]).split()


def relocate_jars(install_base, java, jars, final_jars):
    """Copies the server's jars and rewrites its class path.

    Debian's list comes first, then every other jar that the packages brought: some are reached
    only through the manifest of another, as absolute paths that do not exist here.
    """
    listed = [os.path.basename(entry) for entry in (install_base / CLASSPATH).read_text().split()]
    plain = sorted(path.name for path in java.glob("*.jar"))
    kept = {}
    for name in [*listed, *plain]:
        path = java / name
        if path.exists():  # a listed jar of an optional package may be missing
            kept.setdefault(path.resolve(), name)
    for path, name in kept.items():
        shutil.copy(path, jars / name)
    (install_base / CLASSPATH).write_text("".join(f"{final_jars / name}\n" for name in kept.values()))
