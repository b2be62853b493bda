"""Hash-locked wheels from the package index that the machine's pip is configured for."""

def find_python(rctx):
    """The machine's Python.

    Returns:
      struct(path, version): the interpreter itself (no shim) and "3.11".
    """
    name = rctx.os.environ.get("AOTRITON_PYTHON", "python3")
    found = name if name.startswith("/") else rctx.which(name)
    if not found:
        fail("There is no %s on PATH. Install Python 3.10 or newer, or set AOTRITON_PYTHON to one." % name)
    code = "import sys; print(sys.executable); print('%d.%d' % sys.version_info[:2]); print(sys.version_info >= (3, 10))"
    result = rctx.execute([found, "-c", code])
    if result.return_code:
        fail("%s does not run: %s" % (found, result.stderr))
    path, version, new_enough = result.stdout.strip().split("\n")
    if new_enough != "True":
        fail("%s is Python %s; 3.10 or newer is needed. Set AOTRITON_PYTHON to one." % (path, version))
    return struct(path = path, version = version)

def install_wheels(rctx, lock, target):
    """Installs the wheels that the file `lock` names, by hash, into the directory `target`.

    Wheels are kept in $AOTRITON_WHEELS, where that is set (bazelw sets it): a second
    installation needs no network.
    """
    pip = rctx.os.environ.get("AOTRITON_PIP", "").split(" ")
    if pip == [""]:
        pip = [find_python(rctx).path, "-m", "pip"]
    if rctx.execute(pip + ["--version"]).return_code:
        fail("'%s' does not run. Install pip (Debian: apt install python3-pip), or build with ./bazelw, which brings its own." % " ".join(pip))

    flags = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary=:all:", "-r", str(lock)]
    install = pip + ["install"] + flags + ["--no-compile", "--no-warn-script-location", "--target", target]
    wheels = rctx.os.environ.get("AOTRITON_WHEELS")
    if wheels:
        local = install + ["--no-index", "--find-links", wheels]
        if not rctx.execute(local, timeout = 3600).return_code:
            return
        _run(rctx, lock, pip + ["download"] + flags + ["--dest", wheels])
        _run(rctx, lock, local)
    else:
        _run(rctx, lock, install)

def _run(rctx, lock, command):
    result = rctx.execute(command, timeout = 3600)
    if result.return_code:
        fail("pip could not install what %s names:\n%s\nThe command was: %s" % (
            lock,
            result.stderr,
            " ".join(command),
        ))

WHEEL_ENVIRON = ["AOTRITON_PYTHON", "AOTRITON_PIP", "AOTRITON_WHEELS"]
