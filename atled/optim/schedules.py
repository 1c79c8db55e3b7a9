"""Learning-rate schedules: functions of the step. All are structs, compared by value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import atled.numpy as jnp
from atled.core import errors
from atled.core.array import ArrayLike
from atled.core.tree_registry import static, struct

__all__ = [
    "Exponential", "Falling", "InverseSqrt", "Joined", "Piecewise", "Schedule", "cosine", "exponential",
    "inverse_sqrt", "joined", "linear", "one_cycle", "piecewise", "polynomial", "restarts", "warmup",
]  # fmt: skip
__dir__ = __all__.copy


class Schedule:
    """A rate that is a function of the step, from 0. Subclasses are structs with `at(step, dtype)`.

    >>> from atled import optim
    >>> class Halving(optim.Schedule):
    ...     def at(self, step, dtype): return jnp.asarray(0.5, dtype) ** step
    >>> float(Halving()(3))
    0.125
    """

    def __call__(self, step: Any) -> Any:
        """The rate in a step, from 0."""
        return self.at(step, "float32")

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        raise NotImplementedError


@struct
class Falling(Schedule):
    """From `start` to `peak` in `warmup` steps, then to `end` at step `steps`, and constant afterwards."""

    shape: str = static()
    peak: float = static()
    steps: int = static()
    warmup: int = static(default=0)
    start: float = static(default=0.0)
    end: float = static(default=0.0)
    power: float = static(default=1.0)

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        t = jnp.asarray(step).astype(dtype)
        rest = max(self.steps - self.warmup, 1)
        done = jnp.clip((t - self.warmup) / rest, 0, 1)
        down = 0.5 * (1 + jnp.cos(math.pi * done)) if self.shape == "cosine" else (1 - done) ** self.power
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
    """From `start` up to `peak` in `warmup` steps, then down to `end` at step `steps` along a half cosine.

    >>> from atled import optim
    >>> rate = optim.cosine(1.0, 100, warmup=10)
    >>> [round(float(rate(t)), 3) for t in (0, 5, 10, 55, 100)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    _checked("cosine", steps, warmup)
    return Falling("cosine", float(peak), int(steps), int(warmup), float(start), float(end))


def linear(peak: float, steps: int, *, warmup: int = 0, start: float = 0.0, end: float = 0.0) -> Schedule:
    """From `start` up to `peak` in `warmup` steps, then down to `end` at step `steps` along a line.

    >>> from atled import optim
    >>> [round(float(optim.linear(1.0, 10)(t)), 3) for t in (0, 5, 10, 20)]
    [1.0, 0.5, 0.0, 0.0]
    """
    _checked("linear", steps, warmup)
    return Falling("linear", float(peak), int(steps), int(warmup), float(start), float(end))


def warmup(peak: float, steps: int, *, start: float = 0.0) -> Schedule:
    """From `start` up to `peak` in `steps` steps, then constant.

    >>> from atled import optim
    >>> [float(optim.warmup(1.0, 4)(t)) for t in (0, 1, 4, 9)]
    [0.0, 0.25, 1.0, 1.0]
    """
    _checked("warmup", steps, steps)
    return Falling("constant", float(peak), int(steps), int(steps), float(start), float(peak))


def polynomial(
    peak: float, steps: int, power: float, *, warmup: int = 0, start: float = 0.0, end: float = 0.0
) -> Schedule:
    """From `start` up to `peak` in `warmup` steps, then `end + (peak - end) (1 - x)**power`, with x from 0 to 1.

    >>> from atled import optim
    >>> [round(float(optim.polynomial(1.0, 10, 2)(t)), 3) for t in (0, 5, 10, 20)]
    [1.0, 0.25, 0.0, 0.0]
    """
    _checked("polynomial", steps, warmup)
    if not power > 0:
        raise ValueError(errors.explained(f"optim.polynomial: power must be above 0; got {power}."))
    return Falling("polynomial", float(peak), int(steps), int(warmup), float(start), float(end), float(power))


@struct
class InverseSqrt(Schedule):
    """See `inverse_sqrt`."""

    peak: float = static()
    warmup: int = static()

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        t = jnp.asarray(step).astype(dtype)
        return self.peak * jnp.minimum(t / self.warmup, jnp.sqrt(self.warmup / jnp.maximum(t, self.warmup)))


def inverse_sqrt(peak: float, warmup: int) -> Schedule:
    """From 0 up to `peak` in `warmup` steps, then `peak sqrt(warmup / t)` (Vaswani et al., 2017).

    >>> from atled import optim
    >>> [round(float(optim.inverse_sqrt(1.0, 100)(t)), 3) for t in (0, 50, 100, 400)]
    [0.0, 0.5, 1.0, 0.5]
    """
    _checked("inverse_sqrt", warmup, warmup)
    return InverseSqrt(float(peak), int(warmup))


@struct
class Exponential(Schedule):
    """See `exponential`."""

    peak: float = static()
    factor: float = static()
    steps: int = static()
    begin: int = static(default=0)
    is_stepwise: bool = static(default=False)
    end: float | None = static(default=None)

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        times = jnp.maximum(jnp.asarray(step).astype(dtype) - self.begin, 0) / self.steps
        rate = self.peak * self.factor ** (jnp.floor(times) if self.is_stepwise else times)
        if self.end is None:
            return rate
        return jnp.maximum(rate, self.end) if self.factor < 1 else jnp.minimum(rate, self.end)


def exponential(
    peak: float, factor: float, steps: int = 1, *, begin: int = 0, is_stepwise: bool = False, end: float | None = None
) -> Schedule:
    """`peak factor**((t - begin) / steps)`, from step `begin` on; in discrete steps if `is_stepwise`.

    It stops at `end`, if that is given.

    >>> from atled import optim
    >>> [round(float(optim.exponential(1.0, 0.5, 10)(t)), 3) for t in (0, 10, 20)]
    [1.0, 0.5, 0.25]
    """
    _checked("exponential", steps, 0)
    if not factor > 0 or begin < 0:
        raise ValueError(
            errors.explained(f"optim.exponential: factor must be above 0, begin 0 or more; got {factor}, {begin}.")
        )
    return Exponential(
        float(peak), float(factor), int(steps), int(begin), bool(is_stepwise), None if end is None else float(end)
    )


@struct
class Piecewise(Schedule):
    """Values at given steps, interpolated by a constant, a line, or a half cosine."""

    shape: str = static()
    steps: tuple[int, ...] = static()
    values: tuple[float, ...] = static()

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        t = jnp.asarray(step).astype(dtype)
        rate = jnp.full_like(t, self.values[0])
        for i in range(1, len(self.steps)):
            rate = jnp.where(t >= self.steps[i - 1], self._between(t, i), rate)
        return jnp.where(t >= self.steps[-1], self.values[-1], rate)

    def _between(self, t: Any, i: int) -> Any:
        start, end = self.values[i - 1], self.values[i]
        done = (t - self.steps[i - 1]) / max(self.steps[i] - self.steps[i - 1], 1)
        if self.shape == "constant":
            return jnp.full_like(t, start)
        up = done if self.shape == "linear" else 0.5 * (1 - jnp.cos(math.pi * done))
        return start + (end - start) * up


def piecewise(rate: float, changes: Mapping[int, float]) -> Schedule:
    """A constant rate that is multiplied by a factor at each of some steps.

    >>> from atled import optim
    >>> [round(float(optim.piecewise(1.0, {10: 0.1, 20: 0.5})(t)), 3) for t in (0, 9, 10, 20)]
    [1.0, 1.0, 0.1, 0.05]
    """
    if any([not isinstance(t, int) or t < 1 for t in changes]):
        raise ValueError(
            errors.explained(
                f"optim.piecewise: changes must be at steps from 1 on; got {', '.join(map(str, changes))}.",
                "optim.piecewise(0.1, {1000: 0.5, 2000: 0.1}).",
            )
        )
    steps, values = [0, *sorted(changes)], [float(rate)]
    for t in steps[1:]:
        values.append(values[-1] * float(changes[t]))
    return Piecewise("constant", tuple(steps), tuple(values))


def one_cycle(
    peak: float, steps: int, *, shape: str = "cosine", warmup: float = 0.3, start: float = 1 / 25,
    end: float = 1e-4, tail: float = 0.15,
) -> Schedule:  # fmt: skip
    """The 1cycle policy: up to `peak`, down again, and then far below the start (Smith and Topin, 2018).

    It begins at `start * peak`, reaches the peak after the fraction `warmup` of the steps, and ends at `start * end *
    peak`. The shape "linear" returns to its start before the last fraction `tail` of the steps.

    >>> from atled import optim
    >>> [round(float(optim.one_cycle(1.0, 100)(t)), 4) for t in (0, 30, 100)]
    [0.04, 1.0, 0.0]
    """
    _checked("one_cycle", steps, 0)
    if shape not in ("cosine", "linear") or not 0 < warmup < 1 or not 0 <= tail < 1 - warmup:
        raise ValueError(
            errors.explained(
                f"optim.one_cycle: the shape must be 'cosine' or 'linear', and warmup and tail fractions of "
                f"the steps, together below 1; got {shape!r}, {warmup}, {tail}."
            )
        )
    low, top = start * peak, int(warmup * steps)
    if shape == "cosine":
        return Piecewise(shape, (0, top, int(steps)), (low, float(peak), low * end))
    return Piecewise(shape, (0, top, int((1 - tail) * steps), int(steps)), (low, float(peak), low, peak * start * end))


@struct
class Joined(Schedule):
    """See `joined`."""

    schedules: tuple[Any, ...] = static()
    ends: tuple[int, ...] = static()

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        step = jnp.asarray(step)
        rate = _rate(self.schedules[0], step, dtype)
        for end, schedule in zip(self.ends, self.schedules[1:], strict=True):
            rate = jnp.where(step < end, rate, _rate(schedule, step - end, dtype))
        return rate


def _rate(schedule: Any, step: Any, dtype: Any) -> Any:
    """The value of a schedule, a function or a number at a step."""
    if isinstance(schedule, Schedule):
        return schedule.at(step, dtype)
    return jnp.asarray(schedule(step) if callable(schedule) else schedule, dtype)


def joined(schedules: Sequence[ArrayLike | Callable[[Any], ArrayLike]], ends: Sequence[int]) -> Schedule:
    """Schedules, functions or numbers in sequence: each starts at step 0 where the previous one ends.

    >>> from atled import optim
    >>> rate = optim.joined([optim.warmup(1.0, 2), 0.5], [4])
    >>> [float(rate(t)) for t in (0, 1, 2, 3, 4, 9)]
    [0.0, 0.5, 1.0, 1.0, 0.5, 0.5]
    """
    if len(schedules) != len(ends) + 1 or list(ends) != sorted(set(ends)):
        raise ValueError(
            errors.explained(
                "optim.joined: there must be an end for each schedule but the last, ascending; got "
                f"{len(schedules)} schedules and the ends {', '.join(map(str, ends)) or 'none'}.",
                "optim.joined([optim.warmup(0.1, 100), 0.1], [100]).",
            )
        )
    return Joined(tuple(schedules), tuple([int(t) for t in ends]))


def restarts(
    peak: float, steps: int, count: int, *, longer: float = 1.0, lower: float = 1.0, warmup: int = 0,
    start: float = 0.0, end: float = 0.0,
) -> Schedule:  # fmt: skip
    """`count` cosine cycles in sequence (SGDR, Loshchilov and Hutter, 2017): the first takes `steps` steps.

    Each next cycle is `longer` times as long, and its peak is `lower` times as high.

    >>> from atled import optim
    >>> [round(float(optim.restarts(1.0, 10, 2, longer=2)(t)), 3) for t in (0, 5, 10, 20, 30)]
    [1.0, 0.5, 1.0, 0.5, 0.0]
    """
    if count < 1:
        raise ValueError(errors.explained(f"optim.restarts: count must be 1 or more; got {count}."))
    cosines, ends, at = [], [], 0
    for i in range(count):
        length = round(steps * longer**i)
        cosines.append(cosine(peak * lower**i, length, warmup=warmup, start=start, end=end))
        at += length
        ends.append(at)
    return cosines[0] if count == 1 else joined(cosines, ends[:-1])
