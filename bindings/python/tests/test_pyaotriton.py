"""pyaotriton with the library itself, on a fake HIP runtime: what reaches the kernels, and what is refused."""

import ctypes
import functools
import inspect
import os
import pathlib
import re
import struct
import subprocess
import sys
import threading

import pytest

ROOT = pathlib.Path.cwd()  # of the runfiles
os.environ["AOTRITON_LIBRARY"] = str(next(ROOT.glob("libaotriton_v2.so.*")))
os.environ["AOTRITON_IMAGES_DIR"] = str(ROOT / "tests/dispatch/packs/images")

# Loaded by path beforehand, it is the one that both the library and pyaotriton find.
FAKE = ctypes.CDLL(str(ROOT / "bindings/python/tests/libamdhip64.so"), mode=ctypes.RTLD_GLOBAL)
FAKE.fake_add_stream.restype = ctypes.c_void_p
FAKE.fake_take_launches.restype = ctypes.c_char_p
FAKE.fake_add_device(b"gfx942:sramecc+:xnack-")

import pyaotriton
from aotriton import library
from pyaotriton import T0, T1, T2, T4, DType, HipMemory, Stream, hipError_t, lazy_tensor
from pyaotriton.v2 import flash as v2
from pyaotriton.v3 import flash as v3

B, HQ, HK, SQ, SK, D = 2, 4, 2, 48, 80, 64
TOP_LEFT, BOTTOM_RIGHT = -2147483647, -2147483646


def t4(address, *sizes, dtype=DType.kFloat16):
    strides = [sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1]
    return T4(address, sizes, strides, dtype)


def tensors(b=B, sq=SQ, sk=SK):
    return {"q": t4(0x1000, b, HQ, sq, D), "k": t4(0x2000, b, HK, sk, D), "v": t4(0x3000, b, HK, sk, D),
            "b": T4(), "out": t4(0x4000, b, HQ, sq, D), "softmax_lse": T2(0x5000, (b * HQ, sq), (7, 9), DType.kFloat32)}


def gradients(b=B, sq=SQ, sk=SK):
    return {"dout": t4(0x6000, b, HQ, sq, D), "dq": t4(0x7000, b, HQ, sq, D), "dk": t4(0x8000, b, HK, sk, D),
            "dv": t4(0x9000, b, HK, sk, D), "db": T4()}


DELTA = T2(0xA000, (B * HQ, SQ), (0, 0), DType.kFloat32)
NO_DROPOUT = {"dropout_p": 0.0, "philox_seed": T0(), "philox_offset1": T0(), "philox_offset2": 0}
DROPOUT = {"dropout_p": 0.25, "philox_seed": T0(0x10, DType.kUInt64), "philox_offset1": T0(0x20, DType.kInt64),
           "philox_offset2": -3}
FORWARD_REST = {"philox_seed_output": T0(), "philox_offset_output": T0(), "encoded_softmax": T4(),
                "atomic_for_causal": T0()}


def params(cls, **fields):
    """v3 params from v2's words."""
    words = {"q": "Q", "k": "K", "v": "V", "b": "B", "out": "Out", "softmax_lse": "L", "dout": "DO", "dq": "DQ",
             "dk": "DK", "dv": "DV", "db": "DB", "philox_seed": "philox_seed_ptr", "sm_scale": "Sm_scale",
             "atomic_for_causal": "persistent_atomic_counter"}
    result = cls()
    for name, value in fields.items():
        setattr(result, words.get(name, name), value)
    return result


def launches():
    """[(symbol, stream, {argument: bits})] since the last time."""
    result = []
    for line in FAKE.fake_take_launches().decode().splitlines():
        symbol, stream, *arguments = line.split()
        result.append((symbol, int(stream), {name: int(bits) for name, bits in (one.split("=") for one in arguments)}))
    return result


def int32(bits):
    return struct.unpack("<i", struct.pack("<I", bits))[0]


@pytest.fixture(autouse=True)
def nothing_pending():
    FAKE.fake_take_launches()


def ok(status):
    assert status == hipError_t.hipSuccess, pyaotriton.last_error()


