"""caller_test, claim_tests: tests with a claim of their own."""

load("@rules_cc//cc:defs.bzl", "cc_test")
load("//toolchains/cc:copts.bzl", "COPTS")
load("//tools/release:claim.bzl", "claimed")
load("//tools/testing:defs.bzl", "pytest_test")

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
    """Tests of the headers that a claim has: `headers_<release>_test` and `layouts_<release>_test`.

    Args:
      release: that is claimed.
    """
    claimed(
        name = "headers_" + release,
        testonly = True,
        srcs = ["//api:header_files"],
        release = release,
    )
    pytest_test(
        name = "headers_%s_test" % release,
        size = "small",
        srcs = ["test_headers.py"],
        data = [
            "headers_" + release,
            "@triton_wheel//:site",
        ],
        env = {"CC": "$(CC)"},
        toolchains = ["@bazel_tools//tools/cpp:current_cc_toolchain"],
    )
    claimed(
        name = "api_" + release,
        testonly = True,
        srcs = ["//api:headers"],
        release = release,
    )
    cc_test(
        name = "layouts_%s_test" % release,
        size = "small",
        srcs = ["layouts_test.cc"],
        copts = COPTS,
        data = ["layouts.txt"],
        deps = [
            "api_" + release,
            "@googletest//:gtest_main",
        ],
    )
