"""The binding without a library or a GPU: struct layout, argument packing, library not found."""

import ctypes
import pathlib
import re
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
    """Answers every entry point with one status, refuses the one named `refused`, and keeps the arguments."""

    def __init__(self, status=0, text=b""):
        self.status, self.text, self.calls, self.refused = status, text, [], None
        for op in ("attn_fwd", "attn_bwd"):
            for name in (op, op + "_supported", op + "_prepare"):
                setattr(self, "aotriton_" + name, self._entry(name))
        for name in ("debug_simulate_encoded_softmax", "debug_fill_dropout_rng"):
            setattr(self, "aotriton_" + name, self._entry(name))

    def _entry(self, name):
        def call(*args):
            self.calls.append((name, *args))
            return library.INVALID_VALUE if name == self.refused else self.status

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


def _header():
    path = next((folder / "api/c/aotriton/aotriton.h" for folder in pathlib.Path(__file__).absolute().parents
                 if (folder / "api/c/aotriton/aotriton.h").is_file()), None)
    if path is None:
        pytest.skip("aotriton.h is not beside the test")
    return path.read_text()


_C_TYPES = {
    "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
    "float": ctypes.c_float, "void*": ctypes.c_void_p, "const uint64_t*": ctypes.c_void_p,
    "uint64_t*": ctypes.c_void_p, "int32_t*": ctypes.c_void_p, "aotriton_tensor": library.Tensor,
}


@pytest.mark.parametrize(("name", "struct"), [
    ("aotriton_tensor", library.Tensor), ("aotriton_attn_fwd_args", library.AttnFwdArgs),
    ("aotriton_attn_bwd_args", library.AttnBwdArgs)])
def test_structs_are_the_headers(name, struct):
    # The same types in the same order: ctypes lays them out as C does.
    body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), _header(), re.S).group(1)
    fields = []
    for line in body.splitlines():
        code = line.split("//")[0].strip()
        if code:
            kind, field, count = re.fullmatch(r"(.*[ *])(\w+)(?:\[(\d+)\])?;", code).groups()
            kind = _C_TYPES[kind.strip()]
            fields.append((field, kind * int(count) if count else kind))
    assert struct._fields_ == fields


def test_constants_are_the_headers():
    values = {name: int(value) for name, value in re.findall(r"AOTRITON_(\w+) = (-?\d+),", _header())}
    assert values["WINDOW_TOP_LEFT"] == aotriton.WINDOW_TOP_LEFT
    assert values["WINDOW_BOTTOM_RIGHT"] == aotriton.WINDOW_BOTTOM_RIGHT
    for prefix, numbers in (("VARLEN_", library.VARLEN_TYPES), ("FWD_", library.FWD_BACKENDS), ("BWD_", library.BACKENDS), ("", tensors._DTYPES)):
        for name, number in numbers.items():
            default = "NONE" if prefix == "VARLEN_" else "DEFAULT"
            assert values[prefix + (name or default).upper()] == number, name


def test_first_struct_keeps_its_layout():
    # What the first release had: later fields are appended.
    assert ctypes.sizeof(library.Tensor) == 80
    assert library.AttnFwdArgs.q.offset == 8 and library.AttnFwdArgs.logsumexp.offset == 328
    assert library.AttnFwdArgs.sm_scale.offset == 408 and library.AttnFwdArgs.reserved.offset == 420


def test_arguments(fake):
    q, k, v = _qkv()
    outputs = _outputs()
    result = aotriton.attn_fwd(q, k, v, sm_scale=-0.5, window=(-3, aotriton.WINDOW_BOTTOM_RIGHT), stream=7, **outputs)
    assert result == (outputs["out"], outputs["logsumexp"])
    (name, args, stream), = fake.calls
    assert (name, stream, args.struct_size) == ("attn_fwd", 7, ctypes.sizeof(library.AttnFwdArgs))
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


class FakeScalar(FakeTensor):
    def __init__(self, ptr, dtype="torch.int64", shape=()):
        super().__init__(shape, dtype=dtype, ptr=ptr)


