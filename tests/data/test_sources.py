"""Sources, and what is made of several of them: each example where it belongs, and by its name in messages."""

import collections
import os

import numpy as np
import pytest

import atled.numpy as jnp
from atled import data
from atled.data.example_transforms import _generator


def source(n, start=0):
    return data.source(list(range(start, start + n)))


def test_arrays():
    x = np.arange(12.0).reshape(4, 3)
    one = next(data.arrays((x, [x[:, 0], jnp.arange(4)])).batch(2).iterator())
    assert isinstance(one, tuple) and one[1][1].tolist() == [0, 1]
    example = next(iter(data.arrays(x=x)))
    with pytest.raises(ValueError, match="read-only"):
        example["x"][0] = 7
    batch = next(iter(data.arrays(x=x).batch(2)))
    batch["x"][:] = 7
    assert x[0, 0] == 0 and x.flags.writeable
    strided = data.arrays(np.arange(24).reshape(4, 6)[:, ::2].astype(">i4")[::-1]).shuffle(0).batch(4)
    assert sorted(next(iter(strided))[:, 0].tolist()) == [0, 6, 12, 18]
    assert len(data.arrays(x=np.zeros((0, 3)))) == 0 and list(data.arrays(x=np.zeros((0, 3)))) == []


def test_strings():
    """As objects, whatever comes between."""
    words = np.array(["a", "bcd", "", "x\0y"])
    for pipeline in (data.arrays(words), data.source(words.tolist()), data.arrays(words).map(str)):
        batch = next(pipeline.batch(4).iterator())
        assert batch.dtype == object and batch.tolist() == ["a", "bcd", "", "x\0y"]
    assert next(data.source([b"a\0", b""]).batch(2).iterator()).tolist() == [b"a\0", b""]


def test_a_source_that_gives_too_few():
    class Short(list):
        def __getitems__(self, indices):
            return [0]

    with pytest.raises(ValueError, match=r"data: 2 examples of source\(Short, 3\) were requested; got 1"):
        next(data.source(Short([1, 2, 3])).batch(2).iterator())


def test_stop_iteration_of_a_function_does_not_end_the_loop():
    with pytest.raises(RuntimeError, match=r"data: a function or a source raised StopIteration"):
        list(source(3).map(lambda x: next(iter([]))))
    iterator = source(3).batch(2).iterator()
    assert len(list(iterator)) == 1 and list(iterator) == []


def test_parts_of_what_has_no_end_differ_by_epoch():
    endless = source(10).shuffle(0).repeat()
    for pipeline in (endless, data.mix([source(10).shuffle(0)], [1], 0)):
        epochs = list(pipeline.take(10).batch(10).repeat(3))
        assert len({tuple(e.tolist()) for e in epochs}) == 3


def test_tokens(tmp_path):
    path = tmp_path / "tokens.bin"
    np.arange(23, dtype="uint16").tofile(path)
    batches = list(data.tokens(path, "uint16", 4).shuffle(0).batch(5))
    assert batches[0].dtype == np.uint16 and batches[0].shape == (5, 5)
    assert sorted(batches[0][:, 0].tolist()) == [0, 4, 8, 12, 16]
    assert [e.tolist() for e in data.tokens(path, "uint16", 10, stride=6)] == [
        list(range(i, i + 11)) for i in (0, 6, 12)
    ]
    assert len(data.tokens(path, "uint16", 22)) == 1 and len(data.tokens(path, "uint16", 23)) == 0
    node = data.tokens(path, "uint16", 4).node
    assert node.record(2).endswith("tokens.bin, tokens 8 to 12")
    np.arange(5, dtype="uint16").tofile(path)
    with pytest.raises(ValueError, match="has changed"):
        node.read(np.array([0]))


