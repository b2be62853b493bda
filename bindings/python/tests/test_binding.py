"""The binding without a library or a GPU: struct layout, argument packing, library not found."""

import ctypes
import pathlib
import subprocess
import sys

import pytest

import aotriton
from aotriton import attention, library, tensors

PACKAGE_ROOT = pathlib.Path(aotriton.__file__).resolve().parents[1]


class FakeTensor:
    """The four members the binding asks for, and no more."""

    def __init__(self, shape, stride=None, dtype="torch.bfloat16", ptr=0x10000):
        self.shape, self.dtype, self._stride, self._ptr = shape, dtype, stride, ptr
        if stride is None:
            self._stride = tuple(_product(shape[i + 1:]) for i in range(len(shape)))

    def data_ptr(self):
        return self._ptr

    def stride(self):
        return self._stride


def _product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result


class FakeLibrary:
    """Answers every entry point with one status and keeps the arguments."""

    def __init__(self, status=0, text=b""):
        self.status, self.text, self.calls = status, text, []
        for name in ("attn_fwd", "attn_fwd_supported", "attn_fwd_prepare"):
            setattr(self, "aotriton_" + name, self._entry(name))

    def _entry(self, name):
        def call(args, stream):
            self.calls.append((name, args, stream))
            return self.status

        return call

    def aotriton_last_error(self):
        return self.text


@pytest.fixture
def fake(monkeypatch):
    lib = FakeLibrary()
    for module in (library, attention):
        monkeypatch.setattr(module, "load", lambda: lib)
    return lib


def _qkv(**options):
    return [FakeTensor((2, heads, seqlen, dim), **options)
            for heads, seqlen, dim in ((8, 5, 64), (2, 7, 64), (2, 7, 40))]


def _outputs():
    return {"out": FakeTensor((2, 8, 5, 40)), "logsumexp": FakeTensor((2, 8, 5), dtype="torch.float32")}


def test_struct_layout():
    # The C header's on an LP64 machine.
    assert ctypes.sizeof(library.Tensor) == 80
    assert library.Tensor.sizes.offset == 16 and library.Tensor.strides.offset == 48
    assert ctypes.sizeof(library.AttnFwdArgs) == 424
    assert library.AttnFwdArgs.q.offset == 8 and library.AttnFwdArgs.logsumexp.offset == 328
    assert library.AttnFwdArgs.sm_scale.offset == 408 and library.AttnFwdArgs.window_right.offset == 416


def test_arguments(fake):
    q, k, v = _qkv()
    outputs = _outputs()
    result = aotriton.attn_fwd(q, k, v, sm_scale=-0.5, window=(-3, aotriton.WINDOW_BOTTOM_RIGHT), stream=7, **outputs)
    assert result == (outputs["out"], outputs["logsumexp"])
    (name, args, stream), = fake.calls
    assert (name, stream, args.struct_size) == ("attn_fwd", 7, 424)
    assert (args.is_windowed, args.window_left, args.window_right) == (1, -3, -2147483646)
    assert args.sm_scale == -0.5
    assert (args.q.data, args.q.dtype, args.q.rank) == (0x10000, 3, 4)
    assert list(args.k.sizes) == [2, 2, 7, 64] and list(args.v.strides) == [560, 280, 40, 1]
    assert (args.logsumexp.dtype, args.logsumexp.rank, list(args.logsumexp.sizes)[:3]) == (1, 3, [2, 8, 5])


def test_defaults(fake):
    q, k, v = _qkv()
    aotriton.attn_fwd(q, k, v, **_outputs())
    aotriton.attn_fwd(q, k, v, is_causal=True, **_outputs())
    (_, full, stream), (_, causal, _) = fake.calls
    assert (full.is_windowed, full.sm_scale, stream) == (0, 0.125, 0)
    assert (causal.is_windowed, causal.window_left, causal.window_right) == (1, -2147483647, -2147483647)


def test_logsumexp_is_optional(fake):
    q, k, v = _qkv()
    out = FakeTensor((2, 8, 5, 40))
    assert aotriton.attn_fwd(q, k, v, out=out, logsumexp=False) == (out, None)
    assert fake.calls[0][1].logsumexp.data is None


def test_empty_tensor_is_not_no_tensor():
    assert tensors.pack("k", FakeTensor((1, 1, 0, 64), ptr=0)).data
    assert tensors.pack("k", FakeTensor((1, 1, 1, 64), ptr=0)).data is None


def test_refusal_has_status_and_text(fake):
    fake.status, fake.text = 801, b"k has 3 heads"
    q, k, v = _qkv()
    with pytest.raises(aotriton.AotritonError, match="k has 3 heads") as caught:
        aotriton.attn_fwd(q, k, v, **_outputs())
    assert caught.value.status == 801
    assert aotriton.supported(q, k, v, **_outputs()) == "k has 3 heads"
    with pytest.raises(aotriton.AotritonError):
        aotriton.prepare(q, k, v, **_outputs())
    assert [name for name, _, _ in fake.calls] == ["attn_fwd", "attn_fwd_supported", "attn_fwd_prepare"]


def test_what_the_struct_cannot_say(fake):
    q, k, v = _qkv()
    reason = aotriton.supported(*_qkv(dtype="torch.float64"), **_outputs())
    assert "q has dtype torch.float64" in reason and "bfloat16" in reason
    reason = aotriton.supported(q, FakeTensor((1, 2, 2, 7, 64)), v, **_outputs())
    assert "k has 5 dimensions" in reason
    with pytest.raises(ValueError, match="window left"):
        aotriton.attn_fwd(q, k, v, window=(2**31, 0), **_outputs())
    with pytest.raises(ValueError, match="is_causal"):
        aotriton.attn_fwd(q, k, v, window=(0, 0), is_causal=True, **_outputs())
    assert not fake.calls


def test_cpu_tensor_is_refused(fake):
    torch = pytest.importorskip("torch")
    assert "q is on device cpu" in aotriton.supported(*(torch.zeros(1, 1, 2, 16) for _ in "qkv"))


def _python(code, **env):
    return subprocess.run(
        [sys.executable, "-B", "-c", code], env={"PYTHONPATH": str(PACKAGE_ROOT), **env}, capture_output=True, text=True)


def test_library_not_found(tmp_path):
    missing = str(tmp_path / "no.so")
    done = _python("import aotriton; aotriton.version()", AOTRITON_LIBRARY=missing)
    assert done.returncode and f"AOTRITON_LIBRARY={missing}: there is no such file" in done.stderr
    text = tmp_path / "text.so"
    text.write_text("not a library")
    done = _python("import aotriton; aotriton.version()", AOTRITON_LIBRARY=str(text))
    assert "AotritonError" in done.stderr and "cannot be used" in done.stderr


def test_import_loads_neither_torch_nor_library():
    done = _python("import sys, aotriton; print('torch' in sys.modules)", AOTRITON_LIBRARY="/nowhere.so")
    assert done.stdout == "False\n", done.stderr


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