def test_v2_forward():
    stream = FAKE.fake_add_stream(0)
    ok(v2.attn_fwd(**tensors(), sm_scale=0.5, **NO_DROPOUT, **FORWARD_REST, is_causal=True, stream=Stream(stream)))
    (symbol, on, arguments), = launches()
    assert (symbol, on) == ("attn_fwd", stream)
    found = {name.lower(): value for name, value in arguments.items()}
    assert [found[name] for name in ("q", "k", "v", "out")] == [0x1000, 0x2000, 0x3000, 0x4000]
    assert [int32(found["window_left"]), int32(found["window_right"])] == [TOP_LEFT, TOP_LEFT]


def both(v2_call, v3_call):
    """The launches of two calls, which are the same."""
    ok(v2_call())
    first = launches()
    ok(v3_call())
    assert first and launches() == first
    return first


@pytest.mark.parametrize("dropout", [NO_DROPOUT, DROPOUT], ids=["plain", "dropout"])
@pytest.mark.parametrize("is_causal", [False, True])
def test_v3_is_v2(is_causal, dropout):
    window = {"causal_type": 3, "window_left": TOP_LEFT, "window_right": TOP_LEFT} if is_causal else {
        "causal_type": 0, "window_left": 12345, "window_right": 2**40}  # unset: not looked at
    problem = {**tensors(), "sm_scale": -0.25, **dropout}
    forward = params(v3.attn_fwd_params, **problem, **FORWARD_REST, **window)
    both(lambda: v2.attn_fwd(**problem, **FORWARD_REST, is_causal=is_causal),
         lambda: v3.attn_fwd(forward, v3.attn_fwd_params.kVersion))
    backward = params(v3.attn_bwd_params, **problem, **gradients(), **window)
    backward.D = lazy_tensor.eager_delta(DELTA)
    split = both(lambda: v2.attn_bwd(**problem, **gradients(), delta=DELTA, is_causal=is_causal),
                 lambda: v3.attn_bwd(backward, 6))
    assert [one[0] for one in split] == ["bwd_preprocess", "bwd_dkdv", "bwd_dq"]
    options = v3.attn_options()
    options.force_backend_index = 1
    fused = both(lambda: v2.attn_bwd_fused(**problem, **gradients(), is_causal=is_causal),
                 lambda: v3.attn_bwd(backward, 6, options=options))
    assert [one[0] for one in fused] == ["bwd_fused"]


def compact():
    sums = {name: T1(address, (4,), (1,), DType.kInt32) for name, address in (("cu_seqlens_q", 0xB000), ("cu_seqlens_k", 0xC000))}
    return {**tensors(1, 100, 120), **sums, "softmax_lse": T2(0x5000, (HQ, 100), (1, 1), DType.kFloat32)}


def test_compact_varlen():
    longest = {"max_seqlen_q": 40, "max_seqlen_k": 50}
    renamed = {name.replace("max", "Max"): value for name, value in longest.items()}
    problem = {**compact(), "sm_scale": 0.25, **NO_DROPOUT}
    for varlen_type in (0, 1):  # cu_seqlens_q alone asks for it too
        forward = params(v3.attn_fwd_params, **problem, **renamed, varlen_type=varlen_type)
        (_, _, arguments), = both(
            lambda: v2.attn_fwd_compact_varlen(**problem, **longest, **FORWARD_REST, is_causal=False),
            lambda: v3.attn_fwd(forward, 3))
        assert {0xB000, 0xC000} <= set(arguments.values())
    backward = params(v3.attn_bwd_params, **problem, **renamed, **gradients(1, 100, 120), varlen_type=1)
    delta = T2(0xA000, (HQ, 100), (0, 0), DType.kFloat32)
    backward.D = delta
    both(lambda: v2.attn_bwd_compact_varlen(**problem, **longest, **gradients(1, 100, 120), delta=delta, is_causal=False),
         lambda: v3.attn_bwd(backward, 6))


