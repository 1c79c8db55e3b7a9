"""Compile for hardware that is not attached, selected by name, and see what a program needs on each chip.

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
    """The topology with a name: `tpu`, a chip, and the number of chips along each axis; or `cuda`, a chip, and slices x
    hosts x GPUs per host.

    Make a mesh of the topology's `.devices`, and pass `ShapeDtypeStruct`s with shardings over it to
    `jit(f).lower(...)`: `.compile()` then compiles for these devices. Compiling needs the wheel of `libtpu` or of the
    CUDA plugin, `pip install 'atled[tpu]'` or `'atled[cuda]'`, but no accelerator.

    Args:
        options: options of the platform, such as `num_slices=2` for TPUs.

    >>> get("tpu v5p 3x")
    Traceback (most recent call last):
    ...
    ValueError: topologies.get: expected a name such as 'tpu v5p:8x8x16' or 'cuda h100 1x32x8'; got 'tpu v5p 3x'.
    """
    platform, chip, shape = parsed(name)
    more = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    return _topology.make(platform, chip, shape, tuple(sorted(more.items())))


def parsed(name: str) -> tuple[str, str, tuple[int, ...]]:
    """The platform, chip and shape in the name of a topology."""
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
    """The names of the known chips, by platform.

    >>> "v5p" in chips()["tpu"], "h100" in chips()["cuda"]
    (True, True)
    """
    return {"tpu": list(_chips.TPUS), "cuda": list(_chips.GPUS)}
