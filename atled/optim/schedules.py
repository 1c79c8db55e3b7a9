"""Schedules: rates that are functions of the step. All are structs, so that equal ones are the same."""

from __future__ import annotations

import math
from typing import Any

import atled.numpy as jnp
from atled.core import errors
from atled.core.struct import static, struct


@struct
class Schedule:
    """From `start` to `peak` in `warmup` steps, then to `end` at step `steps`, and so on."""

    shape: str = static()
    peak: float = static()
    steps: int = static()
    warmup: int = static(default=0)
    start: float = static(default=0.0)
    end: float = static(default=0.0)

    def __call__(self, step: Any) -> Any:
        """The rate in a step, from 0."""
        return self.at(step, "float32")

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        t = jnp.asarray(step).astype(dtype)
        rest = max(self.steps - self.warmup, 1)
        done = jnp.clip((t - self.warmup) / rest, 0, 1)
        down = 1 - done if self.shape == "linear" else 0.5 * (1 + jnp.cos(math.pi * done))
        falling = self.end + (self.peak - self.end) * (1.0 if self.shape == "constant" else down)
        if not self.warmup:
            return falling
        return jnp.where(t < self.warmup, self.start + (self.peak - self.start) * t / self.warmup, falling)


def _checked(name: str, steps: int, warmup: int) -> None:
    if steps < 1 or not 0 <= warmup <= steps:
        raise ValueError(
            errors.explained(f"optim.{name}: steps must be 1 or more, and warmup at most that; got {steps}, {warmup}.")
        )


def cosine(peak: float, steps: int, *, warmup: int = 0, start: float = 0.0, end: float = 0.0) -> Schedule:
    """From `start` up to `peak` in `warmup` steps, then down to `end` at step `steps` along half a wave.

    >>> from atled import optim
    >>> rate = optim.cosine(1.0, 100, warmup=10)
    >>> [round(float(rate(t)), 3) for t in (0, 5, 10, 55, 100)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    _checked("cosine", steps, warmup)
    return Schedule("cosine", float(peak), int(steps), int(warmup), float(start), float(end))


def linear(peak: float, steps: int, *, warmup: int = 0, start: float = 0.0, end: float = 0.0) -> Schedule:
    """From `start` up to `peak` in `warmup` steps, then down to `end` at step `steps` along a line.

    >>> from atled import optim
    >>> [round(float(optim.linear(1.0, 10)(t)), 3) for t in (0, 5, 10, 20)]
    [1.0, 0.5, 0.0, 0.0]
    """
    _checked("linear", steps, warmup)
    return Schedule("linear", float(peak), int(steps), int(warmup), float(start), float(end))


def warmup(peak: float, steps: int, *, start: float = 0.0) -> Schedule:
    """From `start` up to `peak` in `steps` steps, where it stays.

    >>> from atled import optim
    >>> [float(optim.warmup(1.0, 4)(t)) for t in (0, 1, 4, 9)]
    [0.0, 0.25, 1.0, 1.0]
    """
    _checked("warmup", steps, steps)
    return Schedule("constant", float(peak), int(steps), int(steps), float(start), float(peak))
