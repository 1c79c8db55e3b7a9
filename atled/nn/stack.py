"""`Stack`: a sequence of identical layers, stored as one layer with stacked arrays and run by a scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atled import lax, random
from atled.core import errors, tree
from atled.core.former_names import formerly
from atled.core.tree_diff import difference
from atled.higher_order.remat import remat
from atled.nn.intermediates import collecting
from atled.nn.linear_layers import needed
from atled.nn.module import Module
from atled.transforms.vmap import vmap


class Stacked(Module):
    """`num_layers` identical layers stored as one, `layers`, whose arrays have a leading layer axis."""

    num_layers: int
    layers: Any

    def __init__(self, make: Callable[[Any], Any], num_layers: int, *, key: Any) -> None:
        name = type(self).__name__
        if num_layers < 1:
            raise ValueError(errors.explained(f"{name}: the number of layers must be 1 or more; got {num_layers}."))
        if isinstance(make, Module):
            raise TypeError(
                errors.explained(
                    f"{name}: the first argument must be a function that makes a layer from a key; got a "
                    f"{type(make).__name__}.",
                    f"lambda key: {type(make).__name__}(…, key=key).",
                )
            )
        self.num_layers = int(num_layers)
        self.layers = vmap(make)(random.split(needed(self, key), num_layers))

    def __len__(self) -> int:
        return self.num_layers

    def __getitem__(self, i: int) -> Any:
        """Layer i, with its own arrays.

        >>> from atled import nn, random
        >>> nn.Stack(lambda key: nn.Linear(2, 2, key=key), 3, key=random.key(0))[-1].weight.shape
        (2, 2)
        """
        if not -self.num_layers <= i < self.num_layers:
            raise IndexError(errors.explained(f"Stack: there are {self.num_layers} layers; got {i}."))
        return tree.map(lambda x: x[i], self.layers)

    def mapped(self, change: Callable[[Any, Any], Any], key: Any = None) -> Any:
        """A copy with each layer replaced by `change(layer, key)`."""
        stacked = self.__copy__()
        if key is None:
            stacked.layers = vmap(lambda layer: change(layer, None))(self.layers)
        else:
            stacked.layers = vmap(change)(self.layers, random.split(key, self.num_layers))
        return stacked

    def assign(self, assigned: dict[int, Any]) -> None:
        """Replace leaves of the stacked layer by `assigned`, which maps leaf indices to new leaves."""
        if assigned:
            leaves, structure = tree.flatten(self.layers)
            self.layers = structure.unflatten([assigned.get(i, x) for i, x in enumerate(leaves)])


def assigned_in(layer: Any, call: Callable[[], Any]) -> tuple[Any, dict[int, Any]]:
    """The result of `call`, and the leaves of the layer that it assigned, by leaf index."""
    before, structure = tree.flatten(layer)
    y = call()
    after, structure_after = tree.flatten(layer)
    if structure_after != structure:
        path, was, now = difference(structure, structure_after) or ("", "", "")
        raise TypeError(
            errors.explained(
                f"Stack: a layer must keep its tree structure in a call; layers{path} was {was}, and is {now}.",
                "Buffers that are created in __init__.",
            )
        )
    return y, {i: b for i, (a, b) in enumerate(zip(before, after, strict=True)) if a is not b}


@formerly(count="num_layers")
class Stack(Stacked):
    """`num_layers` layers created by `make(key)`, run in sequence: `x = layer(x, *args, **kwargs)`.

    `layers` is one layer whose arrays have a leading layer axis. The `key` of a call is split into one key for each
    layer.

    Args:
        remat: True to recompute layers in the backward pass, or one of `atled.checkpoint_policies`.
        unroll: layers per iteration of the compiled loop.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> deep = nn.Stack(lambda key: nn.Linear(2, 2, key=key), 12, key=random.key(0))
    >>> deep.layers.weight.shape, deep(jnp.ones(2)).shape
    ((12, 2, 2), (2,))
    """

    def __init__(
        self, make: Callable[[Any], Any], num_layers: int, *, key: Any = None, remat: Any = False, unroll: int = 1
    ) -> None:
        super().__init__(make, num_layers, key=key)
        self.remat, self.unroll = remat, int(unroll)

    def __call__(self, x: Any, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        """The output of the last layer."""
        keys = None if key is None else random.split(key, self.num_layers)

        def one(x: Any, step: Any) -> Any:
            layer, own = step
            more = kwargs if own is None else {**kwargs, "key": own}
            with collecting() as seen:
                y, assigned = assigned_in(layer, lambda: layer(x, *args, **more))
            return y, (assigned, seen)

        if self.remat:
            one = remat(one, policy=None if self.remat is True else self.remat)
        out, (assigned, seen) = lax.scan(one, x, (self.layers, keys), self.num_layers, unroll=self.unroll)
        seen.hand_on()
        self.assign(assigned)
        return out

    def unrolled(self) -> list[Any]:
        """The layers as a list of modules.

        >>> from atled import nn, random
        >>> len(nn.Stack(lambda key: nn.Linear(2, 2, key=key), 3, key=random.key(0)).unrolled())
        3
        """
        return [self[i] for i in range(self.num_layers)]


class Unstacked(Module):
    """The layers of a `Stack`, each with its own arrays, run one after the other without a loop."""

    def __init__(self, stack: Stack) -> None:
        self.layers, self.training = stack.unrolled(), stack.training

    def __call__(self, x: Any, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        """The output of the last layer."""
        keys = [None] * len(self.layers) if key is None else random.split(key, len(self.layers))
        for layer, own in zip(self.layers, keys, strict=True):
            x = layer(x, *args, **kwargs) if own is None else layer(x, *args, **kwargs, key=own)
        return x