def test_everything_else_of_the_forward(fake):
    q, k, v = _qkv()
    seed, offset, seed_out, offset_out = (FakeScalar(ptr) for ptr in (0x10, 0x20, 0x30, 0x40))
    numbers = {name: FakeTensor((3,), dtype="torch.int32", ptr=ptr) for ptr, name in enumerate(
        ("cu_seqlens_q", "cu_seqlens_k", "seq_starts_q", "seq_starts_k"), 0x100)}
    encoded = FakeTensor((2, 8, 4, 6))
    counter = FakeTensor((1,), dtype="torch.int32", ptr=0x60)
    aotriton.attn_fwd(
        q, k, v, persistent_counter=counter, bias=FakeTensor((2, 8, 5, 7), stride=(0, 0, 7, 1), ptr=0x50),
        dropout_p=0.25, philox_seed=seed, philox_offset1=offset, philox_offset2=-1, philox_seed_output=seed_out,
        philox_offset_output=offset_out, varlen="strided", max_seqlen_q=4, max_seqlen_k=6, encoded_softmax=encoded,
        **numbers, **_outputs())
    (_, asked, _), (name, packed, p, *rest), (_, args, _) = fake.calls
    assert asked is args and [one[0] for one in fake.calls[::2]] == ["attn_fwd_prepare", "attn_fwd"]
    assert (args.bias.data, list(args.bias.strides)) == (0x50, [0, 0, 7, 1])
    assert [getattr(args, name).data for name in numbers] == [0x100, 0x101, 0x102, 0x103]
    assert (args.cu_seqlens_q.dtype, args.cu_seqlens_q.rank, args.cu_seqlens_q.sizes[0]) == (12, 1, 3)
    assert (args.varlen_type, args.max_seqlen_q, args.max_seqlen_k, args.dropout_p) == (3, 4, 6, 0.25)
    assert (args.philox_seed, args.philox_offset1, args.philox_offset2) == (0x10, 0x20, 2**64 - 1)
    assert (args.philox_seed_output, args.philox_offset_output, args.persistent_counter) == (0x30, 0x40, 0x60)
    assert (name, p, rest) == ("debug_simulate_encoded_softmax", 0.25, [0x10, 0x20, 2**64 - 1, 0])
    assert list(packed.sizes) == [2, 8, 4, 6]


@pytest.mark.parametrize("refused, asked", [
    ("attn_fwd_prepare", []), ("debug_simulate_encoded_softmax", ["attn_fwd_prepare"])])
def test_with_encoded_softmax_a_refusal_enqueues_nothing(fake, refused, asked):
    fake.refused, fake.text = refused, b"it is odd"
    options = {"dropout_p": 0.25, "philox_seed": FakeScalar(0x10), "philox_offset1": FakeScalar(0x20), **_outputs()}
    with pytest.raises(aotriton.AotritonError, match="it is odd"):
        aotriton.attn_fwd(*_qkv(), encoded_softmax=FakeTensor((2, 8, 5, 7)), **options)
    assert [one[0] for one in fake.calls] == [*asked, refused]


def test_encoded_softmax_has_the_sizes_of_the_scores(fake):
    options = {"dropout_p": 0.25, "philox_seed": FakeScalar(0x10), "philox_offset1": FakeScalar(0x20), **_outputs()}
    numbers = {name: FakeTensor((4,), dtype="torch.int32") for name in ("cu_seqlens_q", "cu_seqlens_k")}
    for varlen, shape in (({}, (2, 8, 5, 7)), ({"varlen": "compact", "max_seqlen_q": 4, **numbers}, (3, 8, 4, 7))):
        aotriton.attn_fwd(*_qkv(), encoded_softmax=FakeTensor(shape), **varlen, **options)
        fake.calls.clear()
        with pytest.raises(aotriton.AotritonError, match=re.escape(f"must be {shape}")):
            aotriton.attn_fwd(*_qkv(), encoded_softmax=FakeTensor((*shape[:3], 8)), **varlen, **options)
        assert [one[0] for one in fake.calls] == ["attn_fwd_prepare"]


def test_random_numbers_of_dropout(fake):
    numbers = FakeTensor((2, 8, 5, 7), stride=(280, 7, 56, 1), dtype="torch.int32", ptr=0x70)
    aotriton.debug_fill_dropout_rng(numbers, philox_seed=-1, philox_offset=2**64 + 5, stream=7)
    (name, packed, *rest), = fake.calls
    assert (name, rest) == ("debug_fill_dropout_rng", [2**64 - 1, 5, 7])
    assert (packed.data, packed.dtype, list(packed.sizes), list(packed.strides)) == (0x70, 12, [2, 8, 5, 7], [280, 7, 56, 1])
    fake.status, fake.text = 801, b"random has dtype 2"
    with pytest.raises(aotriton.AotritonError, match="random has dtype 2"):
        aotriton.debug_fill_dropout_rng(FakeTensor((2, 8, 5, 7)), philox_seed=1, philox_offset=2)


def test_a_counter_that_the_pointer_cannot_say_is_refused(fake):
    for counter in (FakeTensor((1,), dtype="torch.int64"), FakeTensor((2,), dtype="torch.int32")):
        with pytest.raises(aotriton.AotritonError, match="accepted: a tensor of one int32"):
            aotriton.attn_fwd(*_qkv(), persistent_counter=counter, **_outputs())


