"""Members of arrays and of `.at[...]`: those of JAX's are here, or there is a reason."""

from __future__ import annotations

import inspect

import pytest

import atled.numpy as jnp

jax = pytest.importorskip("jax")

OURS, THEIRS = jnp.ones((2, 2)), jax.numpy.ones((2, 2))
LEFT_OUT = {
    "for JAX's own use": "clone traceback",
    "of the runtime, not of the public interface": "device_buffer device_buffers on_device_size_in_bytes platform",
    "the layout in memory is the compiler's": "format",
}
DIFFERENT = {
    "reshape": "`copy` of the array API, too; other names of the positions",
    "transpose": "other names of the positions",
    "item": "other names of the positions",
    "argsort": "`kind` and `order` at their positions in NumPy",
    "copy": "`order` of NumPy, too",
    "std": "`mean` of NumPy, too",
    "var": "`mean` of NumPy, too",
}


def members(x):
    return {n for n in dir(x) if not n.startswith("_")}


def test_members():
    reasons = {n for names in LEFT_OUT.values() for n in names.split()}
    assert members(THEIRS) - members(OURS) == reasons
    assert members(OURS) - members(THEIRS) == {"type"}
    assert members(THEIRS.at[0]) - members(OURS.at[0]) == {"array"}


def parameters(f):
    return [(p.name, p.kind, p.default) for p in inspect.signature(f).parameters.values()]


def test_parameters():
    pairs = {n: (getattr(THEIRS, n), getattr(OURS, n)) for n in members(THEIRS) & members(OURS) - {"flat"}}
    pairs |= {
        f"at.{n}": (getattr(THEIRS.at[0], n), getattr(OURS.at[0], n)) for n in members(OURS.at[0]) - {"index", "x"}
    }
    wrong = []
    for name, (theirs, ours) in pairs.items():
        assert callable(theirs) == callable(ours), name
        try:
            want = parameters(theirs) if callable(theirs) else []
        except ValueError:  # compiled: says nothing about its parameters
            continue
        if callable(ours) and sorted(parameters(ours), key=str) != sorted(want, key=str):
            wrong.append(name)
    assert set(wrong) == set(DIFFERENT)