@pytest.mark.parametrize(
    "text, want",
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\n\nb\n", ["a", "", "b"]),
        ("größe\n東京".encode(), ["größe", "東京"]),
    ],
)
def test_lines(tmp_path, text, want):
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_bytes(text)
    other.write_bytes(b"x\ny\n")
    assert list(data.lines(path)) == want
    assert list(data.lines([other, path, other])) == ["x", "y", *want, "x", "y"]


def test_a_bad_line_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\n\xff\xfe\nfour\n")
    with pytest.raises(UnicodeDecodeError) as caught:
        list(data.lines(path).batch(4))
    assert f"while reading {path}, line 3, byte 8" in caught.value.__notes__[0]
    with pytest.raises(UnicodeDecodeError) as caught:
        list(data.lines(path).map(len).filter(bool).batch(4))
    assert "line 3, byte 8" in caught.value.__notes__[0]


def test_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for label, name in enumerate(["a", "b"]):
        os.mkdir(tmp_path / name)
        for i in range(3):
            image.fromarray(np.full((2, 3, 3), 50 * label + i, "uint8")).save(tmp_path / name / f"{i}.png")
    (tmp_path / "a" / "notes.txt").write_text("no image")
    batch = next(data.images(tmp_path).batch(6).iterator())
    assert batch["image"].dtype == np.uint8 and batch["image"][:, 0, 0, 0].tolist() == [0, 1, 2, 50, 51, 52]
    assert batch["label"].tolist() == [0, 0, 0, 1, 1, 1]
    assert next(iter(data.images(tmp_path, mode="L")))["image"].shape == (2, 3)
    image.fromarray(np.array([[0, 255, 30000]], "uint16")).save(tmp_path / "a" / "0.png")
    with pytest.raises(ValueError, match=r"data.images: .*0.png has mode I;16; converting it to 'L' would clip"):
        next(iter(data.images(tmp_path, mode="L")))
    assert next(iter(data.images(tmp_path, mode="I")))["image"].tolist() == [[0, 255, 30000]]
    (tmp_path / "b" / "1.png").write_bytes(b"not an image")
    with pytest.raises(OSError) as caught:
        list(data.images(tmp_path).shuffle(0).batch(6))
    assert f"while reading {tmp_path / 'b' / '1.png'}" in caught.value.__notes__[0]
    with pytest.raises(FileNotFoundError, match=r"data.images: .* must have folders"):
        data.images(tmp_path / "a")


