"""A train step of T5 against the same model in Flax with Optax: seconds, and the ratio.

`python -m benchmarks.t5_flax [t5-small t5-base]`: 512 tokens for the encoder and 114 for the decoder, AdamW, float32,
without dropout. Both models start from the same weights, and their losses are compared first.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any

import flax.linen as linen
import jax
import jax.numpy as jnp
import numpy as np
import optax

import atled
from atled import optim, random
from atled.models import t5
from benchmarks.measure import once_each, timed

BATCH, SOURCE, TARGET = 4, 512, 114


class Attention(linen.Module):
    """Attention without a factor of the logits."""

    config: t5.T5Config

    @linen.compact
    def __call__(self, x: Any, context: Any, bias: Any) -> Any:
        c = self.config

        def heads(name: str, y: Any) -> Any:
            return linen.DenseGeneral((c.num_heads, c.d_kv), use_bias=False, name=name)(y)

        q, k, v = heads("query", x), heads("key", context), heads("value", context)
        logits = jnp.einsum("bqhd,bkhd->bhqk", q, k)
        weights = jax.nn.softmax(logits if bias is None else logits + bias, -1)
        y = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
        return linen.DenseGeneral(c.d_model, axis=(-2, -1), use_bias=False, name="out")(y)


class Block(linen.Module):
    config: t5.T5Config
    is_decoder: bool

    @linen.compact
    def __call__(self, x: Any, bias: Any, context: Any) -> tuple[Any, None]:
        c = self.config

        def norm(name: str) -> Any:
            return linen.RMSNorm(epsilon=c.layer_norm_epsilon, name=name)

        y = norm("attention_norm")(x)
        x = x + Attention(c, name="attention")(y, y, bias)
        if self.is_decoder:
            x = x + Attention(c, name="cross_attention")(norm("cross_attention_norm")(x), context, None)
        y = jax.nn.relu(linen.Dense(c.d_ff, use_bias=False, name="wi")(norm("mlp_norm")(x)))
        return x + linen.Dense(c.d_model, use_bias=False, name="wo")(y), None


def buckets(queries: int, keys: int, c: t5.T5Config, is_causal: bool) -> Any:
    """The bucket of each relative position."""
    distance = np.arange(keys)[None] - np.arange(queries)[:, None]
    count = c.relative_attention_num_buckets
    found = np.zeros_like(distance)
    if is_causal:
        distance = -np.minimum(distance, 0)
    else:
        count //= 2
        found, distance = (distance > 0) * count, abs(distance)
    exact = count // 2
    far = np.log(np.maximum(distance, 1) / exact) / math.log(c.relative_attention_max_distance / exact)
    far = np.minimum(exact + (far * (count - exact)).astype(int), count - 1)
    return found + np.where(distance < exact, distance, far)


class Side(linen.Module):
    config: t5.T5Config
    is_decoder: bool

    @linen.compact
    def __call__(self, x: Any, context: Any) -> Any:
        c, length = self.config, x.shape[1]
        table = linen.Embed(c.relative_attention_num_buckets, c.num_heads, name="relative")
        bias = table(buckets(length, length, c, self.is_decoder)).transpose(2, 0, 1)[None]
        if self.is_decoder:
            bias = jnp.where(np.tril(np.ones((length, length), bool)), bias, -1e9)
        stack = linen.scan(
            Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=c.num_layers,
            in_axes=(linen.broadcast, linen.broadcast),
        )  # fmt: skip
        x, _ = stack(c, self.is_decoder, name="blocks")(x, bias, context)
        return linen.RMSNorm(epsilon=c.layer_norm_epsilon, name="norm")(x)


class T5(linen.Module):
    config: t5.T5Config

    @linen.compact
    def __call__(self, ids: Any, before: Any) -> Any:
        c = self.config
        table = linen.Embed(c.vocab_size, c.d_model, name="embedding")
        context = Side(c, False, name="encoder")(table(ids), None)
        return table.attend(Side(c, True, name="decoder")(table(before), context) * c.d_model**-0.5)


def translated(model: Any, config: t5.T5Config) -> Any:
    """Our weights as Flax's variables."""

    def attention(m: Any) -> dict[str, Any]:
        split = lambda w: np.asarray(w).reshape(config.num_layers, config.d_model, config.num_heads, config.d_kv)
        out = np.asarray(m.out_proj.weight).reshape(config.num_layers, config.num_heads, config.d_kv, config.d_model)
        return {
            **{n: {"kernel": split(getattr(m, f"{n}_proj").weight)} for n in ("query", "key", "value")},
            "out": {"kernel": out},
        }

    def side(m: Any, parts: list[str]) -> dict[str, Any]:
        layers = m.blocks.layers
        blocks: dict[str, Any] = {p: attention(getattr(layers, p)) for p in parts}
        blocks |= {f"{p}_norm": {"scale": np.asarray(getattr(layers, f"{p}_norm").scale)} for p in [*parts, "mlp"]}
        blocks |= {n: {"kernel": np.asarray(layers.mlp[n].weight)} for n in ("wi", "wo")}
        return {
            "blocks": blocks,
            "relative": {"embedding": np.asarray(m.relative.weight)},
            "norm": {"scale": np.asarray(m.norm.scale)},
        }

    return {
        "embedding": {"embedding": np.asarray(model.embedding.weight)},
        "encoder": side(model.encoder, ["attention"]),
        "decoder": side(model.decoder, ["attention", "cross_attention"]),
    }


