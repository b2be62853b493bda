"""Debian packages from the mirror that this machine's apt uses, without touching the machine.

apt keeps its lists, cache and status in a directory of ours, so no root rights are needed. It
checks signatures as it always does, with the machine's own Debian archive keyring.
"""
import platform
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from toolchains.offline.report import SetupError, run

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# The machine's own apt.conf still holds (proxies, certificates), but not its hooks: they would
# act on the machine.
APT_CONF = """\
#clear APT::Update;
#clear DPkg;
APT::Sandbox::User "";
APT::Install-Recommends "false";
Acquire::Languages "none";
Debug::NoLocking "true";
Dir::State "{root}/state";
Dir::State::lists "{root}/state/lists";
Dir::State::status "{root}/state/status";
Dir::Cache "{root}/cache";
"""
OUR_SOURCES = """\
APT::Update::Error-Mode "any";
Dir::Etc::sourcelist "{root}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
"""
# A package that the machine is told to have already, so that apt leaves it out.
PROVIDED = """\
Package: {name}
Status: install ok installed
Architecture: {arch}
Version: 99:0
Maintainer: bazelw
Description: not needed here

"""


class Apt:
    def __init__(self, root, suite, provided):
        for tool in ("apt-get", "dpkg"):
            if not shutil.which(tool):
                raise SetupError(f"there is no {tool}: this is not a Debian system")
        self.root, self.suite, self.own_suite = root, suite, own_suite()
        arch = run(["dpkg", "--print-architecture"]).strip()
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (root / folder).mkdir(parents=True)
        (root / "state/status").write_text("".join(PROVIDED.format(name=name, arch=arch) for name in provided))
        self.conf = root / "apt.conf"
        self.conf.write_text(APT_CONF.format(root=root))
        mirror = self._mirror()
        signed = f" signed-by={KEYRING}" if KEYRING.exists() else ""
        suites = dict.fromkeys([suite, self.own_suite])
        (root / "sources.list").write_text(
            "".join(f"deb [arch={arch}{signed}] {mirror} {each} main\n" for each in suites)
        )
        self.conf.write_text((APT_CONF + OUR_SOURCES).format(root=root))
        self._apt("update")

    def fetch_closure(self, packages):
        """Packages of the foreign suite and all that they need but `provided`."""
        self._apt("install", "--yes", "--download-only", f"--target-release={self.suite}", *packages)
        return sorted((self.root / "cache/archives").glob("*.deb"))

    def fetch_own(self, packages):
        """Just these packages, of the suite that the machine itself runs."""
        target = self.root / "own"
        target.mkdir()
        self._apt("download", *(f"{name}/{self.own_suite}" for name in packages), cwd=target)
        return sorted(target.glob("*.deb"))

    def _apt(self, *arguments, **options):
        return run(["apt-get", f"--config-file={self.conf}", "--quiet", *arguments], **options)

    def _mirror(self):
        """The address from which the machine's own suite comes."""
        query = ["apt-get", "indextargets", "--format", "$(CREATED_BY) $(COMPONENT) $(CODENAME) $(REPO_URI)"]
        answer = run(query)
        if not answer.strip():  # no lists, as in a fresh container: get them, but to our place
            self._apt("update")
            answer = run([*query, f"--config-file={self.conf}"])
        for line in answer.splitlines():
            created_by, component, codename, uri = line.split(" ", 3)
            if (created_by, component, codename) == ("Packages", "main", self.own_suite):
                return uri
        raise SetupError(f"apt's sources name no Debian mirror for '{self.own_suite}'")


def own_suite():
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian":
        raise SetupError(f"this is {release.get('PRETTY_NAME')}, not Debian")
    if "VERSION_CODENAME" not in release:
        raise SetupError("/etc/os-release names no VERSION_CODENAME")
    return release["VERSION_CODENAME"]


def unpack(packages, target):
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda package: run(["dpkg", "--extract", package, target]), packages))
