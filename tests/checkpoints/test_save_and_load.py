"""What is saved is what is loaded: every dtype, every kind of leaf, every way in which two trees can differ."""

import json
import math
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import checkpoints, nn, optim, random, train, tree
from atled.checkpoints import format as format_file
from atled.checkpoints.format import CheckpointError, cut, meet

DTYPES = (
    "bool", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "bfloat16", "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


def equal(a, b):
    assert tree.structure(a) == tree.structure(b)
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        assert type(x) is type(y)
        if atled.core.array.type_of(x).kind == "k":
            x, y = random.key_data(x), random.key_data(y)
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 4)])
def test_every_dtype_comes_back_with_the_same_bits(tmp_path, dtype, shape):
    host = np.asarray(np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
    for x in (host, jnp.asarray(host)):
        checkpoints.save(tmp_path / "c", {"x": x})
        equal(checkpoints.load(tmp_path / "c", template={"x": x}), {"x": x})
        found = checkpoints.load(tmp_path / "c")["x"]
        assert found.dtype == host.dtype and found.tobytes() == host.tobytes()


def test_all_kinds_of_leaves(tmp_path):
    x = {
        "a": [1, 2.5, True, 3 + 4j, 2**62],
        "b": (jnp.ones(2), np.float32(3), np.arange(3)[::-1]),
        "weak": jnp.asarray(2.0) * 1,
        "key": random.key(3),
        "keys": random.split(random.key(4), 3),
        "none": None,
        "empty": {},
        "nan": np.array([np.nan, -0.0]),
        "numbered": {3: jnp.zeros(1)},
    }
    checkpoints.save(tmp_path, x)
    like = tree.map(lambda v: v, x)
    like["b"] = (jnp.zeros(2), np.float32(0), np.zeros(3, int))
    like["a"] = [0, 0.0, False, 0j, 0]
    equal(checkpoints.load(tmp_path, template=like), x)


def test_a_train_state_goes_on_to_the_same_bits(tmp_path):
    def loss(model, x, key):
        return (nn.Dropout(0.5)(model(x), key=key) ** 2).mean()

    make = lambda seed: train.State(nn.Linear(4, 3, key=random.key(seed)), optim.AdamW(0.1), key=random.key(seed))
    step, x = train.step(loss), jnp.ones((2, 4))
    state = make(0)
    for _ in range(2):
        state, _ = step(state, x)
    checkpoints.save(tmp_path, state)
    other = checkpoints.load(tmp_path, template=make(1))
    for _ in range(2):
        state, _ = step(state, x)
        other, _ = step(other, x)
    equal(nn.params(state), nn.params(other))
    assert int(other.step) == 4


def test_into_shapes_without_arrays(tmp_path):
    make = lambda key: nn.Linear(2, 3, key=key)
    checkpoints.save(tmp_path, make(random.key(0)))
    made = checkpoints.load(tmp_path, template=atled.eval_shape(make, random.key(1)))
    equal(made, make(random.key(0)))


def test_metadata_and_settings(tmp_path):
    checkpoints.save(tmp_path, nn.Linear(2, 3, key=random.key(0)), metadata={"data": [1, 2, {"a": None}]})
    found = checkpoints.manifest(tmp_path)
    assert found.metadata == {"data": [1, 2, {"a": None}]}
    assert found.statics["in_features"] == 2 and found.statics["out_features"] == 3
    with pytest.raises(TypeError, match="metadata must be JSON-serializable"):
        checkpoints.save(tmp_path, {"x": 1}, metadata={"x": np.ones(2)})


def test_saving_again_replaces_all_at_once(tmp_path):
    checkpoints.save(tmp_path, {"x": jnp.ones(3)})
    before = {p.name for p in tmp_path.iterdir()}
    checkpoints.save(tmp_path, {"y": jnp.zeros(2)})
    after = {p.name for p in tmp_path.iterdir()}
    assert after & before == {"manifest"} and len(after) == 2
    assert list(checkpoints.load(tmp_path)) == ["y"]


def test_saved_in_small_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(format_file, "PIECE_BYTES", 64)
    monkeypatch.setattr("atled.checkpoints.shard_writer.PIECE_BYTES", 64)
    x = {"a": jnp.arange(5 * 7 * 3.0).reshape(5, 7, 3), "b": jnp.arange(100), "c": jnp.ones(())}
    checkpoints.save(tmp_path, x)
    assert len(list(tmp_path.iterdir())) > 10
    equal(checkpoints.load(tmp_path, template=tree.map(jnp.zeros_like, x)), x)
    assert checkpoints.verify(tmp_path) == sum([v.nbytes for v in x.values()])


def test_cut_covers_a_box_in_runs_of_memory():
    rng = np.random.default_rng(0)
    for _ in range(200):
        shape = tuple(rng.integers(1, 9, rng.integers(0, 4)).tolist())
        limit = int(rng.integers(1, 60))
        seen = np.zeros(shape, int)
        whole = np.zeros(shape)
        for start, part in _cut(shape, limit):
            index = tuple([slice(a, a + n) for a, n in zip(start, part)])
            seen[index] += 1
            assert whole[index].flags.c_contiguous and whole[index].size <= max(limit, 1)
        assert (seen == 1).all()


def _cut(shape, limit):
    before = format_file.PIECE_BYTES
    format_file.PIECE_BYTES = limit
    try:
        return cut((0,) * len(shape), shape, 1)
    finally:
        format_file.PIECE_BYTES = before


def test_meet_is_what_boxes_have_in_common():
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = [(tuple(rng.integers(0, 5, 2).tolist()), tuple(rng.integers(1, 5, 2).tolist())) for _ in range(2)]
        marks = [np.zeros((10, 10), bool) for _ in range(2)]
        for m, (start, shape) in zip(marks, (a, b), strict=True):
            m[tuple([slice(s, s + n) for s, n in zip(start, shape)])] = True
        found = meet(format_file.Piece("", 0, *a, 0), *b)
        both = np.zeros((10, 10), bool)
        if found is not None:
            both[tuple([slice(s, s + n) for s, n in zip(*found)])] = True
        assert (both == (marks[0] & marks[1])).all()


# -- trees that differ ------------------------------------------------------------------------------------------------


class Model(nn.Module):
    def __init__(self, heads=2, width=4, key=None):
        self.heads = heads
        self.first = nn.Linear(3, width, key=random.key(0))
        self.second = nn.Linear(width, 2, key=random.key(1))


def test_the_report_names_everything_that_differs(tmp_path):
    checkpoints.save(tmp_path, {"model": Model(8, 4), "old": jnp.ones(2), "dtype": jnp.ones(2, "int32")})
    like = {"model": Model(12, 5), "new": jnp.ones(2), "dtype": jnp.ones(2)}
    with pytest.raises(CheckpointError) as error:
        checkpoints.load(tmp_path, template=like)
    text = str(error.value)
    for part in (
        "missing in the checkpoint: 1\n    new",
        "only in the checkpoint: 1\n    old",
        "model/first/weight: float32[3,4] is float32[3,5] here",
        "dtype: int32[2] is float32[2] here",
        "test_save_and_load.py",
        "cast=True",
        "partial=True",
    ):
        assert part in text, text


def test_settings_are_in_the_report(tmp_path):
    checkpoints.save(tmp_path, Model(8, 4))
    with pytest.raises(CheckpointError, match="heads was 8 and is 12"):
        checkpoints.load(tmp_path, template=Model(12, 5))
    checkpoints.load(tmp_path, template=Model(12, 4))  # not in the way by themselves


def test_partial_rename_and_cast(tmp_path):
    checkpoints.save(tmp_path, {"body": {"w": jnp.full(2, 2.0)}, "head": jnp.full(3, 3.0), "n": jnp.full(1, 7)})
    like = {"core": {"w": jnp.zeros(2)}, "tail": jnp.zeros(4)}
    got = checkpoints.load(tmp_path, template=like, rename={"body": "core"}, partial=True)
    assert float(got["core"]["w"][0]) == 2 and float(got["tail"][0]) == 0
    got = checkpoints.load(
        tmp_path,
        template={"w": jnp.zeros(2, "bfloat16"), "n": np.zeros(1)},
        rename={"body": ""},
        partial=["head"],
        cast=True,
    )
    assert got["w"].dtype == "bfloat16" and float(got["w"][1]) == 2 and got["n"].dtype == "float64"
    got = checkpoints.load(tmp_path, template={"HEAD": jnp.zeros(3)}, rename=str.upper, partial=True)
    assert float(got["HEAD"][0]) == 3
    with pytest.raises(CheckpointError, match="'tail', which the checkpoint does not have"):
        checkpoints.load(tmp_path, template=like, rename={"tail": "head"}, partial=True)
    with pytest.raises(CheckpointError, match=r"maps both .* to head"):
        checkpoints.load(tmp_path, template=like, rename={"n": "head"}, partial=True)
    with pytest.raises(CheckpointError, match="only in the checkpoint: 1"):
        checkpoints.load(tmp_path, template={"body": {"w": jnp.zeros(2)}, "n": jnp.zeros(1, "int32")}, partial=["body"])


def test_an_integer_never_becomes_a_float_in_silence(tmp_path):
    checkpoints.save(tmp_path, {"n": jnp.asarray([16777217], "int32")})
    with pytest.raises(CheckpointError, match=r"n: int32\[1\] is float32\[1\] here"):
        checkpoints.load(tmp_path, template={"n": jnp.zeros(1)})
    checkpoints.save(tmp_path, {"n": 3})
    with pytest.raises(CheckpointError, match="of another dtype"):
        checkpoints.load(tmp_path, template={"n": 1.0})


def test_mistakes(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint: it contains no manifest"):
        checkpoints.load(tmp_path / "nowhere")
    with pytest.raises(TypeError, match="a/0 is str 'text'"):
        checkpoints.save(tmp_path, {"a": ["text"]})
    with pytest.raises(TypeError, match="must be a directory, a URL or a dict; got 3"):
        checkpoints.save(3, {})
    with pytest.raises(TypeError, match=r"x is a tracer, ~f32\[\]"):
        atled.jit(lambda x: checkpoints.save(tmp_path, {"x": x}))(1.0)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="could not be created"):
        checkpoints.save(tmp_path / "file" / "c", {"x": 1})
    x = jnp.ones(3)
    x.delete()
    with pytest.raises(Exception, match="deleted"):
        checkpoints.save(tmp_path / "gone", {"x": x})
    assert not (tmp_path / "gone" / "manifest").exists()


def test_casts_that_lose_integers_are_refused(tmp_path):
    checkpoints.save(tmp_path, {"n": np.array([300, -1]), "f": np.array([0.5, 2.0]), "k": random.key(0)})
    load = lambda **like: checkpoints.load(tmp_path, template=like, cast=True, partial=True)
    assert load(n=np.zeros(2, "int16"))["n"].tolist() == [300, -1]
    assert load(n=jnp.zeros(2))["n"].tolist() == [300, -1]
    for like in (
        {"n": np.zeros(2, "int8")},
        {"n": jnp.zeros(2, "uint32")},
        {"f": jnp.zeros(2, "int32")},
        {"f": np.zeros(2, bool)},
    ):
        with pytest.raises(CheckpointError, match=r"has values that .* cannot represent"):
            load(**like)
    for like in ({"k": jnp.zeros((), "uint32")}, {"n": random.split(random.key(0), 2)}):
        with pytest.raises(CheckpointError, match="of another shape"):
            load(**like)


def test_one_pattern_may_be_a_string(tmp_path):
    checkpoints.save(tmp_path, {"x": 1})
    with pytest.raises(CheckpointError, match="missing in the checkpoint: 1\n    y"):
        checkpoints.load(tmp_path, template={"x": 0, "y": 0}, partial="head/**")
    assert checkpoints.load(tmp_path, template={"x": 0, "head": {"w": 5}}, partial="head") == {"x": 1, "head": {"w": 5}}


def test_the_longest_name_is_renamed(tmp_path):
    checkpoints.save(tmp_path, {"a": {"w": 1, "b": 2}})
    found = checkpoints.load(tmp_path, template={"c": 0, "d": {"b": 0}}, rename={"a": "d", "a/w": "c"})
    assert found == {"c": 1, "d": {"b": 2}}
    assert checkpoints.load(tmp_path, template={"m": {"a": {"w": 0, "b": 0}}}, rename={"": "m"}) == {
        "m": {"a": {"w": 1, "b": 2}}
    }
    with pytest.raises(TypeError, match="rename must be a dict or a function; got list"):
        checkpoints.load(tmp_path, template={}, rename=["a"])


def test_many_pieces_are_looked_at_quickly():
    pieces = [format_file.Piece("f", 64 * i, (0, 4 * i), (8, 4), 0) for i in range(4096)]
    entry = format_file.Entry("float32", (8, 4 * 4096), tuple(pieces))
    data = format_file.Manifest({"x": entry}, {"f": 10**7}).to_bytes()
    begin = time.process_time()
    format_file.Manifest.from_bytes(data, "here")
    assert time.process_time() - begin < 2


def test_masked_arrays_and_large_integers_are_refused(tmp_path):
    with pytest.raises(TypeError, match="x is a masked array"):
        checkpoints.save(tmp_path, {"x": np.ma.masked_array([1, 2], [True, False])})
    with pytest.raises((TypeError, OverflowError)):
        checkpoints.save(tmp_path, {"x": 2**70})


def test_keys_of_dicts_with_slashes(tmp_path):
    x = {"a/b": jnp.ones(1), "a": {"b": jnp.zeros(1)}, "%2F": jnp.full(1, 2.0)}
    checkpoints.save(tmp_path, x)
    equal(checkpoints.load(tmp_path, template=tree.map(jnp.ones_like, x)), x)


def test_a_relative_path_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoints.save("c", {"x": 1})
    assert (tmp_path / "c" / "manifest").exists()


def test_objects_of_another_version_are_refused(tmp_path):
    checkpoints.save(tmp_path, {"x": 1})
    data = (tmp_path / "manifest").read_bytes()
    (tmp_path / "manifest").write_bytes(data.replace(b"checkpoint 2", b"checkpoint 3", 1))
    with pytest.raises(CheckpointError, match="version 2 and earlier; got 3"):
        checkpoints.load(tmp_path)


@pytest.mark.parametrize(
    "change", ["outside", "overlap", "hole", "unknown file", "negative", "rank", "dtype", "huge", "no pieces", "away"]
)
def test_manifests_that_are_wrong(tmp_path, change):
    """A checksum says that nothing was changed, not that it was right."""
    checkpoints.save(tmp_path, {"x": jnp.arange(8)})
    _, text = (tmp_path / "manifest").read_bytes().split(b"\n", 1)
    content = json.loads(text)
    piece = content["arrays"]["x"]["pieces"][0]
    if change == "outside":
        piece["offset"] = 64
    elif change == "overlap":
        piece["shape"] = [4]
        content["arrays"]["x"]["pieces"].append({**piece, "start": [3]})
    elif change == "hole":
        piece["shape"] = [7]
    elif change == "negative":
        piece["start"], content["arrays"]["x"]["shape"] = [-1], [7]
    elif change == "rank":
        piece["start"] = [0, 0]
    elif change == "dtype":
        content["arrays"]["x"]["dtype"] = "float1000"
    elif change == "huge":
        content["arrays"]["x"]["shape"] = piece["shape"] = [2**60]
    elif change == "no pieces":
        del content["arrays"]["x"]["pieces"]
    elif change == "away":
        content["files"] = {f"../{tmp_path.name}/{piece['file']}": 32}
        piece["file"] = next(iter(content["files"]))
    else:
        piece["file"] = "other"
    text = json.dumps(content).encode()
    (tmp_path / "manifest").write_bytes(f"atled checkpoint 2 {zlib.crc32(text):08x} {len(text)}\n".encode() + text)
    with pytest.raises(CheckpointError, match="the manifest is invalid"):
        checkpoints.load(tmp_path)


def test_nothing_else_is_imported_for_local_files(tmp_path):
    code = (
        "import sys; from atled import checkpoints; import atled.numpy as jnp\n"
        f"checkpoints.save({str(tmp_path)!r}, {{'x': jnp.ones(2)}}); checkpoints.load({str(tmp_path)!r})\n"
        "assert not {'tensorstore', 'jax', 'pickle5', 'orbax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("n", [2**63 - 1, 2**63, 2**63 + 5, 2**64 - 1, -(2**63)])
def test_large_python_integers(tmp_path, n):
    checkpoints.save(tmp_path, {"seed": n})
    assert checkpoints.load(tmp_path, template={"seed": 0})["seed"] == n
    with pytest.raises(TypeError, match="does not fit into any dtype"):
        checkpoints.save(tmp_path, {"seed": 2**64 + n if n > 0 else n - 1})


NUMBERS = {
    "int64": [-1, 0, 1, 2**62 + 1, -(2**63)], "uint64": [0, 2**63 + 5, 2**64 - 1, 7], "int8": [-128, 127],
    "int4": [7, -8], "uint4": [15, 0], "bool": [True, False], "bfloat16": [1.5, 300.0], "float64": [1e300, 7, 2**53],
    "float32": [0.5, -1, 3, np.inf, np.nan, 1e20, 2.0**63, 2.0**64], "complex64": [1 + 2j, 3],
}  # fmt: skip


@pytest.mark.parametrize("source", NUMBERS)
def test_a_cast_keeps_the_numbers_or_raises(tmp_path, source):
    """For every pair of dtypes: an integer is the same integer, a finite number stays finite, a real one real."""
    import ml_dtypes

    of = lambda name: np.dtype(getattr(ml_dtypes, name, name))
    for number in NUMBERS[source]:
        checkpoints.save(tmp_path, {"x": np.array([number]).astype(of(source))})
        exact = np.array([number]).astype(of(source))[0].item()
        real, is_real = complex(exact).real, complex(exact).imag == 0
        for target in (*NUMBERS, "uint8", "int32", "float16", "float8_e4m3fn"):
            kind = of(target)
            try:
                got = checkpoints.load(tmp_path, template={"x": jnp.zeros(1, kind)}, cast=True)["x"].item()
            except CheckpointError:
                got = None
            if target == "bool" or "int" in target:
                low, high = (0, 1) if target == "bool" else (ml_dtypes.iinfo(kind).min, ml_dtypes.iinfo(kind).max)
                whole = exact if isinstance(exact, int) else real
                fits = is_real and math.isfinite(whole) and whole == int(whole) and int(low) <= whole <= int(high)
                assert (got is not None) == fits, (source, number, target, got)
                assert not fits or int(got) == int(whole), (source, number, target, got)
            elif got is not None:
                assert is_real or target == "complex64"
                assert np.isfinite(got) or not np.isfinite(exact), (source, number, target, got)
