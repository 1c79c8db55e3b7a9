"""Layers against PyTorch's with its weights: outputs, gradients by all weights and inputs, weights there and back.

Weights go over by `nn.load_state_dict` and back by `nn.state_dict`, as they would with a model of somebody else's.
Errors are relative to the larger of 1 and the number itself; more than 2e-5 in float32 is a difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import atled
import atled.numpy as jnp
from atled import nn, tree

torch = pytest.importorskip("torch")

LIMIT = 2e-5
warnings.filterwarnings("ignore", "Using padding='same' with even kernel lengths")  # it copies its input


def drawn(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers in float32."""
    return np.random.RandomState(seed).randn(*shape).astype("f4")


class Row(NamedTuple):
    """A layer of ours and the one of PyTorch, the inputs in our order of axes, and how each is called."""

    ours: Any
    theirs: Any
    inputs: tuple[np.ndarray, ...]
    call: Callable[..., Any] = lambda layer, *xs: layer(*xs)
    their_call: Callable[..., Any] = lambda layer, *xs: layer(*xs)


def in_their_words(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a layer of ours by the names that PyTorch has for them."""
    return {{"strides": "stride", "use_bias": "bias"}.get(n, n): v for n, v in settings.items()}


def features_second(layer: Any, x: Any) -> Any:
    """A call of a layer that has its features on the second axis."""
    return layer(x.movedim(-1, 1)).movedim(1, -1)


def randomized(layer: Any) -> dict[str, Any]:
    """Weights of a layer of PyTorch, drawn anew, as `load_state_dict` takes them; what counts batches is left out."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(0, 0.5)
        for name, buffer in layer.named_buffers():
            if buffer.is_floating_point():
                buffer.uniform_(0.5, 1.5) if name.endswith("var") else buffer.normal_()
    return {n: x.clone() for n, x in layer.state_dict().items() if not n.endswith("num_batches_tracked")}


def weight_of(out: Any, i: int) -> np.ndarray:
    """What the loss multiplies an output with."""
    return drawn(*out.shape, seed=20 + i)


def run_theirs(row: Row) -> dict[str, np.ndarray]:
    """Outputs, gradients and statistics of PyTorch, by name."""
    inputs = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in row.inputs]
    out = row.their_call(row.theirs, *inputs)
    out = list(out) if isinstance(out, tuple) else [out]
    total = sum([(y * torch.tensor(weight_of(y, i))).sum() for i, y in enumerate(out)])
    if total.requires_grad:
        total.backward()
    found = {f"output {i}": y for i, y in enumerate(out)}
    found |= {f"gradient by input {i}": x.grad for i, x in enumerate(inputs) if x.grad is not None}
    found |= {f"gradient by {n}": p.grad for n, p in row.theirs.named_parameters()}
    found |= {f"{n} afterwards": b for n, b in row.theirs.named_buffers() if b.is_floating_point()}
    return {n: x.detach().numpy() for n, x in found.items()}


def run_ours(row: Row, layer: Any) -> dict[str, np.ndarray]:
    """Outputs, gradients and statistics of ours, by the names that they have there."""
    floating = [i for i, x in enumerate(row.inputs) if x.dtype.kind == "f"]

    def loss(layer: Any, *xs: Any) -> Any:
        out = tree.leaves(row.call(layer, *xs))
        return sum([jnp.sum(y * weight_of(y, i)) for i, y in enumerate(out)]), (out, layer)

    by = (0, *[i + 1 for i in floating])
    (_, (out, after)), grads = atled.jit(atled.value_and_grad(loss, argnums=by, has_aux=True))(layer, *row.inputs)
    by_weight = nn.state_dict(grads[0])
    for name in list(by_weight):  # one bias of ours is the sum of two there, each of which has its gradient
        if "bias_hh" in name:
            by_weight[name] = by_weight[name.replace("bias_hh", "bias_ih")]
    found = {f"output {i}": y for i, y in enumerate(out)}
    found |= {f"gradient by input {i}": g for i, g in zip(floating, grads[1:], strict=True)}
    found |= {f"gradient by {n}": g for n, g in by_weight.items()}
    for name, x in nn.state_dict(nn.buffers(after)).items():
        found[f"{name} afterwards"] = unbiased(row, layer, x) if name.endswith("var") else x
    return {n: np.asarray(x) for n, x in found.items()}


def unbiased(row: Row, layer: Any, variance: Any) -> np.ndarray:
    """Our running variance as PyTorch would have it: of each batch it keeps n / (n - 1) times the variance of that."""
    if not layer.training:
        return variance
    n, kept = row.inputs[0][..., 0].size, layer.momentum * np.asarray(layer.variance)
    return kept + (np.asarray(variance) - kept) * n / (n - 1)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference of two arrays."""
    if got.shape != want.shape or np.isnan(got).any():
        return np.inf
    return float((abs(got - want) / np.maximum(1, abs(want))).max())


def largest(got: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> tuple[float, str]:
    """The largest error, and where it is; names that only one side has are an infinite one."""
    odd = sorted(got.keys() ^ want.keys())
    return (
        (np.inf, f"{odd[0]}, which only one has")
        if odd
        else max([(error(got[n], want[n]), n) for n in want], default=(0.0, ""))
    )


def kept(weights: dict[str, Any]) -> dict[str, np.ndarray]:
    """Weights as they come back: of two biases that are one here, the first has their sum."""
    found = {n: x.numpy() for n, x in weights.items()}
    for name in [n for n in found if "bias_hh" in n]:
        first = name.replace("bias_hh", "bias_ih")
        found[first], found[name] = found[first] + found[name], np.zeros_like(found[name])
    return found


def compared(row: Row) -> tuple[float, str]:
    """The largest error of a layer, and where it is."""
    weights = randomized(row.theirs)
    layer = nn.load_state_dict(row.ours, weights)
    back = nn.state_dict(layer)
    for first, second in ((back, kept(weights)), (nn.state_dict(nn.load_state_dict(row.ours, back)), back)):
        changed, where = largest(first, second)
        if changed:
            return np.inf, f"{where}, there and back"
    return largest(run_ours(row, layer), run_theirs(row))


def check(row: Row) -> None:
    """Complain of a layer that is not PyTorch's."""
    found, where = compared(row)
    assert found <= LIMIT, f"{found:.1e} at {where}"
