"""caller_test, claim_tests: programs and checks with a claim of their own."""

load("@rules_cc//cc:defs.bzl", "cc_test")
load("//toolchains/cc:copts.bzl", "COPTS")
load("//tools/release:claim.bzl", "claimed")

def caller_test(name, release, suffix = "", src = None, copts = []):
    """A googletest program that calls the library as a release of a framework does.

    Args:
      name: of the test.
      release: that the library and its headers claim to be.
      suffix: of their namespace.
      src: the program; `name` without suffix else.
      copts: more compiler options.
    """
    claimed(
        name = name + "_library",
        testonly = True,
        srcs = ["//:linking"],
        release = release,
        suffix = suffix,
    )
    cc_test(
        name = name + "_test",
        size = "small",
        srcs = [
            "caller.h",
            src or name + ".cc",
            "//tests/dispatch:rocm6/libamdhip64.so",
        ],
        copts = COPTS + copts,
        deps = [
            name + "_library",
            "//tests/dispatch:fake_hip_h",
            "//tests/dispatch:images",
            "@googletest//:gtest_main",
        ],
    )

def claim_tests(release):
    pass
