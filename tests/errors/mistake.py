"""What a mistake of the gallery consists of."""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """One mistake."""

    name: str  # the page
    title: str
    error: str  # the class of the exception
    says: str
    suggests: str
    why: str
    bad: str
    good: str
    jax: str = ""  # the same mistake in JAX's words, where changing the imports is not enough; or in Flax's


NO_PEER = "-"  # for mistakes that cannot be made elsewhere


IMPORTS = """\
import numpy as np
import atled
import atled.numpy as jnp
from atled import lax, random
"""
