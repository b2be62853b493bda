"""Compiles one variant of a Triton kernel into a code object and a JSON report.

Bazel runs it in two ways that give the same bytes: one process an action
(`triton_compile.py --site DIR @args`), or as a persistent worker that speaks Bazel's JSON
protocol (`triton_compile.py --site DIR --persistent_worker`) and imports Triton once. Either way
a forked child compiles: a crash, a leak or a compiler that never ends stays there. No GPU, no
network, no cache outside the action's own temporary directory.
"""

import argparse
import contextlib
import ctypes
import hashlib
import importlib
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import traceback

# Line information would put the path of the source into the code object.
os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

PR_SET_PDEATHSIG = 1  # of prctl(2)

CODE_OBJECT = {"amd": "hsaco", "nvidia": "cubin"}


class CompileError(Exception):
    """A variant that cannot be built; the text says why."""


def parse_request(arguments):
    """The parsed arguments of one compilation; `@file` stands for the lines of a file."""
    parser = argparse.ArgumentParser(prog="triton_compile", fromfile_prefix_chars="@", description=__doc__)
    parser.add_argument("--root", required=True, help="directory that imports of the kernel source start from")
    parser.add_argument("--src", required=True, help="the kernel source, below root")
    parser.add_argument("--entry", required=True, help="the @triton.jit or @gluon.jit function")
    parser.add_argument("--kernel", required=True, help="name of the kernel in reports and packs")
    parser.add_argument("--family", required=True, help="directory of the pack")
    parser.add_argument("--arch", required=True, help="gfx942, sm_90, ...")
    parser.add_argument("--vendor", required=True, choices=sorted(CODE_OBJECT))
    parser.add_argument("--wave_size", required=True, type=int)
    parser.add_argument("--axes", required=True, type=json.loads, help="JSON: [[axis, [values]], ...]")
    parser.add_argument("--functional", required=True, type=json.loads, help="JSON: {axis: value}")
    parser.add_argument("--signature", required=True, type=json.loads,
                        help="JSON: {types: {argument: type}, alignments: {argument: multiple}, constants: {argument: text}}")
    parser.add_argument("--config", required=True, type=json.loads,
                        help="JSON: {constants, num_warps, num_stages, waves_per_eu, max_registers, max_seqlen_q}")
    parser.add_argument("--max_spills", required=True, type=int, help="vector registers that may spill; -1: any number")
    parser.add_argument("--fp_fusion", required=True, type=int, choices=[0, 1], help="may a multiplication and an addition be fused")
    parser.add_argument("--code", required=True, help="output: the code object")
    parser.add_argument("--report", required=True, help="output: the report")
    return parser.parse_args(arguments)


def import_kernel(request):
    """The @triton.jit or @gluon.jit function that the request names."""
    module_name = os.path.splitext(os.path.relpath(request.src, request.root))[0].replace(os.sep, ".")
    sys.path.insert(0, os.path.abspath(request.root))
    module = importlib.import_module(module_name)
    if not hasattr(module, request.entry):
        raise CompileError(f"{request.src} has no function {request.entry}")
    return getattr(module, request.entry)


def bind_arguments(kernel, request):
    """Triton's (signature, constexprs, attributes) for the kernel's parameters.

    Raises CompileError when declaration and source do not name the same parameters.
    """
    types = request.signature["types"]
    alignments = request.signature["alignments"]
    constants = {name: int(text) for name, text in request.signature["constants"].items()}
    constants.update(request.config["constants"])
    declared, actual = set(types) | set(constants), set(kernel.arg_names)
    if declared != actual:
        raise CompileError(
            f"the declaration and {request.entry} in {request.src} differ: "
            f"only declared: {sorted(declared - actual) or 'none'}; only in the source: {sorted(actual - declared) or 'none'}")
    signature = {name: triton_type(types.get(name, "constexpr"), constants) for name in kernel.arg_names}
    constexprs = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
    attributes = {(kernel.arg_names.index(name),): [["tt.divisibility", multiple]] for name, multiple in alignments.items()}
    return signature, constexprs, attributes


TENSOR_MAP = re.compile(r"tensor_map<(\w+),(\w+),(\d+)>")
# A box of TMA is as wide as the swizzle: a tile is as many of them side by side as it takes.
BOX_COLUMNS = 64
SWIZZLE_128B = 3  # of CUtensorMapSwizzle


def triton_type(declared, constants):
    """Triton's spelling of a declared type."""
    match = TENSOR_MAP.fullmatch(declared)
    if match is None:
        return declared
    dtype, rows, columns = match.groups()
    rows = rows if rows.isdigit() else constants[rows]
    return (f"tensordesc<{dtype}[1, 1, {rows}, {columns}],NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, "
            "rank=4, transposed=False, fp4_padded=False, cga_layout=[])>")


