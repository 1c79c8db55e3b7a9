"""Exported functions: written, read elsewhere, called under jit; altered bytes are refused."""

import subprocess
import sys

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, tree
from atled.export import deserialize, export

SCALE = np.arange(3, dtype="f4")


def model(params, x):
    return {"y": jnp.tanh(x @ params["w"]) * jnp.asarray(SCALE), "total": jnp.sum(x)}


ARGUMENTS = ({"w": np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3)}, np.ones((2, 4), "f4"))


def test_round_trip():
    f = atled.jit(model)
    saved = deserialize(export(f)(*ARGUMENTS).serialize())
    for a, b in zip(atled.tree.leaves(saved.call(*ARGUMENTS)), atled.tree.leaves(f(*ARGUMENTS)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    doubled = atled.jit(lambda p, x: saved.call(p, x)["y"] * 2)(*ARGUMENTS)
    np.testing.assert_allclose(doubled, f(*ARGUMENTS)["y"] * 2, rtol=1e-6)


def test_another_process_needs_no_source(tmp_path):
    file = tmp_path / "f.atled"
    file.write_bytes(export(atled.jit(model))(*ARGUMENTS).serialize())
    code = f"""
import numpy as np, atled
from atled.export import deserialize
saved = deserialize(open({str(file)!r}, "rb").read())
out = saved.call({{"w": np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3)}}, np.ones((2, 4), "f4"))
print(float(out["y"].sum()))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    np.testing.assert_allclose(float(found), float(model(*ARGUMENTS)["y"].sum()), rtol=1e-5)


def test_models_are_stored_with_the_function():
    """Also those whose weights are narrow, and one method of a model."""
    for dtype in ("float32", "bfloat16"):
        net = nn.Linear(4, 2, key=atled.random.key(0), param_dtype=dtype)
        for f in (net, net.__call__):
            again = deserialize(export(atled.jit(f))(ARGUMENTS[1]).serialize())
            assert again.in_structure == tree.structure(((1,), {}))
            np.testing.assert_array_equal(again.call(ARGUMENTS[1]), net(ARGUMENTS[1]))
    with pytest.raises(NotImplementedError, match=r"export\(jit\(model\)\)"):
        export(atled.jit(lambda net, x: net(x)))(net, ARGUMENTS[1]).serialize()


def test_wrong_use_is_refused():
    made = export(atled.jit(model))(*ARGUMENTS)
    with pytest.raises(TypeError, match=r"exported for"):
        made.call(ARGUMENTS[0], np.ones((3, 4), "f4"))
    with pytest.raises(TypeError, match=r"exported for \[f32\[2\]\]; got \[f32\[3\]\]"):  # without the weights
        export(atled.jit(lambda x: x @ jnp.ones((2, 2))))(np.ones(2, "f4")).call(np.ones(3, "f4"))
    with pytest.raises(TypeError, match=r"a shape must be a tuple of integers; got \('b', 2\)"):
        atled.ShapeDtypeStruct(("b", 2), "float32")
    with pytest.raises(TypeError, match=r"exported for arguments"):
        made.call(ARGUMENTS[1], ARGUMENTS[0])
    with pytest.raises(TypeError, match=r"made by jit"):
        export(model)
    with pytest.raises(NotImplementedError, match="jvp"):
        atled.grad(lambda x: made.call(ARGUMENTS[0], x)["total"])(ARGUMENTS[1])


def test_altered_bytes_are_refused():
    blob = export(atled.jit(model))(*ARGUMENTS).serialize()
    random = np.random.RandomState(0)
    for _ in range(50):
        altered = bytearray(blob)
        altered[random.randint(len(blob))] ^= 1 << random.randint(8)
        with pytest.raises(ValueError, match="export:"):
            deserialize(altered)
    for length in (0, 5, 40, len(blob) - 1):
        with pytest.raises(ValueError, match="export:"):
            deserialize(blob[:length])
