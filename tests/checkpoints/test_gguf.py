"""Our GGUF: formats against golden data of the `gguf` package, what is written is read, bad files raise our error."""

from __future__ import annotations

import os
import pathlib
import struct
import time
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import atled.numpy as jnp
from atled import random
from atled.checkpoints import CheckpointError, gguf
from atled.checkpoints.gguf_formats import FORMATS

GOLDEN = pathlib.Path(__file__).with_name("golden") / "gguf_files"
NUMBERS = {f.name: f.number for f in FORMATS.values()}
READABLE = [f.name for f in FORMATS.values() if f.is_readable]


@pytest.fixture(scope="module")
def golden():
    with gguf.open(GOLDEN / "formats.gguf") as file:
        yield file


@pytest.fixture(scope="module")
def expected() -> dict[str, np.ndarray]:
    with np.load(GOLDEN / "expected.npz") as file:
        return dict(file)


def same(a: np.ndarray, b: np.ndarray) -> None:
    """Equal bits; of NaN, processors choose some."""
    assert a.dtype == b.dtype and a.shape == b.shape
    if a.dtype.kind == "f" or a.dtype == ml_dtypes.bfloat16:
        nan = np.isnan(a)
        assert (nan == np.isnan(b)).all()
        a, b = a[~nan], b[~nan]
    assert a.tobytes() == b.tobytes()


# What is read


@pytest.mark.parametrize("name", READABLE)
def test_formats(golden, expected, name):
    tensor = golden.tensors[name]
    assert (tensor.name, tensor.format, tensor.shape) == (name, name, expected[name].shape)
    same(tensor.read(), expected[name])
    for dtype in ("float16", ml_dtypes.bfloat16, "float64"):
        if FORMATS[NUMBERS[name]].dtype is None:
            with np.errstate(all="ignore"):
                same(tensor.read(dtype=dtype), expected[name].astype(dtype))
        else:
            assert tensor.read(dtype=dtype).dtype == dtype


@pytest.mark.parametrize("name", READABLE)
def test_rows(golden, expected, name):
    tensor, whole = golden.tensors[name], expected[name]
    n = len(whole)
    for rows in [slice(i, j) for i in (None, 0, 1, 33, -1) for j in (None, 0, 1, 40, n, n + 5, -1)]:
        same(tensor.read(rows), whole[rows])


def test_rows_of_one_axis_need_no_whole_blocks(tmp_path):
    x = np.linspace(-1, 1, 160, dtype="float32")
    gguf.save(tmp_path / "a.gguf", {}, {"x": x}, formats={"x": "Q4_0"})
    with gguf.open(tmp_path / "a.gguf") as file:
        whole = file.tensors["x"].read()
        for i in range(0, 160, 13):
            for j in range(i, 161, 31):
                same(file.tensors["x"].read(slice(i, j)), whole[i:j])


def test_many_blocks(tmp_path, monkeypatch):
    """Chunks of blocks are decoded and encoded one by one."""
    x = np.random.default_rng(0).standard_normal((7, 3, 96), dtype="float32")
    kinds = {"Q8_0": 0.02, "Q4_0": 0.4, "Q4_1": 0.3, "F16": 0.002, "BF16": 0.02, "F32": 0}
    gguf.save(tmp_path / "a.gguf", {}, dict.fromkeys(kinds, x), formats={k: k for k in kinds})
    whole = gguf.load(tmp_path / "a.gguf")
    monkeypatch.setattr("atled.checkpoints.gguf_formats.CHUNK", 64)
    gguf.save(tmp_path / "b.gguf", {}, dict.fromkeys(kinds, x), formats={k: k for k in kinds})
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()
    with gguf.open(tmp_path / "b.gguf") as file:
        for name, error in kinds.items():
            same(file.tensors[name].read(), whole[name])
            same(file.tensors[name].read(slice(2, 5), "float64"), whole[name][2:5].astype("float64"))
            assert np.abs(whole[name] - x).max() <= error


def test_their_own_dtypes(golden):
    kinds = {n: FORMATS[NUMBERS[n]].dtype or np.dtype("float32") for n in READABLE}
    for name, dtype in kinds.items():
        found = golden.tensors[name].read(dtype=None)
        assert found.dtype == dtype
        if dtype.itemsize * found.size == golden.tensors[name].nbytes:
            assert found.tobytes() == golden.tensors[name].raw().tobytes()
    assert golden.tensors["I64"].read(dtype=None).tolist() == [-(2**63), 2**53 + 1]
    found = golden.tensors["BF16"].read(slice(1, 2), None)
    assert found.dtype == ml_dtypes.bfloat16 and found.shape == (1, 64)