def check_tensor_maps(types, constants, made):
    """Raises CompileError unless the maps that the compiler wants are those that the dispatcher makes."""
    declared = [match.groups() for match in map(TENSOR_MAP.fullmatch, types) if match]
    due = [{"block_size": [1, 1, int(rows) if rows.isdigit() else constants[rows], BOX_COLUMNS], "elem_size": 2, "swizzle": SWIZZLE_128B}
           for _, rows, _ in declared]
    made = [{name: one[name] for name in ("block_size", "elem_size", "swizzle")} for one in made]
    if due != made:
        raise CompileError(f"the compiled kernel takes the tensor maps {made}, the dispatcher makes {due}")


def amd_resources(assembly):
    """Register counts and argument offsets that LLVM wrote into the metadata of an AMD kernel."""
    def number(key):
        return int(re.search(rf"^\s*-?\s*\.{key}:\s+(\d+)", assembly, re.M).group(1))

    arguments = re.search(r"\.args:\n(.*?)\n    \.group_segment_fixed_size", assembly, re.S).group(1)
    return {
        "registers": number("vgpr_count"),
        # Spilled scalar registers go into vector registers; spilled vector registers go to memory.
        "spills": number("vgpr_spill_count"),
        "scratch_bytes": number("private_segment_fixed_size"),
        "argument_sizes": [int(size) for size in re.findall(r"\.size:\s+(\d+)", arguments)],
    }


def _parameter_size(declaration):
    """Bytes of a parameter in PTX: ".param .u64 .ptr .global .align 1 NAME", ".param .align 64 .b8 NAME[128]"."""
    bits = re.search(r"\.[a-z](\d+)\b", declaration)[1]
    count = re.search(r"\[(\d+)\]", declaration)
    return int(bits) // 8 * (int(count[1]) if count else 1)


def nvidia_resources(ptx, cubin_path, site):
    """Register counts of a cubin, and the argument sizes of its PTX."""
    cuobjdump = os.path.join(site, "triton/backends/nvidia/bin/cuobjdump")
    usage = subprocess.run([cuobjdump, "--dump-resource-usage", cubin_path], check=True, capture_output=True, text=True).stdout
    number = lambda key: int(re.search(rf"\b{key}:(\d+)", usage).group(1))
    parameters = re.search(r"\.entry [^(]*\((.*?)\)", ptx, re.S).group(1)
    return {
        "registers": number("REG"),
        # ptxas reports spills as bytes of stack; the kernels have no other use of a stack.
        "spills": number("STACK") // 4,
        "scratch_bytes": number("STACK"),
        "argument_sizes": [_parameter_size(one) for one in parameters.split(",")],
    }


