"""Files that earlier versions wrote are read for ever: `golden/v1` was written once, and is never written again."""

import pathlib
import shutil

import ml_dtypes
import numpy as np

import atled
import atled.numpy as jnp
from atled import checkpoints, random

GOLDEN = pathlib.Path(__file__).with_name("golden")


def tree():
    """What the golden files hold."""
    return {
        "dtypes": {
            name: np.asarray(np.arange(-3, 5), "float32").astype(name)
            for name in ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64")
        },
        "narrow": {
            name: np.arange(-2, 4).astype("float32").astype(getattr(ml_dtypes, name))
            for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4")
        },
        "blocks": [{"a/b": np.arange(6.0).reshape(2, 3)}, (np.zeros((0, 4), "float32"), 7)],
        "key": random.split(random.key(3), 2),
        "number": 2.5,
    }


def test_version_1():
    like = atled.tree.map(lambda x: x, tree())
    found = checkpoints.load(GOLDEN / "v1", template=like)
    for (path, x), y in zip(atled.tree.leaves_with_path(found), atled.tree.leaves(tree()), strict=True):
        if atled.core.array.type_of(y).kind == "k":
            x, y = random.key_data(x), random.key_data(y)
        assert np.asarray(x).dtype == np.asarray(y).dtype and np.asarray(x).tobytes() == np.asarray(y).tobytes(), path
    assert checkpoints.manifest(GOLDEN / "v1").metadata == {"written": "once", "π": [1, None]}
    assert checkpoints.verify(GOLDEN / "v1") > 100


def test_the_same_tree_makes_the_same_bytes(tmp_path):
    """A writer that changes the format must change the version, and keep these files readable."""
    checkpoints.save(tmp_path, tree(), metadata={"written": "once", "π": [1, None]})
    old, new = checkpoints.manifest(GOLDEN / "v1"), checkpoints.manifest(tmp_path)
    assert {p: (str(e), [(x.offset, x.crc32) for x in e.pieces]) for p, e in old.arrays.items()} == {
        p: (str(e), [(x.offset, x.crc32) for x in e.pieces]) for p, e in new.arrays.items()
    }
    assert old.metadata == new.metadata and old.statics == new.statics


def test_a_run_of_version_1(tmp_path):
    shutil.copytree(GOLDEN / "run", tmp_path / "run")
    found = checkpoints.Saver(tmp_path / "run").restore(template={"x": jnp.zeros(3)})
    assert found is not None and found.step == 20 and found.metadata == {"position": 160}
    assert (np.asarray(found.tree["x"]) == [20, 21, 22]).all()