def test_lazy_delta_is_acquired_for_split_only():
    acquired = []

    class Delta(lazy_tensor.LT2):
        def acquire(self):
            acquired.append(1)
            return DELTA, None

    backward = params(v3.attn_bwd_params, **tensors(), sm_scale=1.0, **gradients(), D=Delta())
    options = v3.attn_options()
    for index, names in ((1, ["bwd_fused"]), (0, ["bwd_preprocess", "bwd_dkdv", "bwd_dq"]), (-1, ["bwd_preprocess", "bwd_dkdv", "bwd_dq"])):
        options.force_backend_index = index
        ok(v3.attn_bwd(backward, 6, Stream(), options))
        assert [one[0] for one in launches()] == names
        assert len(acquired) == (0 if index == 1 else 1)
        acquired.clear()
    ok(v3.attn_bwd(params(v3.attn_bwd_params, **tensors(), sm_scale=1.0, **gradients()), 6))
    assert [one[0] for one in launches()] == ["bwd_fused"]  # there is no D


def test_dropout_and_its_mask():
    encoded = t4(0xD000, B, HQ, SQ, SK)
    rest = {**FORWARD_REST, "encoded_softmax": encoded, "philox_seed_output": T0(0x30, DType.kUInt64)}
    ok(v2.attn_fwd(**tensors(), sm_scale=0.5, **DROPOUT, **rest, is_causal=False))
    mask, forward = launches()
    assert (mask[0], forward[0]) == ("debug_simulate_encoded_softmax", "attn_fwd")
    for _, _, arguments in (mask, forward):
        assert {0x10, 0x20, 2**64 - 3} <= set(arguments.values())
    assert 0x30 in forward[2].values() and 0xD000 in mask[2].values()
    ok(v2.debug_simulate_encoded_softmax(encoded, 0.25, DROPOUT["philox_seed"], DROPOUT["philox_offset1"], -3))
    assert launches() == [mask]


# Whichever of the two kernels cannot be loaded, neither is launched. A new GPU has loaded nothing yet.
@pytest.mark.parametrize("loads_before", [0, 1])
def test_a_mask_without_its_forward_is_not_made(loads_before):
    stream = Stream(FAKE.fake_add_stream(FAKE.fake_add_device(b"gfx942:sramecc+:xnack-")))
    rest = {**FORWARD_REST, "encoded_softmax": t4(0xD000, B, HQ, SQ, SK)}
    FAKE.fake_fail(b"hipModuleLoadData", int(hipError_t.hipErrorOutOfMemory), loads_before)
    call = functools.partial(v2.attn_fwd, **tensors(), sm_scale=0.5, **DROPOUT, **rest, is_causal=False, stream=stream)
    assert call() == hipError_t.hipErrorOutOfMemory and not launches()
    ok(call())
    assert len(launches()) == 2


def test_the_counter_asks_for_the_persistent_schedule():
    rest = {**FORWARD_REST, "atomic_for_causal": T0(0x40, DType.kInt32)}
    ok(v2.attn_fwd(**tensors(), sm_scale=0.5, **NO_DROPOUT, **rest, is_causal=True))
    causal = {"causal_type": 3, "window_left": TOP_LEFT, "window_right": TOP_LEFT, "sm_scale": 0.5}
    ok(v3.attn_fwd(params(v3.attn_fwd_params, **tensors(), **NO_DROPOUT, **rest, **causal), 3))
    for symbol, _, arguments in launches():
        assert (symbol, arguments["persistent_counter"]) == ("attn_fwd_persistent", 0x40)
    rest["atomic_for_causal"] = T0(0x40, DType.kInt64)
    ok(v2.attn_fwd(**tensors(), sm_scale=0.5, **NO_DROPOUT, **rest, is_causal=False))  # not used
    assert v2.attn_fwd(**tensors(), sm_scale=0.5, **NO_DROPOUT, **rest, is_causal=True) == hipError_t.hipErrorInvalidValue
    assert pyaotriton.last_error() == "persistent_counter has dtype kInt64; it must be int32 (12)"


def test_scalars_without_dropout_are_not_looked_at():
    # p not positive: whatever the callers left in them.
    bad = {"dropout_p": -1.0, "philox_seed": T0(0x11, DType.kInt32), "philox_offset1": T0(3), "philox_offset2": 0}
    ok(v2.attn_fwd(**tensors(), sm_scale=0.5, **bad, **FORWARD_REST, is_causal=False))


