"""Rematerialization: `checkpoint`, its policies, `checkpoint_name`, and a list of saved residuals."""

from __future__ import annotations

from typing import Any

from atled.higher_order.remat import Offload, checkpoint_name, checkpoint_policies, remat
from atled.jax.saved_residuals import print_saved_residuals

__all__ = [
    "Offloadable", "Recompute", "Saveable", "checkpoint", "checkpoint_name", "checkpoint_policies",
    "print_saved_residuals", "remat",
]  # fmt: skip
__dir__ = __all__.copy


checkpoint = remat


class _Answer:
    """Values that a policy may return instead of a bool."""

    def __init__(self, name: str, is_kept: bool) -> None:
        self.name, self.is_kept = name, is_kept

    def __bool__(self) -> bool:
        return self.is_kept

    def __repr__(self) -> str:
        return self.name


Recompute = _Answer("Recompute", False)
Saveable = _Answer("Saveable", True)


class Offloadable(Offload):
    """A policy's decision to offload a value from memory kind `src` to memory kind `dst`.

    >>> Offloadable("device", "pinned_host").dst
    'pinned_host'
    """

    src: str

    def __new__(cls, src: str, dst: str) -> Any:
        """A decision to offload a value from memory kind `src` to memory kind `dst`."""
        policy = super().__new__(cls, dst)
        policy.src = src
        return policy

    @property
    def dst(self) -> str:
        """The memory kind to which the value is offloaded."""
        return self.memory
