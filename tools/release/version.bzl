"""The version of this project, and the AOTriton releases that a build can claim to be."""

# Of library and packs, which belong together whatever the build claims.
VERSION = "0.12.0"

# What a build claims to be: config.h, the SONAME and the CMake package follow. Of each series the release
# that its callers were built with, which --//:release=0.11 stands for.
RELEASES = {
    "0.8": "0.8.2",
    "0.9": "0.9.2",
    "0.10": "0.10.0",
    "0.11": "0.11.2",
    "0.12": "0.12.0",
    "0.13": "0.13.0",
    "0.14": "0.14.0",
}

DEFAULT_RELEASE = "0.12"
