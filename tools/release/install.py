"""Lays the library out for everyone who does not use Bazel.

    bazel run //:install --platforms=gfx950 -- --prefix DIR

DIR/include/aotriton/   headers
DIR/lib/                libaotriton_v2.so and aotriton.images/ beside it
DIR/lib/cmake/aotriton/ find_package(aotriton): targets aotriton::aotriton_v2, aotriton::aotriton

Installing another arch into the same DIR adds its images.
"""

import argparse
import glob
import os
import shutil
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# The API packages whose headers are installed; each holds a directory aotriton/.
HEADERS = "api/*/aotriton"


def files_to_install():
    """{path below the prefix: path of the built file}."""
    result = {}
    for tree in glob.glob(os.path.join(ROOT, HEADERS)):
        for header in glob.glob(f"{tree}/**/*.h", recursive=True):
            result[f"include/aotriton/{os.path.relpath(header, tree)}"] = header
    for library in glob.glob(f"{ROOT}/libaotriton*_v2.so.*"):
        result[f"lib/{os.path.basename(library)}"] = library
    for image in glob.glob(f"{ROOT}/aotriton.images/*/*/*.pack") + glob.glob(f"{ROOT}/aotriton.images/*/manifest.json"):
        result[f"lib/{os.path.relpath(image, ROOT)}"] = image
    for cmake in glob.glob(f"{ROOT}/tools/release/*.cmake"):
        result[f"lib/cmake/aotriton/{os.path.basename(cmake)}"] = cmake
    return result


def install(prefix, files):
    """Copies `files` below `prefix`; each appears whole or not at all."""
    for path, source in sorted(files.items()):
        target = os.path.join(prefix, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        partial = f"{target}.partial"
        try:
            shutil.copyfile(source, partial)
            os.chmod(partial, 0o755 if ".so" in os.path.basename(path) else 0o644)
            os.replace(partial, target)
        finally:
            if os.path.exists(partial):
                os.remove(partial)
    for path in files:
        name = os.path.basename(path)
        if ".so." in name:
            link = os.path.join(prefix, "lib", name[:name.index(".so.") + len(".so")])
            if os.path.lexists(link):
                os.remove(link)
            os.symlink(name, link)


def main():
    parser = argparse.ArgumentParser(prog="install", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", required=True, metavar="DIR", help="where to; made if it is not there")
    options = parser.parse_args()
    # bazel run starts in the runfiles; a relative DIR is meant from where the user stands.
    prefix = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""), options.prefix)
    files = files_to_install()
    try:
        install(prefix, files)
    except OSError as error:
        sys.exit(f"install: {error.strerror}: {error.filename or prefix}")
    print(f"Installed {len(files)} files into {prefix}")


if __name__ == "__main__":
    main()