def test_metadata(golden):
    found = dict(golden.metadata)
    assert golden.version == 3 and found.pop("general.architecture") == "golden"
    for bits in (8, 16, 32, 64):
        assert found.pop(f"uint{bits}") == 2**bits - 1 and found.pop(f"int{bits}") == -(2 ** (bits - 1))
    assert found.pop("float32") == float(np.float32(0.1)) and found.pop("float64") == 0.1
    assert found.pop("bool") is True
    for name, dtype, values in [("integers", "int32", [1, -2, 3]), ("bools", "bool", [True, False])]:
        assert found[name].dtype == dtype and found.pop(name).tolist() == values
    assert found["floats"].dtype == "float32" and found.pop("floats").tolist() == [0.5, float(np.float32(0.1))]
    assert [x.tolist() for x in found.pop("nested")] == [[1, 2], [3]]
    assert found == {"text": "é漢\n\0", "strings": ["a", "", "漢"]}


def test_load_keeps_integers(tmp_path, golden):
    gguf.save(tmp_path / "a.gguf", {}, {n: t for n, t in golden.tensors.items() if n in READABLE})
    found = gguf.load(tmp_path / "a.gguf")
    assert list(found) == [n for n in golden.tensors if n != "Q2_K"]
    assert {str(x.dtype) for n, x in found.items() if n[0] != "I"} == {"float32"}
    assert [found[n].dtype.name for n in ("I8", "I16", "I32", "I64")] == ["int8", "int16", "int32", "int64"]


def test_the_file_is_never_changed(tmp_path):
    data = (GOLDEN / "formats.gguf").read_bytes()
    (tmp_path / "a.gguf").write_bytes(data)
    with gguf.open(tmp_path / "a.gguf") as file:
        for tensor in file.tensors.values():
            assert not tensor.raw().flags.writeable
            if tensor.format in READABLE:
                for dtype in (None, "float32", "float16"):
                    tensor.read(dtype=dtype)[...] = 1
    assert (tmp_path / "a.gguf").read_bytes() == data


def test_closing(tmp_path):
    gguf.save(tmp_path / "a.gguf", {}, {"x": np.arange(6, dtype="int8")})
    with gguf.open(tmp_path / "a.gguf") as file:
        kept, view = file.tensors["x"].read(), file.tensors["x"].raw()
        assert "1 tensors" in repr(file)
    file.close()
    assert kept.tolist() == view.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match=r"a\.gguf is closed"):
        file.tensors["x"].read()


def test_formats_that_cannot_be_read(golden):
    tensor = golden.tensors["Q2_K"]
    assert (tensor.format, tensor.shape, tensor.nbytes, len(tensor.raw())) == ("Q2_K", (2, 256), 168, 168)
    with pytest.raises(
        CheckpointError, match=r"(?s)formats.gguf: 'Q2_K' has the format Q2_K, which.*one of F32, .*Q6_K"
    ):
        tensor.read()


@pytest.mark.parametrize("number, name", [(5, "Q4_3"), (9, "Q8_1"), (23, "IQ4_XS"), (99, "number 99")])
def test_numbers_of_formats(tmp_path, number, name):
    (tmp_path / "a.gguf").write_bytes(built(infos=[info("a", [256], number), info("b", [1], 0, 160)], data=bytes(164)))
    with gguf.open(tmp_path / "a.gguf") as file:
        assert file.tensors["a"].format == name and file.tensors["b"].read() == 0
        assert file.tensors["a"].nbytes == (136 if number == 23 else 160)  # up to the next one if it is not known
        with pytest.raises(CheckpointError, match=f"'a' has the format {name}, which cannot be read"):
            file.tensors["a"].read(slice(0, 1))
        with pytest.raises(CheckpointError, match=f"'a' has the format {name}"):
            gguf.load(tmp_path / "a.gguf")


@pytest.mark.parametrize("rows", [slice(None, None, 2), slice(None, None, -1), 3, (1, 2)])
def test_bad_rows(golden, rows):
    with pytest.raises(ValueError, match=r"rows must be a slice of the first axis with step 1; got .* Q4_K\[2,2,256\]"):
        golden.tensors["Q4_K"].read(rows)


@pytest.mark.parametrize("name, dtype", [("F32", "int8"), ("Q4_0", "int8"), ("I8", "int16"), ("F32", "complex64")])
def test_bad_dtypes(golden, name, dtype):
    with pytest.raises(ValueError, match=f"the tensor's own dtype or None; got {dtype} for {name}, {name}"):
        golden.tensors[name].read(dtype=dtype)


