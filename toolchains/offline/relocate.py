"""Makes Debian's Bazel run from any directory, on a system with an older C library."""
import os
import shutil
import zipfile

from toolchains.offline.report import SetupError, run

CLASSPATH = "bazel_classpath_debian_depends.txt"
VERSION_JAR = "bazelw-version.jar"


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


def relocate_jars(install_base, java, jars, final_jars, version):
    """Copies the server's jars and rewrites its class path.

    Debian's list comes first, then every other jar that the packages brought: some are reached
    only through the manifest of another, as absolute paths that do not exist here. Last comes one
    of ours: Debian's server does not know its version, and rules ask for it (native.bazel_version).
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
    with zipfile.ZipFile(jars / VERSION_JAR, "w") as archive:
        archive.writestr("build-data.properties", f"build.label={version}\n")
    names = [*kept.values(), VERSION_JAR]
    (install_base / CLASSPATH).write_text("".join(f"{final_jars / name}\n" for name in names))