@pytest.mark.parametrize("change, status, text", [
    ({"k": t4(0x2000, B, 3, SK, D)}, "hipErrorInvalidValue", "k"),
    ({"q": t4(0x1000, B, HQ, SQ, D, dtype=DType.kInt8)}, "hipErrorNotSupported", "q has dtype"),
    ({"q": T4()}, "hipErrorInvalidValue", "q is null"),
    ({"dropout_p": 0.5}, "hipErrorInvalidValue", "philox_seed is null"),
    ({"dropout_p": 0.5, "philox_seed": T0(8, DType.kInt32)}, "hipErrorInvalidValue", "philox_seed has dtype kInt32"),
    ({"encoded_softmax": t4(0xD000, B, HQ, SQ, SK + 1), **DROPOUT}, "hipErrorInvalidValue", "encoded_softmax has sizes"),
    ({"encoded_softmax": t4(0xD000, B, HQ, SQ, SK), **DROPOUT, "sm_scale": float("nan")}, "hipErrorInvalidValue", "sm_scale"),
    ({"causal_type": 1}, "hipErrorNotSupported", "causal_type is 1"),
    ({"varlen_type": 9}, "hipErrorNotSupported", "varlen_type is 9"),
])
def test_refusals(change, status, text):
    problem = {**tensors(), "sm_scale": 0.5, **NO_DROPOUT, **FORWARD_REST, **change}
    assert v3.attn_fwd(params(v3.attn_fwd_params, **problem), 3) == hipError_t[status]
    assert text in pyaotriton.last_error() and not launches()
    ok(v3.attn_fwd(params(v3.attn_fwd_params, **tensors(), sm_scale=0.5), 3))
    assert pyaotriton.last_error() == ""


def test_versions_and_options():
    forward = params(v3.attn_fwd_params, **tensors(), sm_scale=0.5)
    assert v3.attn_fwd(forward, 2) == hipError_t.hipErrorInvalidSymbol
    assert pyaotriton.last_error() == "params_version is 2; this library knows 1 (AOTriton 0.10 and 0.11) and 3 (0.12 and 0.13)"
    ok(v3.attn_fwd(forward, 1))
    options = v3.attn_options()
    options.force_backend_index = 1
    assert v3.attn_fwd(forward, 3, Stream(), options) == hipError_t.hipErrorNotSupported
    assert pyaotriton.last_error().startswith("the backend hopper cannot take the call: it is for sm_90, the GPU is gfx")
    options.deterministic = True
    options.force_backend_index = 2
    assert v3.attn_bwd(v3.attn_bwd_params(), 6, Stream(), options) == hipError_t.hipErrorNotSupported
    assert "force_backend_index is 2" in pyaotriton.last_error()
    assert v3.attn_bwd(v3.attn_bwd_params(), 7) == hipError_t.hipErrorInvalidSymbol
    with pytest.raises(AttributeError, match="no field Windows_left"):
        forward.Windows_left = 3
    with pytest.raises(TypeError, match="window_left is 2147483648"):
        v3.attn_fwd(params(v3.attn_fwd_params, **tensors(), causal_type=3, window_left=2**31), 3)


def test_calls_release_the_gil():
    assert not isinstance(library.load(), ctypes.PyDLL)


# Text of a refusal in one thread is not that of another.
def test_errors_belong_to_threads():
    assert v3.attn_fwd(v3.attn_fwd_params(), 2)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(pyaotriton.last_error()))
    thread.start()
    thread.join()
    assert seen == [""] and "params_version" in pyaotriton.last_error()


def test_check_gpu():
    ok(v2.check_gpu(Stream()))
    unknown = FAKE.fake_add_stream(FAKE.fake_add_device(b"gfx803"))
    assert v2.check_gpu(Stream(unknown)) == hipError_t.hipErrorNoBinaryForGpu
    assert "gfx803" in pyaotriton.last_error() and not launches()