def our_step(model: Any, ids: Any, labels: Any) -> tuple[Any, Any]:
    """A function that runs one step and returns its seconds, and the first loss."""
    optimizer = optim.AdamW(1e-3, weight_decay=1e-4)

    @atled.jit(donate_argnums=(0, 1))
    def step(model: Any, state: Any, ids: Any, labels: Any) -> Any:
        loss, slopes = atled.value_and_grad(t5.loss, wrt=atled.nn.Param)(model, ids, labels)
        model, state = optimizer.update(slopes, state, model)
        return model, state, loss

    return _turn(step, atled.tree.map(lambda x: x + 0, model), optimizer.init(model), ids, labels)


def flax_step(config: t5.T5Config, params: Any, ids: Any, labels: Any) -> tuple[Any, Any]:
    model, optimizer = T5(config), optax.adamw(1e-3, weight_decay=1e-4)

    def loss(params: Any, ids: Any, labels: Any) -> Any:
        before = jnp.concatenate([jnp.zeros_like(labels[:, :1]), labels[:, :-1]], 1)
        logits = model.apply({"params": params}, ids, before)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(params: Any, state: Any, ids: Any, labels: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, ids, labels)
        updates, state = optimizer.update(slopes, state, params)
        return optax.apply_updates(params, updates), state, value

    params = jax.tree.map(jnp.array, params)
    return _turn(jax.jit(step, donate_argnums=(0, 1)), params, optimizer.init(params), ids, labels)


def _turn(step: Any, model: Any, state: Any, ids: Any, labels: Any) -> tuple[Any, Any]:
    kept = [*step(model, state, ids, labels)]
    first = float(kept[2])

    def turn() -> float:
        def run() -> None:
            kept[:] = step(kept[0], kept[1], ids, labels)
            kept[2].block_until_ready()

        return timed(run)[0]

    return turn, first


def main(names: list[str]) -> None:
    rng = np.random.default_rng(0)
    for name in names or ["t5-small", "t5-base"]:
        config = dataclasses.replace(t5.SIZES[name], dropout_rate=0.0)
        ids, labels = [rng.integers(2, config.vocab_size, (BATCH, n)).astype("int32") for n in (SOURCE, TARGET)]
        model = t5.T5(config, key=random.key(0)).eval()
        theirs, wanted = flax_step(config, translated(model, config), ids, labels)
        ours, first = our_step(model, ids, labels)
        assert abs(first - wanted) < 1e-4 * abs(wanted), (first, wanted)
        best = once_each({"atled": ours, "flax": theirs}, 6, limit=150)
        ratio = best["atled"] / best["flax"]
        print(f"{name}: atled {best['atled']:.3f} s, flax {best['flax']:.3f} s, ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
