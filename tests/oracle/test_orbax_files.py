"""What Orbax wrote is read with the same bits, by every way it has of writing; what is damaged is refused."""

from __future__ import annotations

import collections
import json
import logging
import pathlib
import shutil
import sys
import warnings

import numpy as np
import pytest

from atled import random
from atled.checkpoints import CheckpointError, orbax

ocp = pytest.importorskip("orbax.checkpoint")
pytest.importorskip("tensorstore")
jax = pytest.importorskip("jax")
jnp = jax.numpy
Point = collections.namedtuple("Point", "x y")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def quiet():
    logging.getLogger("absl").setLevel(logging.CRITICAL)


def written(path: pathlib.Path, tree: object, **how: bool) -> pathlib.Path:
    with warnings.catch_warnings(), ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**how)) as checkpointer:
        warnings.simplefilter("ignore")
        checkpointer.save(path, args=ocp.args.PyTreeSave(tree))
    return path


def same(got: object, want: object) -> None:
    """Equal trees: the same containers, bits, dtypes and shapes."""
    if isinstance(want, (dict, list)):
        assert type(got) is type(want) and len(got) == len(want)
        for key in want if isinstance(want, dict) else range(len(want)):
            same(got[key], want[key])
    elif isinstance(want, (str, tuple, type(None))):
        assert type(got) is type(want) and got == want
    else:
        want = np.asarray(want)
        assert isinstance(got, np.ndarray) and (got.dtype, got.shape) == (want.dtype, want.shape)
        assert got.tobytes() == want.tobytes()


def tree(seed: int = 0) -> tuple[dict, dict]:
    """A tree with all that Orbax can write, and what is to be read of it."""
    rng = np.random.default_rng(seed)
    arrays = {
        d: jnp.asarray(rng.integers(0, 2 if d == "bool" else 100, (2, 3)), d)
        for d in (
            "bfloat16",
            "float16",
            "float32",
            "int8",
            "uint8",
            "int16",
            "int32",
            "uint32",
            "bool",
            "float8_e4m3fn",
        )
    }
    arrays["nan"] = jnp.asarray(np.array([np.nan, -0.0, np.inf]), "bfloat16")
    host = {
        "f64": rng.normal(size=(3, 1, 2)),
        "i64": np.arange(3),
        "c64": np.ones(2, "complex64") * 2j,
        "b": np.array([True]),
    }
    there = {
        "arrays": arrays, "host": host, "none": None, "empty": {}, "no list": [], "no tuple": (), "text": "ö", "n": 3,
        "list": [jnp.ones(2), {"deep": [np.zeros(1), "x", None]}, 2.5, True], "tuple": (np.ones(1), np.zeros(2)),
        "point": Point(jnp.ones(1), {"z": jnp.zeros(())}), "a.b/c": jnp.ones(1), "s": jnp.float32(3),
        "many": [np.full(1, i) for i in range(12)],
    }  # fmt: skip
    read = {**there, "tuple": list(there["tuple"]), "point": there["point"]._asdict()}
    return there, read


@pytest.mark.parametrize("use_zarr3", [False, True])
@pytest.mark.parametrize("use_ocdbt", [False, True])
def test_trees_come_back(tmp_path, use_ocdbt, use_zarr3):
    there, want = tree()
    same(orbax.load(written(tmp_path / "a", there, use_ocdbt=use_ocdbt, use_zarr3=use_zarr3)), want)


def test_roots_that_are_no_dicts(tmp_path):
    same(orbax.load(written(tmp_path / "list", [jnp.ones(2), {"a": jnp.zeros(1)}])), [jnp.ones(2), {"a": jnp.zeros(1)}])
    same(orbax.load(written(tmp_path / "array", jnp.arange(3))), jnp.arange(3))


def test_standard_checkpointer_and_names(tmp_path):
    there = {"params": {"w": jnp.ones((2, 3), "bfloat16"), "b": np.arange(3.0)}, "step": 7}
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "a", there)
    same(orbax.load(tmp_path / "a"), there)
    found = orbax.load(tmp_path / "a", names=["step", "params.w"])
    assert list(found) == ["step", "params.w"]
    same(found, {"step": 7, "params.w": there["params"]["w"]})
    with pytest.raises(CheckpointError, match=r"(?s)there is no value 'w'.*one of params.b"):
        orbax.load(tmp_path / "a", names=["w"])
    with pytest.raises(TypeError, match="names must be a list"):
        orbax.load(tmp_path / "a", names="step")


