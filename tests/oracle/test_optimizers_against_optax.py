"""Optimizers against optax: a hundred steps in float64 from the same start; and schedules, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optax_rows import START, STEPS, marked, run_ours, run_theirs, wide

import atled
from atled import optim, tree

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")


def by_part(like: Any) -> Any:
    return jax.tree_util.tree_map_with_path(
        lambda path, _: "head" if path[0].key == "head" else "bias" if path[-1].key == "bias" else "rest", like
    )


ADAMW = {"b1": 0.8, "b2": 0.95, "eps": 1e-6}
CASES = {  # ours, and theirs, which is made while JAX has 64 bits
    "sgd": (optim.SGD(0.05), lambda: optax.sgd(0.05)),
    "sgd, momentum": (optim.SGD(0.03, momentum=0.9), lambda: optax.sgd(0.03, momentum=0.9)),
    "sgd, nesterov": (
        optim.SGD(0.03, momentum=0.9, nesterov=True), lambda: optax.sgd(0.03, momentum=0.9, nesterov=True),
    ),
    "adam": (optim.Adam(1e-2), lambda: optax.adam(1e-2)),
    "adam, numbers": (optim.Adam(0.03, b1=0.7, b2=0.99, eps=1e-3), lambda: optax.adam(0.03, b1=0.7, b2=0.99, eps=1e-3)),
    "adamw": (optim.AdamW(0.03), lambda: optax.adamw(0.03)),
    "adamw, numbers": (
        optim.AdamW(0.03, weight_decay=0.1, **ADAMW), lambda: optax.adamw(0.03, weight_decay=0.1, **ADAMW),
    ),
    "adamw, decays": (
        optim.AdamW(0.03, weight_decay=0.5, weight_decay_mask="weight"),
        lambda: optax.adamw(0.03, weight_decay=0.5, mask=lambda p: marked(p, "weight")),
    ),
    "clip, sgd": (
        optim.chain(optim.clip_by_global_norm(0.5), optim.SGD(0.1)),
        lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1)),
    ),
    "clip, adamw": (
        optim.chain(optim.clip_by_global_norm(1.25), optim.AdamW(0.03, weight_decay=0.1)),
        lambda: optax.chain(optax.clip_by_global_norm(1.25), optax.adamw(0.03, weight_decay=0.1)),
    ),
    "clip, a limit that float32 lacks": (
        optim.chain(optim.clip_by_global_norm(0.1), optim.SGD(0.1)),
        lambda: optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.1)),
    ),
    "groups": (
        optim.partition({
            "head": optim.SGD(0.05, momentum=0.9), "bias": None,
            "**": optim.chain(optim.clip_by_global_norm(1.0), optim.Adam(0.02)),
        }),
        lambda: optax.multi_transform(
            {
                "head": optax.sgd(0.05, momentum=0.9), "bias": optax.set_to_zero(),
                "rest": optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.02)),
            },
            by_part,
        ),
    ),
    "sgd, cosine": (
        optim.SGD(optim.cosine(0.1, 80, warmup_steps=10, end_value=0.01), momentum=0.9),
        lambda: optax.sgd(wide(optax.warmup_cosine_decay_schedule(0.0, 0.1, 10, 80, 0.01)), momentum=0.9),
    ),
    "adamw, linear": (
        optim.AdamW(optim.linear(0.1, 70, end_value=0.02)),
        lambda: optax.adamw(wide(optax.linear_schedule(0.1, 0.02, 70))),
    ),
    "adamw, linear, rates that float32 has": (
        optim.AdamW(optim.linear(2**-3, 64, end_value=2**-6)),
        lambda: optax.adamw(wide(optax.linear_schedule(2**-3, 2**-6, 64))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_hundred_steps(name):
    ours, theirs = CASES[name]
    got = run_ours(ours)[0]
    with jax.enable_x64(True):
        want = run_theirs(theirs())[0]
    for (path, x), y, start in zip(
        tree.leaves_with_path(got), jax.tree.leaves(want), jax.tree.leaves(START), strict=True
    ):
        assert x.dtype == y.dtype == np.float64 and x.shape == y.shape, path
        error = (abs(x - y) / abs(y)).max()
        assert error <= 1e-9, f"{path}: {error:.2g}"
        is_left = name == "groups" and path[0].key != "head" and path[-1].key == "bias"
        assert (x == start).all() == is_left, path  # all others have moved


SCHEDULES = {
    "cosine": (optim.cosine(0.3, 70), lambda: optax.cosine_decay_schedule(0.3, 70)),
    "cosine, end": (optim.cosine(0.3, 70, end_value=0.06), lambda: optax.cosine_decay_schedule(0.3, 70, alpha=0.2)),
    "cosine, warmup": (
        optim.cosine(0.3, 70, warmup_steps=9, init_value=0.01, end_value=0.02),
        lambda: optax.warmup_cosine_decay_schedule(0.01, 0.3, 9, 70, 0.02),
    ),
    "linear": (optim.linear(0.3, 70), lambda: optax.linear_schedule(0.3, 0.0, 70)),
    "linear, end above": (optim.linear(0.1, 70, end_value=0.3), lambda: optax.linear_schedule(0.1, 0.3, 70)),
    "linear, warmup": (
        optim.linear(0.3, 70, warmup_steps=9, end_value=0.1),
        lambda: optax.join_schedules([optax.linear_schedule(0.0, 0.3, 9), optax.linear_schedule(0.3, 0.1, 61)], [9]),
    ),
    "warmup": (optim.warmup(0.3, 9, init_value=0.03), lambda: optax.linear_schedule(0.03, 0.3, 9)),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    """Rates are float32, so they are within two units in its last place of the largest."""
    ours, theirs = SCHEDULES[name]
    steps = np.arange(STEPS, dtype="int32")
    with jax.enable_x64(True):
        want = np.asarray([float(theirs()(int(t))) for t in steps])
    for got in (atled.jit(atled.vmap(ours))(steps), [float(ours(int(t))) for t in steps]):
        assert abs(np.asarray(got) - want).max() <= 2 * np.spacing(np.float32(want.max()))