# What is written


@pytest.mark.parametrize("name", ["Q8_0", "Q4_0", "Q4_1", "BF16"])
def test_bits_of_quantization(tmp_path, expected, name):
    gguf.save(tmp_path / "a.gguf", {}, {"x": expected["numbers"]}, formats={"x": name})
    with gguf.open(tmp_path / "a.gguf") as file:
        assert file.tensors["x"].raw().tobytes() == expected[f"numbers as {name}"].tobytes()


def test_small_and_large_numbers(tmp_path):
    x = np.zeros((4, 32), "float32")
    x[0, 3], x[1, 5], x[2, :], x[3, :2] = 1e-42, -3e-39, 60000, (65000, -400)
    for name in ("Q8_0", "Q4_0", "Q4_1"):
        gguf.save(tmp_path / "a.gguf", {}, {"x": x}, formats={"x": name})
        found = gguf.load(tmp_path / "a.gguf")["x"]
        assert np.isfinite(found).all() and np.abs(found - x).max() < 4400 and not found[:2].any()


@pytest.mark.parametrize("name", ["F32", "F16", "BF16", "F64", "I8", "I16", "I32", "I64"])
def test_dtypes_are_formats(tmp_path, name):
    dtype = FORMATS[NUMBERS[name]].dtype
    there = {
        f"x{len(s)}": np.arange(int(np.prod(s))).reshape(s).astype(dtype) for s in [(), (3,), (2, 0, 3), (2, 3, 1, 4)]
    }
    there["turned"] = np.arange(6).reshape(2, 3).astype(dtype).T
    if name != "BF16":
        there["big"] = np.arange(6).astype(np.dtype(dtype).newbyteorder(">"))
    gguf.save(tmp_path / "a.gguf", {"general.alignment": 64}, there)
    with gguf.open(tmp_path / "a.gguf") as file:
        assert list(file.tensors) == list(there)
        for key, x in there.items():
            assert file.tensors[key].format == name
            same(file.tensors[key].read(dtype=None), np.ascontiguousarray(x.astype(dtype)).reshape(x.shape))
    gguf.save(tmp_path / "b.gguf", {}, {"x": jnp.ones((2, 3), "bfloat16"), "n": jnp.arange(3, dtype="int32")})
    assert gguf.load(tmp_path / "b.gguf")["x"].tolist() == [[1] * 3] * 2


def test_values_come_back(tmp_path):
    told = {
        "text": "é\n", "list": ["a", ""], "nothing": [], "yes": True, "no": False, "float": 0.5, "double": 0.1,
        "infinity": float("-inf"), "natural": 7, "negative": -7, "large": 2**63, "least": -(2**63),
        "nested": [[["a"], []], [np.arange(3)]],
    }  # fmt: skip
    arrays = {
        "kept": np.arange(3, dtype="uint16"), "integers": [1, -2], "naturals": [1, 2**32 - 1], "longs": [-1, 2**40],
        "unsigned": [0, 2**64 - 1], "floats": [0.5, float("nan")], "doubles": (0.1, 2.0), "bools": [True, False],
        "turned": np.arange(6, dtype=">f8")[::2],
    }  # fmt: skip
    dtypes = ["uint16", "int32", "uint32", "uint64", "uint64", "float32", "float64", "bool", "float64"]
    dtypes[3] = "int64"
    gguf.save(tmp_path / "a.gguf", {**told, **arrays, "scalar": np.int8(-3), "exact": np.float64(0.5)}, {})
    with gguf.open(tmp_path / "a.gguf") as file:
        found = file.metadata
        assert found["scalar"] == -3 and found["exact"] == 0.5 and file.tensors == {}
        assert repr({k: found[k] for k in told if k != "nested"}) == repr({k: told[k] for k in told if k != "nested"})
        assert found["nested"][0] == [["a"], []] and found["nested"][1][0].tolist() == [0, 1, 2]
        for (name, x), dtype in zip(arrays.items(), dtypes, strict=True):
            assert found[name].dtype == dtype and np.array_equal(found[name], x, equal_nan=dtype[0] == "f")
        gguf.save(tmp_path / "b.gguf", found, {})
    assert repr(parsed((tmp_path / "b.gguf").read_bytes())[1].keys()) == repr(found.keys())
    kinds = parsed((tmp_path / "a.gguf").read_bytes())[3]
    wanted = {"yes": 7, "float": 6, "double": 12, "infinity": 6, "natural": 4, "negative": 5, "large": 10, "least": 11}
    assert {k: kinds[k] for k in wanted} == wanted and kinds["scalar"] == 1 and kinds["exact"] == 12


