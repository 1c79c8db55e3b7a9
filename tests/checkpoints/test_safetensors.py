"""Our safetensors: what is written is read, in one file and in several; bad files are refused with our error."""

from __future__ import annotations

import json
import os

import ml_dtypes
import numpy as np
import pytest

import atled.numpy as jnp
from atled import nn, random
from atled.checkpoints import CheckpointError, safetensors
from atled.checkpoints.safetensors_header import DTYPES

KINDS = {tag: np.dtype(kind) for tag, (_, kind) in DTYPES.items() if kind is not None}


def numbers(dtype: np.dtype, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Arrays of all bit patterns."""
    n = int(np.prod(shape)) * dtype.itemsize
    data = np.random.default_rng(seed).integers(0, 2 if dtype.kind == "b" else 256, n, dtype=np.uint8)
    return data.view(dtype).reshape(shape)


def same(a: np.ndarray, b: np.ndarray) -> None:
    assert a.dtype == b.dtype and a.shape == b.shape and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def raw(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(shape: object = (1,), place: object = (0, 4), dtype: object = "F32", **more: object) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": place, **more}


@pytest.mark.parametrize("tag", KINDS)
def test_every_dtype_comes_back(tmp_path, tag):
    there = {f"x{len(s)}": numbers(KINDS[tag], s) for s in [(), (3,), (2, 0, 3), (2, 3, 4)]}
    safetensors.save(tmp_path / "a.safetensors", there)
    found = safetensors.load(tmp_path / "a.safetensors")
    assert sorted(found) == sorted(there)
    for name, x in there.items():
        same(found[name], x)
        assert not found[name].flags.writeable


def test_trees_are_named_by_paths(tmp_path):
    model = nn.Sequential(nn.Linear(2, 3, key=random.key(0)), nn.Linear(3, 1, key=random.key(1)))
    safetensors.save(tmp_path / "m.safetensors", {"model": model, "more": [np.ones(2), None, jnp.arange(3)]})
    found = safetensors.load(tmp_path)
    assert sorted(n for n in found if n.startswith("more")) == ["more.0", "more.2"]
    weights = [n for n in found if n.endswith("weight")]
    assert len(weights) == 2 and all(n.startswith("model.") and "/" not in n for n in weights)
    flat = safetensors.load(tmp_path, [*weights, "more.2"])
    assert list(flat) == [*weights, "more.2"] and flat["more.2"].tolist() == [0, 1, 2]


def test_a_state_of_a_model_goes_there_and_back(tmp_path):
    a, b = (nn.Linear(2, 3, key=random.key(i)) for i in (0, 1))
    safetensors.save(tmp_path / "m.safetensors", nn.state_dict(a))
    again = nn.load_state_dict(b, safetensors.load(tmp_path / "m.safetensors"))
    same(np.asarray(again.weight), np.asarray(a.weight))


def test_arrays_of_any_layout(tmp_path):
    x = np.arange(24, dtype=">f4").reshape(2, 3, 4)
    there = {
        "big": x,
        "turned": x.T,
        "step": np.arange(10)[::2],
        "bf16": jnp.ones((2, 2), "bfloat16"),
        "s": np.float16(2),
    }
    safetensors.save(tmp_path / "a.safetensors", there)
    found = safetensors.load(tmp_path)
    same(found["big"], x.astype("<f4"))
    same(found["turned"], np.ascontiguousarray(x.T).astype("<f4"))
    assert found["step"].tolist() == [0, 2, 4, 6, 8] and found["bf16"].dtype == ml_dtypes.bfloat16
    assert found["s"].shape == () and found["s"] == 2


def test_headers_are_padded_and_metadata_comes_back(tmp_path):
    for n in range(9):
        safetensors.save(tmp_path / "a.safetensors", {"x" * (n + 1): np.ones(2)}, metadata={"é": "\n" * n})
        data = (tmp_path / "a.safetensors").read_bytes()
        assert int.from_bytes(data[:8], "little") % 8 == 0
        assert safetensors.metadata(tmp_path) == {"é": "\n" * n}
    safetensors.save(tmp_path / "a.safetensors", {})
    assert safetensors.load(tmp_path) == {} and safetensors.metadata(tmp_path) == {}


def test_shards(tmp_path):
    there = {f"x{i}": np.full(10, i, "float32") for i in range(7)}  # 40 bytes each
    there["large"] = np.arange(100.0)
    path = tmp_path / "m.safetensors"
    safetensors.save(path, there, shard_bytes=100, metadata={"a": "b"})
    names = sorted(f.name for f in tmp_path.iterdir())
    assert names == [*[f"m-0000{i}-of-00005.safetensors" for i in range(1, 6)], "m.safetensors.index.json"]
    index = json.loads((tmp_path / "m.safetensors.index.json").read_text())
    assert index["metadata"] == {"total_size": 7 * 40 + 800} and set(index["weight_map"]) == set(there)
    for place in (path, tmp_path, tmp_path / "m.safetensors.index.json"):
        found = safetensors.load(place)
        assert set(found) == set(there)
        for name, x in there.items():
            same(found[name], x)
    assert list(safetensors.load(tmp_path, ["x6", "x0"])) == ["x6", "x0"]
    assert safetensors.metadata(tmp_path) == {"a": "b"}


def test_the_last_save_is_what_is_read(tmp_path):
    path = tmp_path / "m.safetensors"
    for i, limit in enumerate([None, 1, None, 1, 10**9, 1]):
        safetensors.save(path, {"a": np.full(3, i), "b": np.ones(1)}, shard_bytes=limit)
        assert safetensors.load(path)["a"][0] == safetensors.load(tmp_path)["a"][0] == i


def test_views_outlive_another_save(tmp_path):
    path = tmp_path / "m.safetensors"
    safetensors.save(path, {"a": np.arange(1000)})
    kept = safetensors.load(path)["a"]
    safetensors.save(path, {"a": np.zeros(10)})
    assert kept.sum() == 499500 and len(safetensors.load(path)["a"]) == 10


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    safetensors.save(path, {"a": np.ones(3)})

    def full(*_):
        raise OSError(28, "No space left on device")

    for limit in (None, 8):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(CheckpointError, match="No space left"):
                safetensors.save(path, {"a": np.zeros(3), "b": np.zeros(3)}, shard_bytes=limit)
        assert [f.name for f in tmp_path.iterdir()] == ["m.safetensors"]
        assert safetensors.load(path)["a"].sum() == 3


def test_old_and_new_files_are_never_read_together(tmp_path, monkeypatch):
    """The second of two renames fails, with an old checkpoint of the same names."""
    path, rename, calls = tmp_path / "m.safetensors", os.replace, []
    safetensors.save(path, {"a": np.zeros(3), "b": np.zeros(3)}, shard_bytes=8)

    def second_fails(*places):
        calls.append(places)
        if len(calls) == 2:
            raise OSError(5, "Input/output error")
        rename(*places)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", second_fails)
        with pytest.raises(OSError, match="Input/output"):
            safetensors.save(path, {"a": np.ones(3), "b": np.ones(3)}, shard_bytes=8)
    for place in (path, tmp_path):
        with pytest.raises((CheckpointError, FileNotFoundError)):
            safetensors.load(place)
    assert not [f.name for f in tmp_path.iterdir() if f.name.startswith(".")]


def test_an_array_that_is_gone_leaves_nothing(tmp_path):
    x = jnp.ones(3)
    x.delete()
    with pytest.raises(RuntimeError):
        safetensors.save(tmp_path / "m.safetensors", {"a": np.ones(3), "b": x})
    assert not list(tmp_path.iterdir())


def test_shards_without_their_index_are_not_read(tmp_path):
    """As after a crash between the first file and the index."""
    safetensors.save(tmp_path / "m.safetensors", {"a": np.ones(3), "b": np.ones(3)}, shard_bytes=8)
    (tmp_path / "m.safetensors.index.json").unlink()
    (tmp_path / "m-00002-of-00002.safetensors").unlink()
    with pytest.raises(CheckpointError, match="must have one"):
        safetensors.load(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        safetensors.load(tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    "tree, kind, says",
    [
        (np.ones(3), TypeError, "must have names"),
        ({"a.b": np.ones(1), "a": {"b": np.ones(1)}}, ValueError, "'a.b' appears twice"),
        ({"__metadata__": np.ones(1)}, ValueError, "cannot be written"),
        ({"\ud800": np.ones(1)}, ValueError, "cannot be written"),
        ({"a": 1.0}, TypeError, "leaves must be arrays; a is float"),
        ({"a": np.ma.masked_array([1], [True])}, TypeError, "leaves must be arrays"),
        ({"a": np.ones(1, "complex128")}, TypeError, "no complex128, the dtype of a"),
        ({"a": np.array(["x"])}, TypeError, "the format has no"),
        ({"a": np.array([None])}, TypeError, "no object"),
        ({"a": random.key(0)}, TypeError, r"(?s)the format has no key.*key_data"),
        ({"a": np.ones(1, ml_dtypes.int4)}, TypeError, "no int4"),
    ],
)
def test_what_cannot_be_written(tmp_path, tree, kind, says):
    with pytest.raises(kind, match=says):
        safetensors.save(tmp_path / "a.safetensors", tree)
    assert not list(tmp_path.iterdir())


def test_arguments(tmp_path):
    x = {"a": np.ones(1)}
    with pytest.raises(ValueError, match="must end in"):
        safetensors.save(tmp_path / "a.bin", x)
    with pytest.raises(ValueError, match="shard_bytes must be at least 1"):
        safetensors.save(tmp_path / "a.safetensors", x, shard_bytes=0)
    for words in ({"a": 1}, {1: "a"}, "a", {"a": "\udc00"}):
        with pytest.raises(TypeError, match="metadata must be a dict of strings"):
            safetensors.save(tmp_path / "a.safetensors", x, metadata=words)
    safetensors.save(tmp_path / "a.safetensors", x)
    with pytest.raises(TypeError, match="names must be a list"):
        safetensors.load(tmp_path, "a")
    with pytest.raises(CheckpointError, match=r"(?s)there is no array 'b'.*one of 'a'"):
        safetensors.load(tmp_path, ["b"])
    with pytest.raises(FileNotFoundError, match="there is no file"):
        safetensors.load(tmp_path / "b.safetensors")


GOOD = raw({"a": entry()}, b"1234")
BAD = {
    "empty": (b"", "it has 0 bytes"),
    "short": (b"\1\0\0", "it has 3 bytes"),
    "header cut off": (GOOD[:30], "the file is truncated: the header claims"),
    "data cut off": (GOOD[:-1], "1 bytes are missing"),
    "long header": ((10**8 + 1).to_bytes(8, "little") + b"{}", "100000000 is the limit"),
    "longest header": (b"\xff" * 8 + b"{}", "100000000 is the limit"),
    "utf-8": (raw(b'{"\xff":1}'), "JSON is not valid"),
    "utf-16": (raw("{}".encode("utf-16")), "JSON is not valid"),
    "json": (raw(b'{"a":'), "JSON is not valid"),
    "list": (raw(b"[]"), "must be an object; got list"),
    "number": (raw(b"1"), "must be an object"),
    "nothing": (raw(b""), "JSON is not valid"),
    "deep": (raw(b"[" * 10**5), "nested too deeply"),
    "deep object": (raw(b'{"a":' * 10**5), "nested too deep"),
    "twice": (raw(b'{"a":%b,"a":%b}' % ((json.dumps(entry()).encode(),) * 2), b"1234"), "'a' appears twice"),
    "twice inside": (raw(b'{"a":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}}', b"1234"), "twice"),
    "half a character": (raw({"\ud800": entry()}, b"1234"), "a lone surrogate"),
    "no object": (raw({"a": [1]}), "'a' must have dtype"),
    "null": (raw({"a": None}), "'a' must have dtype"),
    "missing": (raw({"a": {"dtype": "F32", "shape": [1]}}), "'a' must have dtype"),
    "unknown field": (raw({"a": entry(strides=[1])}, b"1234"), "no other fields"),
    "dtype": (raw({"a": entry(dtype="F33")}, b"1234"), "dtype 'F33', which the format does not have"),
    "dtype no word": (raw({"a": entry(dtype=["F32"])}, b"1234"), "which the format does not have"),
    "shape no list": (raw({"a": entry(1)}, b"1234"), "a shape of whole numbers"),
    "shape of booleans": (raw({"a": entry([True])}, b"1234"), "a shape of whole numbers"),
    "shape of words": (raw({"a": entry(["1"])}, b"1234"), "a shape of whole numbers"),
    "shape of reals": (raw({"a": entry([1.0])}, b"1234"), "numbers must be whole"),
    "NaN": (raw({"a": entry([float("nan")])}, b"1234"), "numbers must be whole"),
    "negative shape": (raw({"a": entry([-1])}, b"1234"), "not negative"),
    "negative shapes": (raw({"a": entry([-1, -1])}, b"1234"), "not negative"),
    "minus zero": (raw(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[-0,4]}}', b"1234"), "not negative"),
    "huge": (raw({"a": entry([2**62, 2])}, b"1234"), "too large for any memory"),
    "overflow to 4": (raw({"a": entry([2**32 + 1, 2**32 - 1, 1])}, b"1234"), "too large"),
    "overflow, empty": (raw({"a": entry([2**40, 2**40, 0], [0, 0])}), "too large"),
    "digits": (raw(b'{"a":{"dtype":"F32","shape":[%b],"data_offsets":[0,4]}}' % (b"9" * 9999), b"1234"), "less than 2"),
    "axes": (raw({"a": entry([1] * 80)}, b"1234"), "NumPy does not support"),
    "size": (raw({"a": entry([2])}, b"1234"), r"'a' is F32\[2\], 8 bytes, but has 4"),
    "size, empty": (raw({"a": entry([0])}, b"1234"), "0 bytes, but has 4"),
    "three offsets": (raw({"a": entry([1], [0, 4, 4])}, b"1234"), "two offsets"),
    "backwards": (raw({"a": entry([1], [4, 0])}, b"1234"), "but has -4"),
    "past the end": (raw({"a": entry([2], [0, 8])}, b"1234"), "4 bytes are missing"),
    "overlap": (raw({"a": entry(), "b": entry([1], [2, 6])}, b"123456"), "'b' begins at 2 and overlaps"),
    "twice the same": (raw({"a": entry(), "b": entry()}, b"1234"), "overlaps"),
    "inside": (raw({"a": entry(), "b": entry([0], [2, 2])}, b"1234"), "overlaps"),
    "hole": (raw({"a": entry(), "b": entry([1], [8, 12])}, b"1" * 12), "'b' begins at 8 and leaves out 4 bytes"),
    "hole before": (raw({"a": entry([1], [4, 8])}, b"12345678"), "leaves out 4 bytes"),
    "trailing": (raw({"a": entry()}, b"12345"), "1 bytes belong to no array"),
    "only trailing": (raw({}, b"1"), "1 bytes belong to no array"),
    "half a byte": (raw({"a": entry([3], [0, 2], "F4")}, b"12"), "1.5 bytes"),
    "half a byte less": (raw({"a": entry([3], [0, 1], "F4")}, b"1"), "1.5 bytes"),
    "four bits": (raw({"a": entry([4], [0, 2], "F4")}, b"12"), "'a' is F4, which NumPy cannot represent"),
    "six bits": (raw({"a": entry([4], [0, 3], "F6_E2M3")}, b"123"), "'a' is F6_E2M3"),
    "bool": (raw({"a": entry([2], [0, 2], "BOOL")}, b"\1\2"), "bytes are not all 0 or 1"),
    "metadata of numbers": (raw({"__metadata__": {"a": 1}}), "object of strings"),
    "metadata no object": (raw({"__metadata__": "a"}), "object of strings"),
    "metadata null": (raw({"__metadata__": None}), "object of strings"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path, name):
    data, says = BAD[name]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=f"bad.safetensors: .*{says}"):
        safetensors.load(path)


def test_what_cannot_be_held_hinders_nothing_else(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(raw({"a": entry([4], [0, 2], "F4"), "b": entry([1], [2, 6])}, b"\0" * 6))
    assert safetensors.load(path, ["b"])["b"] == 0


@pytest.mark.parametrize(
    "index, says",
    [
        (b"{", "JSON is not valid"),
        (b"[]", "must be an object"),
        (b"{}", "must have a weight_map"),
        (b'{"weight_map": {}}', "must have a weight_map"),
        (b'{"weight_map": {"a": 1}}', "'a' must be in a file of the same directory"),
        (b'{"weight_map": {"a": "../m.safetensors"}}', "same directory"),
        (b'{"weight_map": {"a": "/etc/passwd"}}', "same directory"),
        (b'{"weight_map": {"a": "x", "a": "y"}}', "'a' appears twice"),
        (b'{"weight_map": {"a": "absent.safetensors"}}', "'absent.safetensors' .for 'a'., but there is no such file"),
        (b'{"weight_map": {"c": "m-00001-of-00002.safetensors"}}', "there is no array 'c'"),
    ],
)
def test_bad_indices(tmp_path, index, says):
    safetensors.save(tmp_path / "m.safetensors", {"a": np.ones(3), "b": np.ones(3)}, shard_bytes=8)
    (tmp_path / "m.safetensors.index.json").write_bytes(index)
    with pytest.raises(CheckpointError, match=says):
        safetensors.load(tmp_path)


def test_directories_with_two_of_them(tmp_path):
    for name in "ab":
        safetensors.save(tmp_path / f"{name}.safetensors", {"x": np.ones(1)})
    with pytest.raises(CheckpointError, match=r"it has a\.safetensors, b\.safetensors"):
        safetensors.load(tmp_path)


def test_no_shards_of_an_earlier_save_stay(tmp_path):
    """Programs that read every file of a directory would mix them; files of others stay."""
    big = {f"x{i}": np.full(10, i, "float32") for i in range(5)}
    (tmp_path / "model-notes.safetensors").write_bytes(b"mine")
    (tmp_path / "other-00001-of-00002.safetensors").write_bytes(b"mine")
    file = tmp_path / "model.safetensors"
    for limit, count in ((40, 5), (80, 3), (None, 1), (120, 2)):
        safetensors.save(file, big, shard_bytes=limit)
        names = sorted([p.name for p in tmp_path.iterdir() if p.name.startswith("model") and "notes" not in p.name])
        wanted = ["model.safetensors"] if count == 1 else [
            *[f"model-{i:05}-of-{count:05}.safetensors" for i in range(1, count + 1)], "model.safetensors.index.json"
        ]  # fmt: skip
        assert names == wanted
        assert all([np.array_equal(x, big[n]) for n, x in safetensors.load(file).items()])
    assert (tmp_path / "model-notes.safetensors").exists()
    assert (tmp_path / "other-00001-of-00002.safetensors").exists()