ARGUMENT_SIZES = {"i1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8, "fp32": 4, "fp64": 8}


def launch_arguments(names, types, actual_sizes):
    """[(name, type)] in the order of the launch, checked against what the compiler made."""
    arguments = []
    for name in names:
        match = TENSOR_MAP.fullmatch(types.get(name, ""))
        if match:  # the map, and the sizes and strides that the kernel could ask it for
            arguments += [(name, f"tensor_map<{match[2]}>"), *[("unread", "i32")] * 4, *[("unread", "i64")] * 4]
        elif name in types:
            arguments.append((name, types[name]))
    # Triton appends two pointers; both are null for a kernel that asks for no scratch.
    arguments += [("global_scratch", "*i8"), ("profile_scratch", "*i8")]
    sizes = [8 if type_.startswith("*") else 128 if type_.startswith("tensor_map") else ARGUMENT_SIZES[type_] for _, type_ in arguments]
    if sizes != actual_sizes:
        raise CompileError(f"the compiled kernel takes arguments of sizes {actual_sizes}, the declaration says {sizes}")
    return arguments


def serialised(log):
    """What ptxas says about wgmma instructions that it lets run one after another only."""
    return [line for line in log.splitlines() if re.search(r"\bC75\d\d\b|wgmma.*serializ", line)]


def compile_variant(request, site):
    """Writes the code object and the report of one variant."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource

    kernel = import_kernel(request)
    signature, constexprs, attributes = bind_arguments(kernel, request)
    options = {
        "num_warps": request.config["num_warps"],
        "num_stages": request.config["num_stages"],
        "enable_fp_fusion": bool(request.fp_fusion),
    }
    if request.vendor == "amd":
        options["waves_per_eu"] = request.config["waves_per_eu"]
        target = GPUTarget("hip", request.arch, request.wave_size)
    else:
        options["maxnreg"] = request.config["max_registers"] or None
        target = GPUTarget("cuda", int(request.arch[len("sm_"):]), request.wave_size)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        os.environ["TRITON_DUMP_PTXAS_LOG"] = "1"
        source = (GluonASTSource if kernel.is_gluon() else ASTSource)(kernel, signature, constexprs, attributes)
        with contextlib.redirect_stdout(io.StringIO()) as log:
            compiled = triton.compile(source, target=target, options=options)
    # Where the source says which products run beside what, waiting for each would make it the slower kernel.
    if warnings := serialised(log.getvalue()) if kernel.is_gluon() else []:
        raise CompileError("ptxas runs the matrix instructions one after another: " + "; ".join(warnings))
    metadata = compiled.metadata
    code = compiled.asm[CODE_OBJECT[request.vendor]]
    with open(request.code, "wb") as file:
        file.write(code)

    if request.vendor == "amd":
        resources = amd_resources(compiled.asm["amdgcn"])
    else:
        resources = nvidia_resources(compiled.asm["ptx"], request.code, site)
    if request.max_spills >= 0 and resources["spills"] > request.max_spills:
        raise CompileError(f"{resources['spills']} registers spill, the declaration allows {request.max_spills}")
    if getattr(metadata, "global_scratch_size", 0) or metadata.profile_scratch_size:
        raise CompileError("the kernel asks for scratch memory, which the dispatcher does not give")

    types = request.signature["types"]
    constants = request.config["constants"]
    check_tensor_maps([types.get(name, "") for name in kernel.arg_names], constants, getattr(metadata, "tensordesc_meta", None) or [])
    report = {
        "kernel": request.kernel,
        "family": request.family,
        "vendor": request.vendor,
        "arch": request.arch,
        "triton": triton.__version__,
        "axes": request.axes,
        "functional": request.functional,
        "config": request.config,
        "symbol": metadata.name,
        "threads": metadata.num_warps * metadata.warp_size,
        "shared": metadata.shared,
        "arguments": launch_arguments(kernel.arg_names, types, resources.pop("argument_sizes")),
        **resources,
        "size": len(code),
        "sha256": hashlib.sha256(code).hexdigest(),
    }
    with open(request.report, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


def run(arguments, site):
    """Compiles what `arguments` ask for. Returns (exit code, text for the user)."""
    request = parse_request(arguments)
    try:
        compile_variant(request, site)
        return 0, ""
    except Exception as error:
        what = str(error) if isinstance(error, CompileError) else traceback.format_exc()
        return 1, (
            f"triton_compile: {request.kernel} {request.functional} {request.config} for {request.arch}: {what}\n"
            f"To reproduce, in the directory that `bazel info execution_root` prints:\n"
            f"  {reproduction(request, site)}\n")


def reproduction(request, site):
    """The shell command that compiles `request` again."""
    words = [sys.executable, os.path.relpath(__file__), "--site", os.path.relpath(site)]
    for name, value in vars(request).items():
        words += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    return shlex.join(words)


def run_in_child(arguments, site, timeout):
    """`run` in a forked child, for at most `timeout` seconds; a failure leaves no outputs."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        # A build that is interrupted ends this process's parent: then it ends, too.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # Whatever the compiler prints must not mix with the worker protocol on stdout.
        os.dup2(2, 1)
        code, text = 1, ""
        try:
            code, text = run(arguments, site)
        except BaseException:  # argparse exits; the parent needs an answer all the same
            text = traceback.format_exc()
        os.write(write_end, text.encode())
        os._exit(code)
    os.close(write_end)
    # The compiler is C++ and does not look at Python's signals, so it is killed from outside.
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(timeout)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    out_of_time = signal.alarm(0) == 0
    if status:
        remove_outputs(arguments)
    if os.WIFSIGNALED(status):
        what = f"not finished after {timeout} s" if out_of_time else f"the compiler died of signal {os.WTERMSIG(status)}"
        return 1, f"{text}triton_compile: {what}; the arguments were\n  {shlex.join(arguments)}\n"
    return os.WEXITSTATUS(status), text


def remove_outputs(arguments):
    """Removes what a failed compilation may have written."""
    try:
        request = parse_request(arguments)
    except SystemExit:
        return  # arguments that name no outputs
    for output in (request.code, request.report):
        if os.path.exists(output):
            os.remove(output)


def serve(site, timeout):
    """Bazel's JSON worker protocol: one request a line on stdin, one response a line on stdout."""
    import triton  # noqa: F401  imported once, for all children
    import triton.compiler  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        code, text = run_in_child(request["arguments"], site, timeout)
        print(json.dumps({"exitCode": code, "output": text, "requestId": request.get("requestId", 0)}), flush=True)


def main(arguments):
    startup = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    startup.add_argument("--site", required=True, help="directory that holds the Python package triton")
    startup.add_argument("--persistent_worker", action="store_true")
    startup.add_argument("--timeout", type=int, default=1800, help="seconds that one compilation may take")
    options, rest = startup.parse_known_args(arguments)
    sys.path.insert(0, os.path.abspath(options.site))
    sys.dont_write_bytecode = True
    if options.persistent_worker:
        serve(options.site, options.timeout)
        return 0
    code, text = run_in_child(rest, options.site, options.timeout)
    sys.stderr.write(text)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