def test_without_dropout_no_scalar_is_packed(fake):
    aotriton.attn_fwd(*_qkv(), philox_seed="ignored", **_outputs())
    args = fake.calls[0][1]
    assert (args.philox_seed, args.dropout_p, args.bias.data, args.varlen_type) == (None, 0, None, 0)


def test_scalars(fake):
    q, k, v = _qkv()
    options = {"dropout_p": 0.5, "philox_offset1": FakeScalar(0x20), **_outputs()}
    for bad in (FakeScalar(0x10, dtype="torch.int32"), FakeScalar(0x10, shape=(2,))):
        assert "philox_seed is int" in aotriton.supported(q, k, v, philox_seed=bad, **options)
    assert aotriton.supported(q, k, v, philox_seed=FakeScalar(0x10, "torch.uint64", (1,)), **options) is None
    assert [tensors.as_int64(n) for n in (-1, 2**63, 2**64 - 2, 5)] == [-1, -2**63, -2, 5]


def test_backward(fake):
    q, k, v = _qkv()
    outputs = _outputs()
    dq, dk, dv = (FakeTensor(one.shape, ptr=0x20000) for one in (q, k, v))
    delta, do = FakeTensor((2, 8, 5), dtype="torch.float32"), FakeTensor((2, 8, 5, 40), stride=(0, 0, 0, 0))
    given = {"dq": dq, "dk": dk, "dv": dv}
    arguments = do, q, k, v, outputs["out"], outputs["logsumexp"]
    assert aotriton.attn_bwd(*arguments, delta=delta, backend="split", is_causal=True, **given) == (dq, dk, dv)
    dbias = FakeTensor((2, 8, 5, 7))
    result = aotriton.attn_bwd(*arguments, backend="fused", bias=FakeTensor((2, 8, 5, 7)), dbias=dbias, **given)
    assert result == (dq, dk, dv, dbias)
    (name, split, _), (_, fused, _) = fake.calls
    assert (name, split.struct_size, split.backend, split.is_windowed) == (
        "attn_bwd", ctypes.sizeof(library.AttnBwdArgs), 1, 1)
    assert (split.delta.data, split.dbias.data, list(split.dout.strides)) == (0x10000, None, [0, 0, 0, 0])
    assert (split.dq.data, split.logsumexp.rank, list(split.dv.sizes)) == (0x20000, 3, [2, 2, 7, 40])
    assert (fused.backend, fused.delta.data, fused.dbias.data) == (2, None, 0x10000)
    fake.status, fake.text = 1, b"dout is odd"
    assert aotriton.attn_bwd_supported(*arguments, delta=delta, **given) == "dout is odd"
    with pytest.raises(aotriton.AotritonError, match="dout is odd"):
        aotriton.attn_bwd_prepare(*arguments, delta=delta, **given)
    assert [one[0] for one in fake.calls[2:]] == ["attn_bwd_supported", "attn_bwd_prepare"]


def test_unknown_words(fake):
    with pytest.raises(ValueError, match="'packed'.*'compact'"):
        aotriton.attn_fwd(*_qkv(), varlen="packed", **_outputs())
    with pytest.raises(ValueError, match="backend is 'fast'"):
        aotriton.attn_bwd(*_qkv(), *_qkv(), backend="fast")
    with pytest.raises(ValueError, match="encoded_softmax"):
        aotriton.attn_fwd(*_qkv(), encoded_softmax=FakeTensor((2, 8, 5, 7)), **_outputs())
    with pytest.raises(TypeError, match="biass"):
        aotriton.attn_fwd(*_qkv(), biass=None, **_outputs())
    assert not fake.calls


def test_shapes_of_what_is_allocated(fake, monkeypatch):
    monkeypatch.setattr(attention, "empty", lambda shape, like, dtype=None: FakeTensor(tuple(shape), dtype=dtype or like.dtype))
    q, k, v = _qkv()
    for varlen, shape in ((None, (2, 8, 5)), ("padded", (2, 8, 4)), ("compact", (8, 5)), ("strided", (8, 5))):
        out, lse = aotriton.attn_fwd(q, k, v, varlen=varlen, max_seqlen_q=4)
        assert (out.shape, lse.shape, lse.dtype) == ((2, 8, 5, 40), shape, "float32")
        *grads, dbias = aotriton.attn_bwd(out, q, k, v, out, lse, varlen=varlen, max_seqlen_q=4, dbias=True)
        assert [one.shape for one in grads] == [one.shape for one in (q, k, v)]
        assert (dbias.shape, dbias.dtype) == ((2, 8, 5, 7), q.dtype)
        delta = fake.calls[-1][1].delta
        assert (list(delta.sizes)[:delta.rank], delta.dtype) == (list(shape), 1)
    aotriton.attn_bwd(out, q, k, v, out, lse, backend="fused")
    assert fake.calls[-1][1].delta.data is None


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