def test_steps_of_a_manager(tmp_path):
    with ocp.CheckpointManager(tmp_path / "runs") as manager:
        for step in (1, 20):
            manager.save(step, args=ocp.args.StandardSave({"w": jnp.full(3, step)}))
    same(orbax.load(tmp_path / "runs" / "20"), {"w": jnp.full(3, 20)})
    same(orbax.load(tmp_path / "runs" / "1" / "default"), {"w": jnp.full(3, 1)})
    with pytest.raises(CheckpointError, match=r"(?s)a step must be chosen from 1, 20.*runs/20"):
        orbax.load(tmp_path / "runs")
    with ocp.CheckpointManager(tmp_path / "two") as manager:
        items = {name: ocp.args.StandardSave({name: jnp.ones(1)}) for name in ("params", "state")}
        manager.save(3, args=ocp.args.Composite(**items, notes=ocp.args.JsonSave({"a": 1})))
    with pytest.raises(CheckpointError, match="several trees: params, state"):
        orbax.load(tmp_path / "two" / "3")
    same(orbax.load(tmp_path / "two" / "3" / "state"), {"state": jnp.ones(1)})


def test_arrays_over_devices_and_random_keys(tmp_path):
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    x = jax.device_put(
        jnp.arange(len(jax.devices()) * 4.0), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    )
    found = orbax.load(written(tmp_path / "a", {"x": x, "key": jax.random.key(7)}))
    same(found["x"], x)
    same(found["key"], jax.random.key_data(jax.random.key(7)))
    assert np.asarray(random.key_data(random.wrap_key_data(found["key"]))).tolist() == [0, 7]


@pytest.mark.parametrize("use_zarr3", [False, True])
def test_a_missing_piece_is_not_zeros(tmp_path, use_zarr3):
    path = written(tmp_path / "a", {"w": jnp.ones(3)}, use_ocdbt=False, use_zarr3=use_zarr3)
    pieces = [f for f in (path / "w").rglob("*") if f.is_file() and f.name not in (".zarray", "zarr.json")]
    assert len(pieces) == 1
    data = pieces[0].read_bytes()
    pieces[0].write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="w could not be read"):
        orbax.load(path)
    pieces[0].unlink()
    with pytest.raises(CheckpointError, match="w could not be read"):
        orbax.load(path)


@pytest.mark.parametrize("gone", ["ocdbt.process_0", "manifest.ocdbt", "d"])
def test_a_damaged_database(tmp_path, gone):
    path = written(tmp_path / "a", {"w": np.random.default_rng(0).normal(size=3000)})
    shutil.rmtree(path / gone) if (path / gone).is_dir() else (path / gone).unlink()
    with pytest.raises(CheckpointError, match="w could not be read"):
        orbax.load(path)


def edited(path: pathlib.Path, change) -> None:
    told = json.loads((path / "_METADATA").read_text())
    change(told["tree_metadata"])
    (path / "_METADATA").write_text(json.dumps(told))


@pytest.mark.parametrize(
    "change, says",
    [
        (lambda t: t["('a',)"]["value_metadata"].update(value_type="Custom"), "a, of type Custom, cannot be read"),
        (lambda t: t["('a',)"]["value_metadata"].update(skip_deserialize=True), "a, of type jax.Array, cannot"),
        (lambda t: t["('a',)"]["value_metadata"].update(value_type="string"), "_strings.json"),
        (lambda t: t["('a',)"].pop("key_metadata"), r"has no type for \('a',\)"),
        (lambda t: t["('a',)"]["key_metadata"][0].update(key_type=9), "an unknown path"),
        (lambda t: t["('a',)"]["key_metadata"][0].update(key="../a"), "an unknown path"),
        (lambda t: t["('a',)"]["key_metadata"][0].update(key="absent"), "absent could not be read"),
        (lambda t: t.update(again=t["('a',)"]), "two values have the name a"),
        (lambda t: t.pop("('l', '0')"), "l must be a list with indices 0 to 0; it has 1"),
    ],
)
def test_metadata_that_is_not_as_it_must_be(tmp_path, change, says):
    path = written(tmp_path / "a", {"a": jnp.ones(1), "l": [jnp.ones(1), jnp.ones(1)]})
    edited(path, change)
    with pytest.raises(CheckpointError, match=says):
        orbax.load(path)


def test_what_is_no_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        orbax.load(tmp_path / "absent")
    with pytest.raises(CheckpointError, match="there is no _METADATA"):
        orbax.load(tmp_path)
    (tmp_path / "checkpoint").write_bytes(b"")
    with pytest.raises(CheckpointError, match="`checkpoint` of old Orbax versions"):
        orbax.load(tmp_path)
    path = written(tmp_path / "a", {"a": jnp.ones(1)})
    shutil.copytree(path, tmp_path / "b.orbax-checkpoint-tmp-1")
    with pytest.raises(CheckpointError, match="the checkpoint is unfinished"):
        orbax.load(tmp_path / "b.orbax-checkpoint-tmp-1")
    for data in (b"{", b"[]", b"{}", b"\xff"):
        (path / "_METADATA").write_bytes(data)
        with pytest.raises(CheckpointError, match="_METADATA"):
            orbax.load(path)


def test_without_tensorstore(tmp_path, monkeypatch):
    path = written(tmp_path / "a", {"a": jnp.ones(1)})
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    with pytest.raises(ImportError, match=r"(?s)needs tensorstore.*atled\[checkpoints\]"):
        orbax.load(path)
