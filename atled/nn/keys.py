"""`Keys`: one random key after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled import random
from atled.core import errors


class Keys:
    """Random keys one after the other: `keys()` is the next one. Of None, it gives None.

    Keys are for one function: a transform takes a key, and the function makes `Keys` of it.

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