def test_tensors_of_another_file_are_copied(tmp_path, golden):
    path = tmp_path / "a.gguf"
    gguf.save(path, golden.metadata, golden.tensors)
    for alignment in (8, 256):
        with gguf.open(path) as file:  # which is replaced while it is read
            gguf.save(path, {**file.metadata, "general.alignment": alignment}, file.tensors)
    with gguf.open(path) as file:
        assert file.metadata["general.alignment"] == 256 and list(file.tensors) == list(golden.tensors)
        for name, tensor in file.tensors.items():
            old = golden.tensors[name]
            assert (tensor.format, tensor.shape, tensor.nbytes) == (old.format, old.shape, old.nbytes)
            assert tensor.raw().tobytes() == old.raw().tobytes() and tensor._start % 256 == 0


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "m.gguf"
    gguf.save(path, {}, {"a": np.ones(3)})

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(CheckpointError, match="No space left"):
            gguf.save(path, {}, {"a": np.zeros(3)})
    with pytest.raises(ValueError, match="not finite"):
        gguf.save(path, {}, {"a": np.full(32, np.nan)}, formats={"a": "Q8_0"})
    assert [f.name for f in tmp_path.iterdir()] == ["m.gguf"]
    assert gguf.load(path)["a"].sum() == 3


@pytest.mark.parametrize(
    "metadata, tensors, formats, kind, says",
    [
        ({}, {"a": 1.0}, {}, TypeError, "tensors must be arrays; a is float"),
        ({}, {"a": np.ma.masked_array([1], [True])}, {}, TypeError, "tensors must be arrays"),
        ({}, {"a": np.ones(1, "uint8")}, {}, TypeError, "a is uint8, which cannot be written"),
        ({}, {"a": np.array(["x"])}, {}, TypeError, "a is str.*, which cannot be written"),
        ({}, {"a": random.key(0)}, {}, TypeError, "a is key.*, which cannot be written"),
        ({}, {"a": np.ones(32, "int8")}, {"a": "Q8_0"}, TypeError, "int8, which cannot be written as Q8_0"),
        ({}, {"a": np.ones(256)}, {"a": "Q4_K"}, TypeError, r"(?s)written as Q4_K.*one of F32, F16, BF16, Q4_0"),
        ({}, {"a": np.ones(256)}, {"a": "F64"}, TypeError, "cannot be written as F64"),
        ({}, {"a": np.ones((1,) * 5)}, {}, ValueError, "at most 4 axes"),
        ({}, {"a": np.ones((32, 8))}, {"a": "Q8_0"}, ValueError, r"a multiple of 32; a has the shape \[32, 8\]"),
        ({}, {"a": np.ones(())}, {"a": "Q8_0"}, ValueError, "a multiple of 32"),
        ({}, {"a": np.ones(1)}, {"b": "F16"}, ValueError, "formats has 'b', but tensors does not"),
        ({}, {"a": np.full(1, 1e5)}, {"a": "F16"}, ValueError, "a has numbers that are too large for F16"),
        ({}, {"a": np.full(1, 3.4e38, "f4")}, {"a": "BF16"}, ValueError, "too large for BF16"),
        ({}, {"a": np.full(32, 1e7)}, {"a": "Q8_0"}, ValueError, "too large for Q8_0"),
        ({}, {"a": np.arange(32) * 1e5}, {"a": "Q4_1"}, ValueError, "too large for Q4_1"),
        ({}, {"a": np.full(32, np.inf)}, {"a": "Q4_0"}, ValueError, "not finite"),
        ({}, {"\ud800": np.ones(1)}, {}, ValueError, "lone surrogates"),
        ({}, {1: np.ones(1)}, {}, ValueError, "must be strings"),
        ({"x" * 65536: 1}, {}, {}, ValueError, "names of at most 65535 bytes"),
        ({"a": "\udc00"}, {}, {}, ValueError, "lone surrogates"),
        ({"a": None}, {}, {}, TypeError, "a is None"),
        ({"a": 2**64}, {}, {}, TypeError, "metadata must be numbers"),
        ({"a": [1, "b"]}, {}, {}, TypeError, "lists of one type; a is"),
        ({"a": [1, 0.5]}, {}, {}, TypeError, "lists of one type"),
        ({"a": [2**63, -1]}, {}, {}, TypeError, "lists of one type"),
        ({"a": [[1], 2]}, {}, {}, TypeError, "lists of one type"),
        ({"a": 1j}, {}, {}, TypeError, "metadata must be numbers"),
        ({"a": np.ones((2, 2))}, {}, {}, TypeError, "1-d arrays"),
        ({"a": np.ones(2, "float16")}, {}, {}, TypeError, "metadata must be numbers"),
        ({"a": [[[[[[[[[1]]]]]]]]]}, {}, {}, TypeError, "metadata must be numbers"),
        ({"general.alignment": 24}, {}, {}, ValueError, "general.alignment must be a power of two; got 24"),
        ({"general.alignment": 8.0}, {}, {}, ValueError, "must be a power of two"),
        ({"general.alignment": 0}, {}, {}, ValueError, "must be a power of two"),
        ([], {}, {}, TypeError, "must be dicts"),
        ({}, [np.ones(1)], {}, TypeError, "must be dicts"),
    ],
)  # fmt: skip
def test_what_cannot_be_written(tmp_path, metadata, tensors, formats, kind, says):
    with pytest.raises(kind, match=says):
        gguf.save(tmp_path / "a.gguf", metadata, tensors, formats=formats)
    assert not list(tmp_path.iterdir())


