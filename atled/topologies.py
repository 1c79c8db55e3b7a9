"""Hardware that is not attached, by name: compile for it, and see what a program needs on each chip.

>>> from atled import topologies
>>> topologies.chips()["cuda"][:3]
['a100', 'a100-40', 'h100']
"""

from __future__ import annotations

import re
from typing import Any

from atled.engine import chip_specs as _chips
from atled.engine import topology as _topology
from atled.engine.topology import Topology

__all__ = ["Topology", "chips", "get"]
__dir__ = __all__.copy


def get(name: str, **options: Any) -> Topology:
    """A machine by its name: `tpu`, a chip and how many there are along each axis; or `cuda`, a chip and slices x hosts
    x GPUs per host.

    The `.devices` of a topology can form meshes as attached devices do, and programs whose arguments are
    `ShapeDtypeStruct`s over such a mesh are compiled for them by `jit(f).lower(...).compile()`. Compiling needs the
    `libtpu` or the CUDA plugin's wheel, `pip install 'atled[tpu]'` or `'atled[cuda]'`, but no accelerator.

    Args:
        options: further options of the platform, such as `num_slices=2` for TPUs.

    >>> get("tpu v5p 3x")
    Traceback (most recent call last):
    ...
    ValueError: topologies.get: expected a name such as 'tpu v5p:8x8x16' or 'cuda h100 1x32x8'; got 'tpu v5p 3x'.
    """
    platform, chip, shape = parsed(name)
    more = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    return _topology.make(platform, chip, shape, tuple(sorted(more.items())))


def parsed(name: str) -> tuple[str, str, tuple[int, ...]]:
    """Platform, chip and shape, from the name of a machine."""
    match = re.fullmatch(r"(\w+) +([\w-]+)[ :](\d+(?:x\d+)*)", name.strip().lower())
    if match is None:
        raise ValueError(
            f"topologies.get: expected a name such as 'tpu v5p:8x8x16' or 'cuda h100 1x32x8'; got {name!r}."
        )
    platform, chip, shape = match[1], match[2], tuple([int(n) for n in match[3].split("x")])
    known = chips()
    if chip not in known.get(platform, ()):
        lists = "; ".join([f"{p} {', '.join(names)}" for p, names in known.items()])
        raise ValueError(f"topologies.get: {platform} {chip} is not known; there are {lists}.")
    if platform == "cuda":
        if len(shape) > 3:
            raise ValueError(f"topologies.get: expected slices x hosts x GPUs; got {name!r}.")
        shape = (1,) * (3 - len(shape)) + shape
    return platform, chip, shape


def chips() -> dict[str, list[str]]:
    """The known chips, by platform.

    >>> "v5p" in chips()["tpu"], "h100" in chips()["cuda"]
    (True, True)
    """
    return {"tpu": list(_chips.TPUS), "cuda": list(_chips.GPUS)}
