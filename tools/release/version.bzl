"""The release of the API that this library is: config.h, SONAME and the CMake package agree with it."""

VERSION = "0.12.0"