def test_memory():
    memory = HipMemory()
    memory.alloc(8)
    assert memory.get_pointer() and memory.last_state() == hipError_t.hipSuccess
    there, back = ctypes.create_string_buffer(b"attention"[:8], 8), ctypes.create_string_buffer(8)
    memory.load_from_host(ctypes.addressof(there), 8)
    memory.store_to_host(ctypes.addressof(back), 8)
    assert back.raw == b"attentio"
    memory.zero_memory()
    memory.store_to_host(ctypes.addressof(back), 8)
    assert back.raw == bytes(8)
    memory.store_to_host(ctypes.addressof(back), 9)
    assert memory.last_state() == hipError_t.hipErrorInvalidValue
    memory.alloc(2**50)
    assert memory.last_state() == hipError_t.hipErrorOutOfMemory and memory.get_pointer() == 0
    memory.free()
    assert pyaotriton.hipDeviceSynchronize() == pyaotriton.hipSuccess
    assert pyaotriton.hipGetLastError() == hipError_t.hipErrorNotReady


def test_views():
    view = T4(0x10, (2, 3, 4, 5), [60, 20, 5, 1], DType.kBFloat16)
    assert (view.size(1), view.stride(1), view.sizes, view.strides) == (3, 20, [2, 3, 4, 5], [60, 20, 5, 1])
    assert (view.data_ptr, view.dtype, bool(view), bool(T2())) == (0x10, pyaotriton.kBFloat16, True, False)
    number = T0(0x20, DType.kUInt64)
    assert (number.size(0), number.size(1), number.stride(0), number.data_ptr) == (1, 0, 1, 0x20)
    for sizes in ((1, 2), (1, 2, 3, -4)):
        with pytest.raises(TypeError, match="sizes of a T4"):
            T4(0, sizes, (1, 1, 1, 1), DType.kFloat16)


def test_unknown_error_numbers():
    assert (hipError_t(12345).name, hipError_t(12345) == 12345) == ("hipError12345", True)
    assert str(hipError_t.hipErrorNotSupported) == "hipError_t.hipErrorNotSupported"


# The same numbers as HIP's own header.
def test_errors_are_hips():
    header, = ROOT.parent.glob("*triton_wheel/site/triton/backends/amd/include/hip/hip_runtime_api.h")
    enum = re.search(r"typedef enum __HIP_NODISCARD hipError_t \{(.*?)\} hipError_t;", header.read_text(), re.S)[1]
    values = {name: int(value) for name, value in re.findall(r"(hip\w+) *= *(\d+)", enum)}
    ours = {name: int(value) for name, value in hipError_t.__members__.items()}
    assert ours == {name: value for name, value in values.items() if name in ours}
    assert set(values) - set(ours) <= {"hipErrorTbd"}


# The parameters that upstream's functions have, by name and in order.
@pytest.mark.parametrize("function, names", [
    ("check_gpu", "stream"),
    ("attn_fwd", "q k v b sm_scale softmax_lse out dropout_p philox_seed philox_offset1 philox_offset2 philox_seed_output "
                 "philox_offset_output encoded_softmax is_causal atomic_for_causal stream extargs"),
    ("attn_bwd_compact_varlen", "q k v cu_seqlens_q cu_seqlens_k max_seqlen_q max_seqlen_k b sm_scale out dout dq dk dv db "
                                "softmax_lse delta dropout_p philox_seed philox_offset1 philox_offset2 is_causal stream extargs"),
    ("attn_bwd_fused", "q k v b sm_scale out dout dq dk dv db softmax_lse dropout_p philox_seed philox_offset1 "
                       "philox_offset2 is_causal stream extargs"),
    ("debug_simulate_encoded_softmax", "r dropout_p philox_seed_ptr philox_offset1 philox_offset2 stream"),
])
def test_names_of_parameters(function, names):
    assert list(inspect.signature(getattr(v2, function)).parameters) == names.split()


def test_import_loads_nothing():
    code = ("import sys, pyaotriton, pyaotriton.v2.flash, pyaotriton.v3.flash; pyaotriton.Stream(); "
            "print('torch' in sys.modules, 'numpy' in sys.modules, pyaotriton.get_name_suffix() != '')")
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "AOTRITON_LIBRARY": "/nowhere.so", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "False False True\n", done.stderr