def test_paths(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.gguf"):
        gguf.save(tmp_path / "a.bin", {}, {})
    for path in (tmp_path / "none.gguf", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"gguf\.open: there is no file"):
            gguf.open(path)


# Bad files


def u32(n: int) -> bytes:
    return struct.pack("<I", n)


def u64(*n: int) -> bytes:
    return struct.pack(f"<{len(n)}Q", *n)


def text(s: str | bytes) -> bytes:
    data = s.encode() if isinstance(s, str) else s
    return u64(len(data)) + data


def entry(key: str | bytes, kind: int, data: bytes) -> bytes:
    return text(key) + u32(kind) + data


def info(name: str | bytes, ne: list[int], number: int = 0, offset: int = 0, axes: int | None = None) -> bytes:
    return text(name) + u32(len(ne) if axes is None else axes) + u64(*ne) + u32(number) + u64(offset)


def built(
    entries: list[bytes] = [], infos: list[bytes] = [], data: bytes = b"", alignment: int = 32, **more: Any  # noqa: B006
) -> bytes:  # fmt: skip
    counts = u64(more.get("tensors", len(infos)), more.get("keys", len(entries)))
    head = more.get("magic", b"GGUF") + u32(more.get("version", 3)) + counts + b"".join(entries) + b"".join(infos)
    return head + bytes(-len(head) % alignment) + data


def array(kind: int, count: int, data: bytes = b"") -> bytes:
    return u32(kind) + u64(count) + data


ONE = info("a", [8])  # 32 bytes
BAD = {
    "empty": (b"", "it has 0 bytes"),
    "short": (b"GGUF" + bytes(19), "it has 23 bytes"),
    "magic": (built(magic=b"GGML"), "must begin with b'GGUF'; it begins with b'GGML'"),
    "zip": (b"PK\3\4" + bytes(30), "must begin with b'GGUF'"),
    "big-endian": (b"GGUF" + bytes([0, 0, 0, 3]) + bytes(16), "the file is big-endian"),
    "big-endian magic": (b"FUGG" + bytes([0, 0, 0, 3]) + bytes(16), "the file is big-endian"),
    "version 0": (built(version=0), "has version 0"),
    "version 1": (built(version=1), "has version 1 of the format; only versions 2 and 3"),
    "version 4": (built(version=4), "has version 4"),
    "entries": (built(keys=2**64 - 1), "a header with 18446744073709551615 metadata entries needs"),
    "one entry more": (built([entry("a", 0, b"1") + bytes(9)], keys=2, alignment=1), " 26 bytes, but only 23"),
    "tensors": (built(tensors=2**63), "a header with 9223372036854775808 tensors needs"),
    "one tensor more": (built(infos=[ONE], tensors=2, alignment=1, data=bytes(19)), "truncated: '' needs 8 bytes"),
    "key length": (built([u64(2**64 - 1) + bytes(30)]), "a metadata key has 18446744073709551615 bytes; 65535 is the"),
    "key beyond": (built([u64(65535) + bytes(30)]), "truncated: a metadata key needs 65535 bytes, but only"),
    "long key": (built([entry("a" * 65536, 4, u32(1))]), "a metadata key has 65536 bytes; 65535 is the limit"),
    "key in Latin-1": (built([entry(b"\xe9", 4, u32(1))]), "a metadata key is not valid UTF-8: .* at byte 0"),
    "surrogate": (built([entry(b"\xed\xa0\x80", 4, u32(1))]), "a metadata key is not valid UTF-8"),
    "twice": (built([entry("a", 4, u32(1))] * 2), "the metadata key 'a' appears twice"),
    "string": (built([entry("a", 8, text(b"ok\xff"))]), "'a' is not valid UTF-8: .* at byte 2"),
    "string beyond": (built([entry("a", 8, u64(2**40))]), "'a' has 1099511627776 bytes; 100000000 is the limit"),
    "string just beyond": (built([entry("a", 8, u64(99) + b"x")]), "truncated: 'a' needs 99 bytes, but only"),
    "type": (built([entry("a", 13, bytes(20))]), "'a' has the type 13, which the format does not have"),
    "large type": (built([entry("a", 2**32 - 1, bytes(20))]), "'a' has the type 4294967295"),
    "bool": (built([entry("a", 7, b"\2")]), "'a' is boolean, but its bytes are not all 0 or 1"),
    "bools": (built([entry("a", 9, array(7, 3, b"\1\0\xff"))]), "'a' is boolean"),
    "element type": (built([entry("a", 9, array(99, 0, bytes(20)))]), "'a' has the type 99"),
    "elements": (built([entry("a", 9, array(0, 2**63))]), "'a' needs 9223372036854775808 bytes"),
    "elements, overflow": (built([entry("a", 9, array(12, 2**61))]), "'a' needs 18446744073709551616 bytes"),
    "strings": (built([entry("a", 9, array(8, 2**61))]), "'a' needs 18446744073709551616 bytes"),
    "string in strings": (built([entry("a", 9, array(8, 2, text("b") + text(b"\xff")))]), "'a' is not valid UTF-8"),
    "arrays": (built([entry("a", 9, array(9, 2**60))]), "'a' needs 13835058055282163712 bytes"),
    "depth": (built([entry("a", 9, array(9, 1) * 8 + array(0, 1, b"\1"))]), "'a' has arrays nested deeper than 8"),
    "endless": (built([entry("a", 9, array(9, 1) * 10**5)]), "'a' has arrays nested deeper than 8"),
    "alignment 0": (built([entry("general.alignment", 4, u32(0))]), "must be a power of two, as uint32; got 0"),
    "alignment 33": (built([entry("general.alignment", 4, u32(33))]), "must be a power of two, as uint32; got 33"),
    "alignment in 64 bits": (built([entry("general.alignment", 10, u64(32))]), "must be a power of two, as uint32"),
    "alignment in words": (built([entry("general.alignment", 8, text("32"))]), "as uint32; got '32'"),
    "negative alignment": (built([entry("general.alignment", 5, struct.pack("<i", -8))]), "power of two, as uint32"),
    "huge alignment": (built([entry("general.alignment", 4, u32(2**31))], [ONE], bytes(32)), "'a' are missing"),
    "tensor twice": (built(infos=[ONE, ONE], data=bytes(64)), "the tensor 'a' appears twice"),
    "tensor's name": (built(infos=[info(b"\xff", [8])], data=bytes(32)), "the name of a tensor is not valid UTF-8"),
    "tensor's long name": (built(infos=[info("a" * 65536, [8])], data=bytes(32)), "name of a tensor has 65536 bytes"),
    "five axes": (built(infos=[info("a", [1] * 5)], data=bytes(32)), "'a' has 5 axes; 4 is the limit"),
    "axes": (built(infos=[info("a", [1], axes=2**32 - 1)], data=bytes(32)), "'a' has 4294967295 axes"),
    "huge": (built(infos=[info("a", [2**62, 2])], data=bytes(32)), "'a' has a shape too large for any memory"),
    "overflow to 8": (built(infos=[info("a", [2**61 + 1, 8])], data=bytes(32)), "a shape too large"),
    "overflow, empty": (built(infos=[info("a", [2**63, 0])], data=bytes(32)), "a shape too large"),
    "large": (built(infos=[info("a", [2**59])], data=bytes(32)), "truncated: .* bytes of 'a' are missing"),
    "block": (built(infos=[info("a", [33], 8)], data=bytes(99)), r"last axis of 'a' must .* 32 in .* Q8_0; .* \[33\]"),
    "block, two axes": (built(infos=[info("a", [128, 256], 12)], data=bytes(9999)), r"256 in .* Q4_K; .* \[256, 128\]"),
    "block, no axis": (built(infos=[info("a", [], 2)], data=bytes(99)), "must be a multiple of 32"),
    "block of another": (built(infos=[info("a", [100], 10)], data=bytes(99)), "multiple of 256 in the format Q2_K"),
    "offset": (built(infos=[info("a", [1], 0, 4)], data=bytes(32)), "'a' begins at 4, which is not a multiple of 32"),
    "offset beyond": (built(infos=[info("a", [1], 0, 64)], data=bytes(32)), "36 bytes of 'a' are missing"),
    "offset, overflow": (built(infos=[info("a", [8], 0, 2**64 - 32)], data=bytes(32)), "bytes of 'a' are missing"),
    "empty beyond": (built(infos=[info("a", [0], 0, 64)], data=bytes(32)), "32 bytes of 'a' are missing"),
    "unknown beyond": (built(infos=[info("a", [8], 99, 64)], data=bytes(32)), "33 bytes of 'a' are missing"),
    "cut off": (built(infos=[ONE], data=bytes(31)), "the file is truncated: 1 bytes of 'a' are missing"),
    "no data": (built(infos=[ONE], alignment=1), "39 bytes of 'a' are missing"),
    "overlap": (built(infos=[info("a", [16]), info("b", [8], 0, 32)], data=bytes(64)), "'a' and 'b' overlap"),
    "same place": (built(infos=[ONE, info("b", [8])], data=bytes(64)), "'a' and 'b' overlap"),
    "inside": (built(infos=[info("a", [16]), info("b", [0], 0, 32)], data=bytes(64)), "'a' and 'b' overlap"),
    "unknown inside": (built(infos=[info("a", [16]), info("b", [8], 99, 32)], data=bytes(64)), "'a' and 'b' overlap"),
    "unknown in the same place": (built(infos=[ONE, info("b", [8], 99)], data=bytes(64)), "'b' and 'a' overlap"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, name):
    data, says = BAD[name]
    (tmp_path / "bad.gguf").write_bytes(data)
    tracemalloc.start()
    with pytest.raises(CheckpointError, match=f"^gguf.open: .*bad.gguf: .*({says})"):
        gguf.open(tmp_path / "bad.gguf")
    assert tracemalloc.get_traced_memory()[1] < 10**7
    tracemalloc.stop()


@pytest.mark.parametrize(
    "start, says",
    [
        (entry("a", 9, array(0, 10**9)), "'a' needs 1000000000 bytes, but a header has at most 100000000"),
        (entry("a", 8, u64(10**8 - 1)), "'a' needs 99999999 bytes, but a header has at most"),
        (entry("a", 9, array(8, 10**8)), "'a' needs 800000000 bytes"),
    ],
)
def test_headers_have_a_limit(tmp_path, start, says):
    with open(tmp_path / "bad.gguf", "wb") as file:
        file.write(built([start]))
        file.truncate(2 * 10**9)  # of zeros, which use no disk
    with pytest.raises(CheckpointError, match=says):
        gguf.open(tmp_path / "bad.gguf")


def test_unusual_files_that_are_valid(tmp_path):
    """Gaps, any order, bytes after the last tensor, no padding after the header of no tensors, tensors of no bytes."""
    infos = [info("a", [8], 0, 64), info("b", [2, 1], 24), info("c", [0, 3], 0, 64), info("d", [], 26, 128)]
    data = np.zeros(200, np.uint8)
    data[:2], data[64:96], data[128] = (1, 2), np.arange(8, dtype="<f4").view(np.uint8), 5
    (tmp_path / "a.gguf").write_bytes(built(infos=infos, data=data.tobytes(), version=2))
    with gguf.open(tmp_path / "a.gguf") as file:
        assert file.version == 2 and file.metadata == {}
    found = gguf.load(tmp_path / "a.gguf")
    assert found["a"].tolist() == [*range(8)] and found["b"].tolist() == [[1, 2]] and found["c"].shape == (3, 0)
    assert found["d"].shape == () and found["d"] == 5
    (tmp_path / "b.gguf").write_bytes(built([entry("a", 4, u32(1))], alignment=1))
    assert gguf.load(tmp_path / "b.gguf") == {}


def parsed(data: bytes) -> tuple[int, dict, dict, dict]:
    """What a file says, without any checks: version, metadata, tensors with offsets from the start, types."""
    at = 4

    def take(form: str) -> Any:
        nonlocal at
        at += struct.calcsize("<" + form)
        return struct.unpack_from("<" + form, data, at - struct.calcsize("<" + form))[0]

    def word() -> str:
        return take(f"{take('Q')}s").decode()

    def value(kind: int) -> Any:
        if kind == 8:
            return word()
        if kind == 9:
            inner, count = take("I"), take("Q")
            return [value(inner) for _ in range(count)]
        return take("BbHhIif??QqqQqd"[kind] if kind < 8 else {10: "Q", 11: "q", 12: "d"}[kind])

    version, count, keys = take("I"), take("Q"), take("Q")
    metadata, kinds, tensors = {}, {}, {}
    for _ in range(keys):
        key = word()
        kinds[key] = take("I")
        metadata[key] = value(kinds[key])
    for _ in range(count):
        name = word()
        shape = tuple([take("Q") for _ in range(take("I"))])[::-1]
        tensors[name] = (shape, take("I"), take("Q"))
    alignment = metadata.get("general.alignment", 32)
    start = -(-at // alignment) * alignment
    return version, metadata, {n: (s, f, start + offset) for n, (s, f, offset) in tensors.items()}, kinds


def plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return [plain(y) for y in x] if isinstance(x, list) else x.tolist() if isinstance(x, np.ndarray) else x


def check(path: pathlib.Path, data: bytes) -> bool:
    """Whether a file is read; then it gives what it says. No other error than ours, quickly and without much memory."""
    path.write_bytes(data)
    began = time.thread_time()
    try:
        with gguf.open(path) as file:
            version, metadata, tensors, _ = parsed(data)
            assert file.version == version and repr(plain(file.metadata)) == repr(metadata)
            assert list(file.tensors) == list(tensors)
            for name, (shape, number, start) in tensors.items():
                tensor = file.tensors[name]
                assert tensor.shape == shape and tensor.raw().tobytes() == data[start : start + tensor.nbytes]
                if number in FORMATS and FORMATS[number].is_readable:
                    assert tensor.read().shape == shape
                else:
                    with pytest.raises(CheckpointError, match="which cannot be read"):
                        tensor.read()
    except CheckpointError as error:
        assert path.name in str(error)
        return False
    finally:
        assert time.thread_time() - began < 1
    return True


def valid(tmp_path: pathlib.Path) -> bytes:
    """A small file with values of all types and tensors of some formats."""
    x = np.linspace(-2, 2, 64, dtype="float32").reshape(2, 32)
    values = {
        "general.alignment": 8, "s": "words", "l": ["a", "bc", ""], "i": np.arange(3, dtype="int16"), "n": [[1], [[2]]],
        "b": True, "bs": [True, False], "f": 0.1, "d": [0.5, 1.5], "u": np.uint8(3), "q": 2**50,
    }  # fmt: skip
    tensors = {"f": x, "h": x.astype("float16"), "q8": x, "q4": x, "i": np.arange(5, dtype="int32"), "z": np.ones(())}
    gguf.save(tmp_path / "valid.gguf", values, tensors, formats={"q8": "Q8_0", "q4": "Q4_1"})
    return (tmp_path / "valid.gguf").read_bytes()


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A file with one to three bytes, numbers or parts changed."""
    found = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(found) if rng.random() < 0.1 else min(len(found), 900)))
        what = rng.integers(6)
        if what == 0:
            found[at] ^= 1 << int(rng.integers(8))
        elif what == 1:
            found[at] = int(rng.choice([0, 1, 7, 8, 9, 127, 128, 255]))
        elif what == 2:
            large = [2**64 - 1, 2**63, 2**61, 2**32, 2**31, 10**6, 0, len(found)]
            found[at : at + 8] = u64(large[int(rng.integers(8))])
        elif what == 3:
            del found[at : at + int(rng.integers(1, 20))]
        elif what == 4:
            found[at:at] = found[: int(rng.integers(1, 40))]
        else:
            start = int(rng.integers(len(found)))
            found[at : at + 8] = found[start : start + 8]
    return bytes(found)


def test_mutated_files(tmp_path):
    data, rng = valid(tmp_path), np.random.default_rng(0)
    assert check(tmp_path / "m.gguf", data)
    tracemalloc.start()
    read = [check(tmp_path / "m.gguf", mutated(data, rng)) for _ in range(400)]
    assert 20 < sum(read) < 200 and tracemalloc.get_traced_memory()[1] < 2 * 10**7
    tracemalloc.stop()


def test_truncated_files(tmp_path):
    data = valid(tmp_path)
    last = len(data) - 1
    for size in {*np.random.default_rng(0).integers(0, last, 100).tolist(), *range(20, 40), last - 8, last - 7}:
        assert not check(tmp_path / "t.gguf", data[:size]), size
    assert check(tmp_path / "t.gguf", data[:last] + data[last:])
