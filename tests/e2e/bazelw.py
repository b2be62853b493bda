"""Bazel as other people run it: the launcher of this checkout, in any workspace."""

import os
import pwd
import subprocess

# The checkout itself, not the runfiles: Bazel links them to it.
REPO = os.path.dirname(os.path.realpath(os.path.join(os.path.dirname(__file__), "../../bazelw")))

ENVIRONMENT = {
    "HOME": pwd.getpwuid(os.getuid()).pw_dir,
    **{name: value for name, value in os.environ.items() if name in ("PATH", "BAZELW_CACHE", "LANG")},
}


def bazelw(workspace, *arguments):
    return subprocess.run([os.path.join(REPO, "bazelw"), *arguments], cwd=workspace, env=ENVIRONMENT,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
