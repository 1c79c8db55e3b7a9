"""What a row of the table of layers is: how a layer is made, and what it is called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from atled import random


class Case(NamedTuple):
    """A layer to be tested: `make(key)` makes one, `inputs(key)` are arguments of a call with a batch of 4."""

    name: str
    make: Callable[[Any], Any]
    inputs: Callable[[Any], tuple[Any, ...]]
    paths: tuple[str, ...]  # of its arrays
    keeps_shape: bool = False  # the output can be the input of the next one
    takes_key: bool = False
    is_mixing: bool = False  # rows of the batch see each other

    @property
    def kind(self) -> str:
        return self.name.split(",")[0]


def normal(*shape: int) -> Callable[[Any], tuple[Any, ...]]:
    return lambda key: (random.normal(key, shape),)
