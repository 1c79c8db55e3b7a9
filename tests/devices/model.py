"""A small transformer and its train step, written with the library alone: what meshes and processes are tried on."""

from __future__ import annotations

from functools import partial

import numpy as np

import atled
import atled.numpy as jnp
from atled import lax
from atled.sharding import NamedSharding, P

LAYERS, WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 2, 32, 8, 64, 16, 24

# how each parameter is split: over `model` by columns, then by rows; `data` splits the batch
SPECS = {
    "embed": P(None, "model"),
    "qkv": P(None, None, "model"),
    "out": P(None, "model", None),
    "up": P(None, None, "model"),
    "down": P(None, "model", None),
    "norm": P(),
}


def parameters(seed: int = 0) -> dict[str, np.ndarray]:
    r = np.random.default_rng(seed)
    draw = lambda *shape: (r.standard_normal(shape) / np.sqrt(shape[-2])).astype("float32")
    return {
        "embed": draw(VOCABULARY, WIDTH),
        "qkv": draw(LAYERS, WIDTH, 3 * WIDTH),
        "out": draw(LAYERS, WIDTH, WIDTH),
        "up": draw(LAYERS, WIDTH, 4 * WIDTH),
        "down": draw(LAYERS, 4 * WIDTH, WIDTH),
        "norm": np.ones((LAYERS, 2, WIDTH), "float32"),
    }


def tokens(step: int) -> np.ndarray:
    return np.random.default_rng(100 + step).integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype("int32")


def normalized(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def block(x, p):
    h = normalized(x, p["norm"][0]) @ p["qkv"]
    q, k, v = [y.reshape(*y.shape[:2], HEADS, -1) for y in jnp.split(h, 3, axis=-1)]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    mask = np.tril(np.ones((LENGTH, LENGTH), bool))
    weights = atled.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["out"]
    return x + atled.nn.gelu(normalized(x, p["norm"][1]) @ p["up"]) @ p["down"]


def loss(p, batch):
    x = p["embed"][batch[:, :-1]]
    layers = {k: v for k, v in p.items() if k != "embed"}
    x, _ = lax.scan(lambda x, layer: (block(x, layer), None), x, layers)
    logits = x @ p["embed"].T
    return -jnp.mean(jnp.take_along_axis(atled.nn.log_softmax(logits), batch[:, 1:, None], axis=-1))


@partial(atled.jit, donate_argnums=0)
def step(state, batch):
    p, m = state
    value, g = atled.value_and_grad(loss)(p, batch)
    m = atled.tree.map(lambda m, g: 0.9 * m + g, m, g)
    return (atled.tree.map(lambda p, m: p - 0.05 * m, p, m), m), value


def train(mesh, steps: int) -> tuple[dict, list[float]]:
    """Parameters and losses after some steps on a mesh with the axes `data` and `model`."""
    place = lambda name, x: atled.make_array_from_callback(x.shape, NamedSharding(mesh, SPECS[name]), lambda i: x[i])
    p = {name: place(name, x) for name, x in parameters().items()}
    state = (p, {name: place(name, np.zeros_like(x)) for name, x in parameters().items()})
    losses = []
    for i in range(steps):
        batch = tokens(i)
        spread = NamedSharding(mesh, P("data"))
        batch = atled.make_array_from_callback(batch.shape, spread, lambda index, batch=batch: batch[index])
        state, value = step(state, batch)
        losses.append(value)
    return state[0], [float(v.addressable_shards[0].data) for v in losses]
