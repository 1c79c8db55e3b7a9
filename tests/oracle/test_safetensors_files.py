"""Our safetensors against the safetensors package: files go both ways, bytes are equal, what it refuses we refuse."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from atled.checkpoints import CheckpointError, safetensors
from atled.checkpoints.safetensors_header import DTYPES

theirs = pytest.importorskip("safetensors")
their_numpy = pytest.importorskip("safetensors.numpy")
KINDS = {tag: np.dtype(kind) for tag, (_, kind) in DTYPES.items() if kind is not None}
ENDS = ["weight", 'é"', "\n\x7f", "漢/", "\1"]


def arrays(seed: int, count: int = 12) -> dict[str, np.ndarray]:
    """Arrays of all dtypes and several ranks, under names that JSON must escape, with all bit patterns."""
    rng = np.random.default_rng(seed)
    found = {}
    for i in range(count):
        dtype = list(KINDS.values())[(seed + i) % len(KINDS)]
        shape = tuple(rng.integers(0, 4, rng.integers(0, 4)).tolist())
        data = rng.integers(0, 2 if dtype.kind == "b" else 256, int(np.prod(shape)) * dtype.itemsize, dtype=np.uint8)
        name = f"block.{rng.integers(100)}.{ENDS[i % len(ENDS)]}.{i}"
        found[name] = data.view(dtype).reshape(shape)
    return found


def test_the_package_has_the_dtypes_that_we_know():
    for tag, (bits, _) in DTYPES.items():
        header = json.dumps({"a": {"dtype": tag, "shape": [8], "data_offsets": [0, bits]}}).encode()
        assert theirs.deserialize(len(header).to_bytes(8, "little") + header + bytes(bits))[0][1]["dtype"] == tag
    header = b'{"a":{"dtype":"F99","shape":[],"data_offsets":[0,4]}}'
    with pytest.raises(theirs.SafetensorError) as error:  # it says which it knows
        theirs.deserialize(len(header).to_bytes(8, "little") + header + bytes(4))
    assert {word.strip("`,") for word in str(error.value).split() if word.startswith("`")} - {"F99"} == set(DTYPES)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_are_equal(tmp_path, seed):
    """One word of metadata at most: with more, the order of the package's is not fixed."""
    there, words = arrays(seed), {"format": "né\n"} if seed % 2 else None
    safetensors.save(tmp_path / "ours.safetensors", there, metadata=words)
    assert (tmp_path / "ours.safetensors").read_bytes() == their_numpy.save(there, metadata=words)


@pytest.mark.parametrize("seed", range(20))
def test_files_go_both_ways(tmp_path, seed):
    there, words = arrays(seed), {"a": "1", "b": "2", "c": ""}
    their_numpy.save_file(there, tmp_path / "a.safetensors", metadata=words)
    found = safetensors.load(tmp_path / "a.safetensors")
    assert sorted(found) == sorted(there) and safetensors.metadata(tmp_path / "a.safetensors") == words
    safetensors.save(tmp_path / "b.safetensors", there, metadata=words)
    with open(tmp_path / "b.safetensors", "rb") as file:
        back = dict(theirs.deserialize(file.read()))
    assert sorted(back) == sorted(there)
    for name, x in there.items():
        assert (found[name].dtype, found[name].shape, found[name].tobytes()) == (x.dtype, x.shape, x.tobytes())
        assert KINDS[back[name]["dtype"]] == x.dtype and tuple(back[name]["shape"]) == x.shape
        assert bytes(back[name]["data"]) == x.tobytes()


def test_their_slices_of_our_shards(tmp_path):
    there = {f"x{i}": np.full((4, 8), i, "float32") for i in range(5)}
    safetensors.save(tmp_path / "m.safetensors", there, shard_bytes=300)
    index = json.loads((tmp_path / "m.safetensors.index.json").read_text())
    for name, file in index["weight_map"].items():
        with theirs.safe_open(tmp_path / file, "numpy") as opened:
            assert (opened.get_tensor(name) == there[name]).all()