def test_parquet(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for part in range(2):
        ids = list(range(10 * part, 10 * part + 10))
        table = arrow.table({"id": ids, "name": [f"n{i}" for i in ids], "list": [[i, i + 1] for i in ids]})
        parquet.write_table(table, tmp_path / f"{part}.parquet", row_group_size=4)
    paths = sorted(tmp_path.glob("*.parquet"))
    batch = next(data.parquet(paths).shuffle(0).batch(20).iterator())
    order = np.argsort(batch["id"])
    assert batch["id"][order].tolist() == list(range(20)) and batch["name"][order][13] == "n13"
    assert batch["list"][order].tolist() == [[i, i + 1] for i in range(20)]
    assert next(iter(data.parquet(paths, columns=["name"]))) == {"name": "n0"}
    assert data.parquet(paths).node.record(15).endswith("1.parquet, row group 1, row 1")
    with pytest.raises(ValueError, match=r"data.parquet: all files must have the same columns"):
        data.parquet(paths, columns=["nothing"])
    parquet.write_table(arrow.table({"id": [0.5], "name": ["n"], "list": [[1, 2]]}), paths[1])
    with pytest.raises(ValueError, match=r"data.parquet: all files must have the same types; .*1.parquet has double"):
        data.parquet(paths)
    assert len(data.parquet(paths, columns=["name"])) == 11


def test_array_record(tmp_path):
    module = pytest.importorskip("array_record.python.array_record_module")
    writer = module.ArrayRecordWriter(str(tmp_path / "a.array_record"), "group_size:1")
    for i in range(7):
        writer.write(f"record {i}".encode())
    writer.close()
    found = next(data.array_record(tmp_path / "a.array_record").shuffle(0).batch(7).iterator())
    assert sorted(found.tolist()) == [f"record {i}".encode() for i in range(7)]


def test_packages_that_are_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(
        ImportError, match=r'data.parquet: it needs the Python package pyarrow[\s\S]*"atled\[parquet\]"'
    ):
        data.parquet("x.parquet")


class Lengthy:
    """A source that gives several at once, as those of Hugging Face do."""

    asked = 0

    def __len__(self):
        return 10

    def __getitem__(self, i):
        raise AssertionError("one at a time")

    def __getitems__(self, indices):
        self.asked += 1
        return [{"i": i} for i in indices]


def test_sources_that_give_several():
    items = Lengthy()
    assert [b["i"].tolist() for b in data.source(items).batch(5)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert items.asked == 2


def test_concatenate_and_interleave():
    parts = [source(3), source(1, 10), source(5, 20)]
    assert list(data.concatenate(*parts)) == [0, 1, 2, 10, 20, 21, 22, 23, 24]
    assert list(data.interleave(*parts)) == [0, 10, 20, 1, 21, 2, 22, 23, 24]
    rng = np.random.RandomState(0)
    for _ in range(50):
        sizes = rng.randint(1, 6, rng.randint(1, 5))
        want, rest = [], [collections.deque(range(100 * i, 100 * i + n)) for i, n in enumerate(sizes)]
        while any(rest):
            want += [r.popleft() for r in rest if r]
        assert list(data.interleave(*[source(n, 100 * i) for i, n in enumerate(sizes)])) == want


def test_mixtures():
    parts = [source(10), source(1000, 1000), source(7, 5000)]
    found = list(data.mix(parts, [0.5, 0.3, 0.2], 1).take(3 * 4096))
    own = lambda i: [x for x in found if [x < 10, 1000 <= x < 2000, x >= 5000][i]]
    assert [len(own(i)) for i in range(3)] == [3 * 2048, 3 * 1229, 3 * 819]
    assert own(0) == [i % 10 for i in range(len(own(0)))]  # each in its own order, again from the start
    assert own(1)[:1000] == list(range(1000, 2000)) and own(2)[:14] == [*range(5000, 5007)] * 2
    first = [x >= 5000 for x in found[:4096]]
    assert 50 < sum(first[:400]) < 110  # a fifth, spread evenly
    stops = list(data.mix(parts, [0.5, 0.3, 0.2], 1, exhausted="stop"))
    assert stops == found[: len(stops)] and sorted([x for x in stops if x < 10]) == list(range(10))
    assert found[len(stops)] in (0, 5000) and list(data.mix(parts, [0.5, 0.3, 0.2], 2, exhausted="stop")) != stops
    shuffled = data.mix([source(10).shuffle(0), source(5, 100)], [1, 1], 0).take(60)
    ours = [x for x in shuffled if x < 10]
    assert sorted(ours[:10]) == sorted(ours[10:20]) == list(range(10)) and ours[:10] != ours[10:20]


def test_take_skip_and_lengths():
    ten = source(10)
    assert list(ten.skip(2).take(3)) == [2, 3, 4] and list(ten.take(3).skip(2)) == [2] and list(ten.skip(12)) == []
    assert list(ten.repeat().skip(8).take(4)) == [8, 9, 0, 1]
    assert len(ten.batch(3)) == 3 and len(ten.batch(3, drop_last=False).repeat(2)) == 8 and len(ten.repeat(2)) == 20
    assert len(ten.batch(3).take(2).repeat(4)) == 8 and len(ten.batch(3).take(20)) == 3
    for unknown in (ten.repeat(), ten.filter(bool).batch(2), ten.batch(2).repeat(), data.iterable(range)):
        with pytest.raises(TypeError, match=r"data: this pipeline is infinite, or its length is not known"):
            len(unknown)


def test_random_maps():
    """What an example gets depends on seed, epoch and index: not on its place, the others, or who asks."""
    draw = lambda x, rng: (x, int(rng.integers(10**12)))
    plain = dict(source(20).random_map(draw, 3))
    assert dict(source(20).shuffle(1).random_map(draw, 3)) == plain
    assert dict(source(20).skip(3).filter(lambda x: x % 2).random_map(draw, 3)).items() <= plain.items()
    assert dict(source(20).random_map(draw, 4)) != plain and len(set(plain.values())) == 20
    epochs = list(source(20).repeat(2).random_map(draw, 3))
    assert dict(epochs[:20]) == plain and dict(epochs[20:]).items().isdisjoint(plain.items())
    both = dict(data.concatenate(source(20), source(20, 100)).random_map(draw, 3))
    assert {k: v for k, v in both.items() if k < 100} == plain and len(set(both.values())) == 40
    kept = []
    list(source(20).random_map(lambda x, rng: kept.append((x, rng)), 3))  # rng outlives the call, and is its own
    assert {x: int(rng.integers(10**12)) for x, rng in kept} == plain
    inner = []
    list(source(20).random_map(lambda x, rng: inner.append((x, rng.bit_generator)), 3))
    assert {x: int(np.random.Generator(bits).integers(10**12)) for x, bits in inner} == plain
    memory = {}
    made = {id(_generator(0, (0, 0, i), memory)) for i in range(9)}
    assert len(made) == 1  # one that nobody keeps is used again


def test_pad():
    made = next(data.source([np.array([1, 2]), np.array([3])]).pad(3, padding_value=-1).batch(2).iterator())
    assert made["tokens"].tolist() == [[1, 2, -1], [3, -1, -1]]
    assert made["mask"].tolist() == [[True, True, False], [True, False, False]]
    rows = [{"a": np.ones((n, 2)), "b": np.arange(n), "n": n, "v": np.zeros(7)} for n in (1, 5)]
    padded = list(data.source(rows).pad(pad_to_multiple_of=4, fields=["a", "b"]))
    assert [p["a"].shape for p in padded] == [(4, 2), (8, 2)] and padded[1]["v"].shape == (7,)
    assert next(iter(data.source([[1, 2, 3]]).pad(2, truncate=True)))["tokens"].tolist() == [1, 2]


def test_pack():
    sizes = np.random.RandomState(0).randint(0, 12, 60)
    docs, at = [], 1
    for n in sizes:
        docs.append(np.arange(at, at + n))
        at += n
    rows = list(data.source(docs).pack(8))
    tokens = np.concatenate([r["tokens"] for r in rows])
    assert tokens[tokens > 0].tolist() == list(range(1, at))  # nothing lost, in order
    for r in rows:
        assert ((r["segments"] == 0) == (r["tokens"] == 0)).all()
        for s in range(1, r["segments"].max() + 1):
            assert r["positions"][r["segments"] == s].tolist() == list(range((r["segments"] == s).sum()))
    whole = list(data.source([d for d in docs if len(d) <= 8]).pack(8, truncate=False))
    found = [r["tokens"][r["segments"] == s].tolist() for r in whole for s in range(1, r["segments"].max() + 1)]
    assert found == [d.tolist() for d in docs if 0 < len(d) <= 8]
    fields = next(iter(data.source([{"a": d, "w": d * 0.5} for d in docs]).pack(8)))
    assert np.array_equal(fields["w"], fields["a"] * 0.5) and set(fields) == {"a", "w", "segments", "positions"}


def test_bucket():
    docs = [np.full(n, n) for n in (1, 5, 2, 3, 8, 2, 4, 6)]
    batches = list(data.source(docs).bucket([2, 4, 8], [2, 2, 3], drop_last=False))
    assert [b["tokens"].shape for b in batches] == [(2, 2), (2, 4), (3, 8), (1, 2)]
    assert [b["mask"].sum(1).tolist() for b in batches] == [[1, 2], [3, 4], [5, 8, 6], [2]]


TEXTS = ["one\ntwo\n", "\n\n", "a\r\nb", "", "Ċ ĊĊ\n\u0a0a\u0a00x\n😀\n", "no end"]
ENCODINGS = (
    "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "latin-1", "gb18030",
    "shift_jis",
)  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_lines_in_every_encoding(tmp_path, encoding):
    """Characters may contain the byte of a line's end, and units of UTF-16 and UTF-32 have several."""
    paths, want = [], []
    for i, text in enumerate(TEXTS):
        try:
            content = text.encode(encoding)
        except UnicodeEncodeError:
            continue
        (tmp_path / str(i)).write_bytes(content)
        own = [line.removesuffix("\r") for line in text.split("\n")]
        own = own[:-1] if own[-1] == "" else own
        assert list(data.lines(tmp_path / str(i), encoding=encoding)) == own
        paths.append(tmp_path / str(i))
        want += own
    assert list(data.lines(paths, encoding=encoding)) == want
    if encoding == "utf-16":  # the mark of each file counts
        (tmp_path / "big").write_bytes(b"\xfe\xff" + "x\ny".encode("utf-16-be"))
        assert list(data.lines([paths[0], tmp_path / "big"], encoding="utf-16")) == ["one", "two", "x", "y"]


def test_encodings_without_line_ends(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    with pytest.raises(ValueError, match="cannot find lines in text in cp500"):
        data.lines(tmp_path / "a", encoding="cp500")
    with pytest.raises(ValueError, match="must have a multiple of 2 bytes; got 3"):
        data.lines(tmp_path / "a", encoding="utf-16")
    with pytest.raises(LookupError):
        data.lines(tmp_path / "a", encoding="utf-99")


def test_parquet_keeps_types(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({
        "ints": arrow.array([[1, 2], [], [3]], arrow.list_(arrow.int32())),
        "u": arrow.array([2**63, 5, 1], arrow.uint64()), "f": arrow.array([0.1, 0.2, 0.3], arrow.float32()),
        "b": arrow.array([True, False, True]),
        "half": arrow.array(np.array([1, 2, 3], "float16")), "s": ["a", "bc", ""],
        "bytes": arrow.array([[b"a\0"], [b"", b"bcd"], []], arrow.list_(arrow.binary())),
        "square": arrow.array([[[1.0], [2.0]]] * 3, arrow.list_(arrow.list_(arrow.float32()))),
        "fixed": arrow.array([[1, 2]] * 3, arrow.list_(arrow.int8(), 2)),
        "gap": arrow.array([1, None, 3], arrow.int16()), "words": [["x", "yz"], [], ["z"]],
        "gaps": arrow.array([[1, None], [], None], arrow.list_(arrow.int16())),
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "a.parquet")
    rows = list(data.parquet(tmp_path / "a.parquet"))
    kinds = {"ints": "int32", "u": "uint64", "f": "float32", "b": "bool", "half": "float16", "bytes": "object",
             "square": "float32", "fixed": "int8", "words": "object"}  # fmt: skip
    for row in rows:
        assert {k: str(row[k].dtype) for k in kinds} == kinds
    assert rows[0]["u"] == 2**63
    assert [list(r["bytes"]) for r in rows] == [[b"a\0"], [b"", b"bcd"], []]
    assert rows[0]["square"].shape == (2, 1)
    assert [r["gap"] for r in rows] == [1, None, 3]
    assert rows[0]["gap"].dtype == "int16"
    assert rows[0]["gaps"].tolist() == [1, None]
    assert rows[2]["gaps"] is None
    source = data.parquet(tmp_path / "a.parquet", columns=["ints", "u", "f"])
    (batch,) = source.pad(2, fields=["ints"]).batch(3)
    assert {k: str(x.dtype) for k, x in batch.items() if k != "mask"} == {
        "ints": "int32",
        "u": "uint64",
        "f": "float32",
    }
