"""`Keys`: a stream of random keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled import random
from atled.core import errors


class Keys:
    """A stream of random keys: `keys()` returns the next one, or None for `Keys(None)`.

    Do not pass `Keys` through a transform: pass a key, and create `Keys` inside the function.

    >>> from atled import nn
    >>> keys = nn.Keys(0)
    >>> random.key_data(keys()).tolist() == random.key_data(keys()).tolist()
    False
    """

    not_an_argument = "the key itself, and nn.Keys(key) inside of the function."

    def __init__(self, key: Any) -> None:
        if isinstance(key, Keys):
            raise TypeError(errors.explained("nn.Keys: a seed, a key or None is expected; got Keys.", "keys()."))
        self._key = random.key(key) if isinstance(key, (int, np.integer)) else key

    def __call__(self) -> Any:
        """The next key."""
        if self._key is None:
            return None
        self._key, out = random.split(self._key)
        return out
