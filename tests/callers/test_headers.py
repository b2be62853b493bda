"""The headers of a claim: each compiles alone, in C++17 and C++20, with no warning; the C header in C too."""

import itertools
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(os.getcwd())
API = sorted(path for path in (ROOT / "api").iterdir() if (path / "aotriton").is_dir())
HEADERS = sorted(str(header.relative_to(folder)) for folder in API for header in folder.rglob("*.h"))
(HIP,) = ROOT.parent.glob("*triton_wheel/site/triton/backends/amd/include")

# Bazel's own C++ compiler, and clang where there is one.
COMPILERS = {"bazel": os.environ["CC"], "clang": shutil.which("clang")}


def compile_text(compiler, language, standard, text, *options):
    if COMPILERS[compiler] is None:
        pytest.skip(f"this machine has no {compiler}")
    command = [COMPILERS[compiler], "-x", language, f"-std={standard}", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
               *(f"-I{folder}" for folder in API), "-isystem", str(HIP), "-D__HIP_PLATFORM_AMD__", *options, "-"]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_all_headers_are_here():
    assert set(HEADERS) == {f"aotriton/{name}.h" for name in ("aotriton", "config", "dtypes", "flash", "runtime", "util", "v2/flash")}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("compiler, standard", itertools.product(COMPILERS, ("c++17", "c++20")))
def test_compiles_without_a_warning(compiler, standard, header):
    # The params are objects of the caller: their constructors are part of what is compiled.
    use = "void use() { aotriton::v3::flash::attn_fwd_params f; aotriton::v3::flash::attn_bwd_params b; (void)f; (void)b; }\n"
    result = compile_text(compiler, "c++", standard, f"#include <{header}>\n" + (use if header == "aotriton/flash.h" else ""))
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("compiler", COMPILERS)
def test_warnings_are_on(compiler):
    result = compile_text(compiler, "c++", "c++17", "#include <aotriton/util.h>\nint f(int unused) { return sizeof(long[0]); }\n")
    assert result.returncode != 0 and "unused" in result.stdout


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_c_header_is_c(compiler):
    result = compile_text(compiler, "c", "c99", "#include <aotriton/aotriton.h>\n", "-nostdinc++")
    assert result.returncode == 0, result.stdout


# What PyTorch since 2.13 defines before it includes flash.h.
@pytest.mark.parametrize("compiler", COMPILERS)
def test_two_functions_stay_without_v2(compiler):
    text = """#define AOTRITON_V2_API_FLASH_ATTN_H
#include <aotriton/flash.h>
auto* check = &aotriton::v2::flash::check_gpu;
auto* fill = &aotriton::v2::flash::debug_simulate_encoded_softmax;
auto* gone = &aotriton::v2::flash::attn_bwd;
"""
    result = compile_text(compiler, "c++", "c++17", text)
    assert result.returncode != 0 and "attn_bwd" in result.stdout
    result = compile_text(compiler, "c++", "c++17", text.replace("auto* gone", "// "))
    assert result.returncode == 0, result.stdout
