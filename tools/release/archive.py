"""Makes a .tar.gz whose bytes depend on nothing but the names and contents of its files."""

import argparse
import gzip
import os
import tarfile


def make_archive(out, root, files):
    """Writes `files`, pairs (path in the archive, path of the file), below the directory `root`."""
    with open(out, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as zipped:
        with tarfile.open(mode="w", fileobj=zipped, format=tarfile.GNU_FORMAT) as tar:
            for name, source in sorted(files):
                info = tarfile.TarInfo(f"{root}/{name}")
                info.size = os.path.getsize(source)
                info.mode = 0o755 if os.access(source, os.X_OK) and ".so" in name else 0o644
                with open(source, "rb") as content:
                    tar.addfile(info, content)


def main():
    parser = argparse.ArgumentParser(prog="archive", fromfile_prefix_chars="@", description=__doc__)
    parser.add_argument("--out", required=True, help="the archive")
    parser.add_argument("--root", required=True, help="the one directory that it unpacks to")
    parser.add_argument("files", nargs="+", metavar="NAME=FILE", help="path in the archive = file")
    options = parser.parse_args()
    make_archive(options.out, options.root, [tuple(pair.split("=", 1)) for pair in options.files])


if __name__ == "__main__":
    main()
