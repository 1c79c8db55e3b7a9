"""Checkpoints of arrays over devices: saved on one mesh, loaded on any other, the same bits."""

import itertools

import numpy as np
import pytest

import atled
from atled import checkpoints, random, tree
from atled.checkpoints import format as format_file
from atled.sharding import NamedSharding
from atled.sharding import PartitionSpec as P

SHAPES = {"4x2": (4, 2), "2x4": (2, 4), "8": (8, 1), "1": (1, 1)}
SPECS = {"matrix": P("data", "model"), "turned": P("model", "data"), "rows": P(("data", "model")), "whole": P(),
         "bytes": P(None, "model"), "number": P(), "keys": P("data"), "half": P("model")}  # fmt: skip


def values():
    rng = np.random.default_rng(0)
    return {
        "matrix": rng.normal(size=(16, 24)).astype("float32"),
        "turned": rng.normal(size=(8, 8, 3)),
        "rows": rng.integers(0, 100, (32, 5)).astype("int16"),
        "whole": rng.normal(size=(7,)).astype("float32"),
        "bytes": rng.integers(0, 2, (3, 8)).astype("bool"),
        "number": np.asarray(3.5, "float32"),
        "half": rng.normal(size=(8, 2)).astype("bfloat16"),
    }


def placed(name):
    shape = SHAPES[name]
    mesh = atled.make_mesh(shape, ("data", "model"), devices=atled.devices()[: shape[0] * shape[1]])
    made = {k: atled.device_put(v, NamedSharding(mesh, SPECS[k])) for k, v in values().items()}
    made["keys"] = atled.device_put(random.split(random.key(5), 8), NamedSharding(mesh, SPECS["keys"]))
    return made


def bits(x):
    return np.asarray(random.key_data(x) if atled.core.array.type_of(x).kind == "k" else x)


@pytest.mark.parametrize("here, there", list(itertools.product(SHAPES, SHAPES)))
def test_from_one_mesh_to_another(tmp_path, here, there):
    saved = placed(here)
    checkpoints.save(tmp_path, saved)
    like = tree.map(lambda x: x, placed(there))
    for name, x in checkpoints.load(tmp_path, template=like).items():
        assert x.sharding == like[name].sharding and x.type == like[name].type
        assert bits(x).tobytes() == bits(saved[name]).tobytes(), name


def test_in_small_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(format_file, "PIECE_BYTES", 64)
    saved = placed("4x2")
    checkpoints.save(tmp_path, saved)
    for name, x in checkpoints.load(tmp_path, template=placed("2x4")).items():
        assert bits(x).tobytes() == bits(saved[name]).tobytes(), name


def test_each_number_is_written_once(tmp_path):
    saved = placed("4x2")
    checkpoints.save(tmp_path, saved)
    entries = checkpoints.manifest(tmp_path).arrays
    assert [len(entries[n].pieces) for n in ("matrix", "whole", "bytes", "rows")] == [8, 1, 2, 8]


def test_into_shapes_with_shardings(tmp_path):
    saved = placed("4x2")
    checkpoints.save(tmp_path, saved)
    like = {k: atled.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding) for k, x in placed("8").items()}
    for name, x in checkpoints.load(tmp_path, template=like).items():
        assert x.sharding == like[name].sharding and bits(x).tobytes() == bits(saved[name]).tobytes()


def test_in_the_background_while_arrays_are_donated(tmp_path):
    saved = placed("4x2")
    step = atled.jit(lambda t: {k: v if k in ("keys", "bytes") else v * 2 for k, v in t.items()}, donate_argnums=0)
    want = {k: bits(v).copy() for k, v in saved.items()}
    saver = checkpoints.Saver(tmp_path)
    saver.save(1, saved)
    for _ in range(3):
        saved = step(saved)
    found = saver.restore(template=placed("2x4"))
    for name, x in found.tree.items():
        assert bits(x).tobytes() == want[name].tobytes()


def test_a_key_that_is_nowhere_in_particular_stays_so(tmp_path):
    state = {"w": placed("4x2")["matrix"], "key": random.key(0)}
    run = atled.jit(lambda s: s["w"] + random.normal(s["key"], s["w"].shape))
    checkpoints.save(tmp_path, state)
    again = checkpoints.load(tmp_path, template=state)
    assert (np.asarray(run(again)) == np.asarray(run(state))).all()
