"""`Stack`: equal layers one after the other, as one layer with longer arrays; the program is as long as one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atled import lax, random
from atled.core import errors, tree
from atled.core.differences import difference
from atled.higher_order.remat import checkpoint
from atled.nn.capturing import collecting
from atled.nn.layers import needed
from atled.nn.module import Module
from atled.transforms.vmap import vmap


class Stack(Module):
    """`count` layers that `make(key)` makes, run one after the other: `x = layer(x, *args, **kwargs)`.

    `layers` is one of them whose arrays have a first axis for the layer. A `key` of a call is split into one for each.

    Args:
        remat: compute values of the forward pass again in the backward pass; or a checkpoint policy.
        unroll: layers that are written out in one turn of the loop.

    >>> from atled import nn, random
    >>> import atled.numpy as jnp
    >>> deep = nn.Stack(lambda key: nn.Linear(2, 2, key=key), 12, key=random.key(0))
    >>> deep.layers.weight.shape, deep(jnp.ones(2)).shape
    ((12, 2, 2), (2,))
    """

    def __init__(
        self, make: Callable[[Any], Any], count: int, *, key: Any = None, remat: Any = False, unroll: int = 1
    ) -> None:
        if count < 1:
            raise ValueError(errors.explained(f"Stack: the number of layers must be 1 or more; got {count}."))
        if isinstance(make, Module):
            raise TypeError(
                errors.explained(
                    f"Stack: the first argument makes a layer from a key; got a {type(make).__name__}.",
                    f"lambda key: {type(make).__name__}(…, key=key).",
                )
            )
        self.count, self.remat, self.unroll = int(count), remat, int(unroll)
        self.layers = vmap(make)(random.split(needed(self, key), count))

    def __call__(self, x: Any, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        """What the last layer gives."""
        keys = None if key is None else random.split(key, self.count)

        def one(x: Any, step: Any) -> Any:
            layer, own = step
            more = kwargs if own is None else {**kwargs, "key": own}
            before, structure = tree.flatten(layer)
            with collecting() as seen:
                y = layer(x, *args, **more)
            after, kept = tree.flatten(layer)
            if kept != structure:
                path, was, now = difference(structure, kept) or ("", "", "")
                raise TypeError(
                    errors.explained(
                        f"Stack: a layer must keep its tree in a call; layers{path} was {was}, and is {now}.",
                        "Buffers that are there from __init__ on.",
                    )
                )
            pairs = enumerate(zip(before, after, strict=True))
            return y, ({i: b for i, (a, b) in pairs if a is not b}, seen)  # only what was assigned

        if self.remat:
            one = checkpoint(one, policy=None if self.remat is True else self.remat)
        out, (assigned, seen) = lax.scan(one, x, (self.layers, keys), self.count, unroll=self.unroll)
        seen.hand_on()
        if assigned:
            leaves, structure = tree.flatten(self.layers)
            self.layers = structure.unflatten([assigned.get(i, x) for i, x in enumerate(leaves)])
        return out

    def mapped(self, change: Callable[[Any, Any], Any], key: Any = None) -> Any:
        """A copy whose layers are what `change(layer, key)` gives for each."""
        made = self.__copy__()
        if key is None:
            made.layers = vmap(lambda layer: change(layer, None))(self.layers)
        else:
            made.layers = vmap(change)(self.layers, random.split(key, self.count))
        return made

    def unrolled(self) -> list[Any]:
        """The layers as a list of modules.

        >>> from atled import nn, random
        >>> len(nn.Stack(lambda key: nn.Linear(2, 2, key=key), 3, key=random.key(0)).unrolled())
        3
        """
        return [tree.map(lambda x, i=i: x[i], self.layers) for i in range(self.count)]
