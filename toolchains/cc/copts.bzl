"""Compiler options of the project's own C++."""

COPTS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"]