# -- bad files --------------------------------------------------------------------------------------------------------

WORDS = [
    b"-0", b"-1", b"0", b"1", b"1.0", b"1e2", b"4294967296", b"18446744073709551615", b"18446744073709551616", b"NaN",
    b"null", b"true", b"[]", b"{}", b'""', b'"F32"', b'"F4"', b'"BOOL"', b"[0,0]", b"[1,[2]]", b'"\\ud800"', b"\xff",
    b"\xc3", b"\x00", b"\n", b" ", b",", b":", b"]", b"}", b"{", b'"', b"\\", b'"shape"', b'"dtype"', b'"__metadata__"',
]  # fmt: skip


def mutated(rng: np.random.Generator) -> bytes:
    """A file with some accidents: bytes of the header changed, put in, cut out or doubled, data cut or longer."""
    there = {
        f"x{i}": np.zeros(rng.integers(0, 3, rng.integers(0, 3)), rng.choice(["f4", "i8", "u1"])) for i in range(3)
    }
    whole = their_numpy.save(there, metadata={"a": "b"} if rng.random() < 0.3 else None)
    length = int.from_bytes(whole[:8], "little")
    header, data = bytearray(whole[8 : 8 + length]), whole[8 + length :]
    for _ in range(rng.integers(1, 4)):
        place, span, kind = int(rng.integers(len(header))), int(rng.integers(1, 12)), rng.integers(5)
        if kind == 0:
            header[place] = rng.integers(256)
        elif kind == 1:
            header[place:place] = WORDS[rng.integers(len(WORDS))]
        elif kind == 2:
            del header[place : place + span]
        elif kind == 3:
            header[place:place] = header[place : place + span]
        else:  # a number becomes something else
            start = header.find(b"0123456789"[rng.integers(10)], place)
            header[start : start + 1] = WORDS[rng.integers(len(WORDS))]
    if rng.random() < 0.1:
        data = data[: rng.integers(len(data) + 1)] + b"\0" * int(rng.integers(3))
    told = length if rng.random() < 0.1 else len(header)
    return told.to_bytes(8, "little") + bytes(header) + data


def test_what_they_refuse_we_refuse(tmp_path):
    """Until 400 have been refused by the package. Each is refused by ours with our error, or read equal."""
    rng, path = np.random.default_rng(0), tmp_path / "m.safetensors"
    refused = equal = 0
    while refused < 400:
        data = mutated(rng)
        path.write_bytes(data)
        try:
            theirs_found = dict(theirs.deserialize(data))
        except theirs.SafetensorError:
            theirs_found = None
        try:
            found = safetensors.load(path)
        except CheckpointError as error:
            assert "m.safetensors" in str(error)
            refused += theirs_found is None
            continue
        assert theirs_found is not None, f"we read what the package refuses: {data!r}"
        equal += 1
        assert sorted(theirs_found) == sorted(found)
        for name, x in found.items():
            there = theirs_found[name]
            assert KINDS[there["dtype"]] == x.dtype and tuple(there["shape"]) == x.shape
            assert bytes(there["data"]) == x.tobytes()
    assert equal  # some accidents hurt nothing


def test_bfloat16_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    saving = pytest.importorskip("safetensors.torch")
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3).to(torch.bfloat16)
    saving.save_file({"x": x, "e": x.to(torch.float8_e4m3fn)}, tmp_path / "t.safetensors")
    found = safetensors.load(tmp_path / "t.safetensors")
    assert found["x"].dtype == ml_dtypes.bfloat16 and (found["x"].astype("f4") == x.float().numpy()).all()
    assert found["e"].dtype == ml_dtypes.float8_e4m3fn and (found["e"].astype("f4") == x.float().numpy()).all()
    safetensors.save(tmp_path / "o.safetensors", dict(found))
    assert (saving.load_file(tmp_path / "o.safetensors")["x"] == x).all()
