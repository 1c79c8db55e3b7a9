"""Learning-rate schedules: functions of the step, which are structs compared by value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import atled.numpy as jnp
from atled.core import errors
from atled.core.array import ArrayLike
from atled.core.former_names import formerly
from atled.core.tree_registry import static, struct

__all__ = [
    "Exponential", "InverseSqrt", "JoinedSchedules", "Piecewise", "Schedule", "WarmupDecay", "cosine", "exponential",
    "inverse_sqrt", "join_schedules", "linear", "one_cycle", "piecewise", "polynomial", "restarts", "warmup",
]  # fmt: skip
__dir__ = __all__.copy


class Schedule:
    """A learning rate as a function of the step, counted from 0. Subclasses are structs that define `at(step, dtype)`.

    >>> from atled import optim
    >>> class Halving(optim.Schedule):
    ...     def at(self, step, dtype): return jnp.asarray(0.5, dtype) ** step
    >>> float(Halving()(3))
    0.125
    """

    def __call__(self, step: Any) -> Any:
        """The rate in a step, counted from 0, computed in float32."""
        return self.at(step, "float32")

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        raise NotImplementedError


@formerly(peak="peak_value", steps="total_steps", warmup="warmup_steps", start="init_value", end="end_value")
@struct
class WarmupDecay(Schedule):
    """A rate that goes from `init_value` to `peak_value` in `warmup_steps`, then to `end_value` at `total_steps`, and
    stays constant afterwards.
    """

    shape: str = static()
    peak_value: float = static()
    total_steps: int = static()
    warmup_steps: int = static(default=0)
    init_value: float = static(default=0.0)
    end_value: float = static(default=0.0)
    power: float = static(default=1.0)

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        t = jnp.asarray(step).astype(dtype)
        rest = max(self.total_steps - self.warmup_steps, 1)
        done = jnp.clip((t - self.warmup_steps) / rest, 0, 1)
        down = 0.5 * (1 + jnp.cos(math.pi * done)) if self.shape == "cosine" else (1 - done) ** self.power
        falling = self.end_value + (self.peak_value - self.end_value) * (1.0 if self.shape == "constant" else down)
        if not self.warmup_steps:
            return falling
        return jnp.where(
            t < self.warmup_steps,
            self.init_value + (self.peak_value - self.init_value) * t / self.warmup_steps,
            falling,
        )


def _checked(name: str, steps: int, warmup: int, what: str = "total_steps") -> None:
    if steps < 1:
        raise ValueError(errors.explained(f"optim.{name}: {what} must be 1 or more; got {steps}."))
    if not 0 <= warmup <= steps:
        raise ValueError(
            errors.explained(f"optim.{name}: warmup_steps must be from 0 to {what}; got {warmup} and {steps}.")
        )


@formerly(peak="peak_value", steps="total_steps", warmup="warmup_steps", start="init_value", end="end_value")
def cosine(
    peak_value: float, total_steps: int, *, warmup_steps: int = 0, init_value: float = 0.0, end_value: float = 0.0
) -> Schedule:
    """A rate that rises from `init_value` to `peak_value` in `warmup_steps`, then falls to `end_value` at `total_steps`
    along a half cosine.

    >>> from atled import optim
    >>> rate = optim.cosine(1.0, 100, warmup_steps=10)
    >>> [round(float(rate(t)), 3) for t in (0, 5, 10, 55, 100)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    _checked("cosine", total_steps, warmup_steps)
    return WarmupDecay(
        "cosine", float(peak_value), int(total_steps), int(warmup_steps), float(init_value), float(end_value)
    )


@formerly(peak="peak_value", steps="total_steps", warmup="warmup_steps", start="init_value", end="end_value")
def linear(
    peak_value: float, total_steps: int, *, warmup_steps: int = 0, init_value: float = 0.0, end_value: float = 0.0
) -> Schedule:
    """A rate that rises from `init_value` to `peak_value` in `warmup_steps`, then falls linearly to `end_value` at
    `total_steps`.

    >>> from atled import optim
    >>> [round(float(optim.linear(1.0, 10)(t)), 3) for t in (0, 5, 10, 20)]
    [1.0, 0.5, 0.0, 0.0]
    """
    _checked("linear", total_steps, warmup_steps)
    return WarmupDecay(
        "linear", float(peak_value), int(total_steps), int(warmup_steps), float(init_value), float(end_value)
    )


@formerly(peak="peak_value", steps="warmup_steps", start="init_value")
def warmup(peak_value: float, warmup_steps: int, *, init_value: float = 0.0) -> Schedule:
    """A rate that rises from `init_value` to `peak_value` in `warmup_steps`, then stays constant.

    >>> from atled import optim
    >>> [float(optim.warmup(1.0, 4)(t)) for t in (0, 1, 4, 9)]
    [0.0, 0.25, 1.0, 1.0]
    """
    _checked("warmup", warmup_steps, 0, "warmup_steps")
    return WarmupDecay(
        "constant", float(peak_value), int(warmup_steps), int(warmup_steps), float(init_value), float(peak_value)
    )


@formerly(peak="peak_value", steps="total_steps", warmup="warmup_steps", start="init_value", end="end_value")
def polynomial(
    peak_value: float,
    total_steps: int,
    power: float,
    *,
    warmup_steps: int = 0,
    init_value: float = 0.0,
    end_value: float = 0.0,
) -> Schedule:
    """A rate that rises from `init_value` to `peak_value` in `warmup_steps`, then is
    `end_value + (peak_value - end_value) (1 - x)**power`, where x goes from 0 to 1 at `total_steps`.

    >>> from atled import optim
    >>> [round(float(optim.polynomial(1.0, 10, 2)(t)), 3) for t in (0, 5, 10, 20)]
    [1.0, 0.25, 0.0, 0.0]
    """
    _checked("polynomial", total_steps, warmup_steps)
    if not power > 0:
        raise ValueError(errors.explained(f"optim.polynomial: power must be above 0; got {power}."))
    return WarmupDecay(
        "polynomial",
        float(peak_value),
        int(total_steps),
        int(warmup_steps),
        float(init_value),
        float(end_value),
        float(power),
    )


@formerly(peak="peak_value", warmup="warmup_steps")
@struct
class InverseSqrt(Schedule):
    """See `inverse_sqrt`."""

    peak_value: float = static()
    warmup_steps: int = static()

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        t = jnp.asarray(step).astype(dtype)
        return self.peak_value * jnp.minimum(
            t / self.warmup_steps, jnp.sqrt(self.warmup_steps / jnp.maximum(t, self.warmup_steps))
        )


@formerly(peak="peak_value", warmup="warmup_steps")
def inverse_sqrt(peak_value: float, warmup_steps: int) -> Schedule:
    """A rate that rises from 0 to `peak_value` in `warmup_steps`, then is `peak_value sqrt(warmup_steps / t)` (Vaswani
    et al., 2017).

    >>> from atled import optim
    >>> [round(float(optim.inverse_sqrt(1.0, 100)(t)), 3) for t in (0, 50, 100, 400)]
    [0.0, 0.5, 1.0, 0.5]
    """
    _checked("inverse_sqrt", warmup_steps, 0, "warmup_steps")
    return InverseSqrt(float(peak_value), int(warmup_steps))


@formerly(
    peak="init_value",
    factor="decay_rate",
    steps="transition_steps",
    begin="transition_begin",
    is_stepwise="staircase",
    end="end_value",
)
@struct
class Exponential(Schedule):
    """See `exponential`."""

    init_value: float = static()
    decay_rate: float = static()
    transition_steps: int = static()
    transition_begin: int = static(default=0)
    staircase: bool = static(default=False)
    end_value: float | None = static(default=None)

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        times = jnp.maximum(jnp.asarray(step).astype(dtype) - self.transition_begin, 0) / self.transition_steps
        rate = self.init_value * self.decay_rate ** (jnp.floor(times) if self.staircase else times)
        if self.end_value is None:
            return rate
        return jnp.maximum(rate, self.end_value) if self.decay_rate < 1 else jnp.minimum(rate, self.end_value)


@formerly(
    peak="init_value",
    factor="decay_rate",
    steps="transition_steps",
    begin="transition_begin",
    is_stepwise="staircase",
    end="end_value",
)
def exponential(
    init_value: float,
    decay_rate: float,
    transition_steps: int = 1,
    *,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: float | None = None,
) -> Schedule:
    """A rate of `init_value decay_rate**x` from step `transition_begin` on, with x = (t - transition_begin) /
    transition_steps, rounded down if `staircase`.

    The rate stops at `end_value`, if that is given.

    >>> from atled import optim
    >>> [round(float(optim.exponential(1.0, 0.5, 10)(t)), 3) for t in (0, 10, 20)]
    [1.0, 0.5, 0.25]
    """
    _checked("exponential", transition_steps, 0, "transition_steps")
    if not decay_rate > 0 or transition_begin < 0:
        raise ValueError(
            errors.explained(
                f"optim.exponential: decay_rate must be above 0, transition_begin 0 or more; got {decay_rate}, "
                f"{transition_begin}."
            )
        )
    return Exponential(
        float(init_value),
        float(decay_rate),
        int(transition_steps),
        int(transition_begin),
        bool(staircase),
        None if end_value is None else float(end_value),
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


@formerly(rate="init_value", changes="boundaries_and_scales")
def piecewise(init_value: float, boundaries_and_scales: Mapping[int, float]) -> Schedule:
    """A piecewise constant rate: at each step in `boundaries_and_scales`, it is multiplied by a factor.

    >>> from atled import optim
    >>> [round(float(optim.piecewise(1.0, {10: 0.1, 20: 0.5})(t)), 3) for t in (0, 9, 10, 20)]
    [1.0, 1.0, 0.1, 0.05]
    """
    if any([not isinstance(t, int) or t < 1 for t in boundaries_and_scales]):
        raise ValueError(
            errors.explained(
                "optim.piecewise: boundaries must be steps from 1 on; got "
                f"{', '.join(map(str, boundaries_and_scales))}.",
                "optim.piecewise(0.1, {1000: 0.5, 2000: 0.1}).",
            )
        )
    steps, values = [0, *sorted(boundaries_and_scales)], [float(init_value)]
    for t in steps[1:]:
        values.append(values[-1] * float(boundaries_and_scales[t]))
    return Piecewise("constant", tuple(steps), tuple(values))


@formerly(
    peak="peak_value",
    steps="total_steps",
    shape="anneal_strategy",
    warmup="pct_start",
    start="init_scale",
    end="end_scale",
    tail="tail_fraction",
)
def one_cycle(
    peak_value: float, total_steps: int, *, anneal_strategy: str = "cosine", pct_start: float = 0.3,
    init_scale: float = 1 / 25, end_scale: float = 1e-4, tail_fraction: float = 0.15,
) -> Schedule:  # fmt: skip
    """The 1cycle policy: up to `peak_value`, down again, and then far below the start (Smith and Topin, 2018).

    The rate begins at `init_scale * peak_value`, reaches the peak after the fraction `pct_start` of the steps, and ends
    at `init_scale * end_scale * peak_value`. With the strategy "linear", the rate is back at its start value when the
    last fraction `tail_fraction` of the steps begins.

    >>> from atled import optim
    >>> [round(float(optim.one_cycle(1.0, 100)(t)), 4) for t in (0, 30, 100)]
    [0.04, 1.0, 0.0]
    """
    _checked("one_cycle", total_steps, 0)
    if anneal_strategy not in ("cosine", "linear") or not 0 < pct_start < 1 or not 0 <= tail_fraction < 1 - pct_start:
        raise ValueError(
            errors.explained(
                "optim.one_cycle: anneal_strategy must be 'cosine' or 'linear', and pct_start and tail_fraction "
                "fractions of "
                f"the steps, together below 1; got {anneal_strategy!r}, {pct_start}, {tail_fraction}."
            )
        )
    low, top = init_scale * peak_value, int(pct_start * total_steps)
    if anneal_strategy == "cosine":
        return Piecewise(anneal_strategy, (0, top, int(total_steps)), (low, float(peak_value), low * end_scale))
    return Piecewise(
        anneal_strategy,
        (0, top, int((1 - tail_fraction) * total_steps), int(total_steps)),
        (low, float(peak_value), low, peak_value * init_scale * end_scale),
    )


@formerly(ends="boundaries")
@struct
class JoinedSchedules(Schedule):
    """See `join_schedules`."""

    schedules: tuple[Any, ...] = static()
    boundaries: tuple[int, ...] = static()

    def at(self, step: Any, dtype: Any) -> Any:
        """The rate in a step, computed in a dtype."""
        step = jnp.asarray(step)
        rate = _rate(self.schedules[0], step, dtype)
        for end, schedule in zip(self.boundaries, self.schedules[1:], strict=True):
            rate = jnp.where(step < end, rate, _rate(schedule, step - end, dtype))
        return rate


def _rate(schedule: Any, step: Any, dtype: Any) -> Any:
    """The value of a schedule, a function or a number at a step."""
    if isinstance(schedule, Schedule):
        return schedule.at(step, dtype)
    return jnp.asarray(schedule(step) if callable(schedule) else schedule, dtype)


def join_schedules(schedules: Sequence[ArrayLike | Callable[[Any], ArrayLike]], boundaries: Sequence[int]) -> Schedule:
    """Schedules, functions or numbers in sequence: each starts at step 0 where the previous one ends.

    >>> from atled import optim
    >>> rate = optim.join_schedules([optim.warmup(1.0, 2), 0.5], [4])
    >>> [float(rate(t)) for t in (0, 1, 2, 3, 4, 9)]
    [0.0, 0.5, 1.0, 1.0, 0.5, 0.5]
    """
    if len(schedules) != len(boundaries) + 1 or list(boundaries) != sorted(set(boundaries)):
        raise ValueError(
            errors.explained(
                "optim.join_schedules: boundaries must be ascending, one for each schedule but the last; got "
                f"{len(schedules)} schedules and the boundaries {', '.join(map(str, boundaries)) or 'none'}.",
                "optim.join_schedules([optim.warmup(0.1, 100), 0.1], [100]).",
            )
        )
    return JoinedSchedules(tuple(schedules), tuple([int(t) for t in boundaries]))


@formerly(
    peak="peak_value",
    steps="first_cycle_steps",
    count="num_cycles",
    longer="t_mul",
    lower="m_mul",
    warmup="warmup_steps",
    start="init_value",
    end="end_value",
)
def restarts(
    peak_value: float, first_cycle_steps: int, num_cycles: int, *, t_mul: float = 1.0, m_mul: float = 1.0,
    warmup_steps: int = 0, init_value: float = 0.0, end_value: float = 0.0,
) -> Schedule:  # fmt: skip
    """`num_cycles` cosine cycles in sequence (SGDR, Loshchilov and Hutter, 2017): the first takes `first_cycle_steps`
    steps.

    Each further cycle is `t_mul` times as long as the one before, and its peak `m_mul` times as high.

    >>> from atled import optim
    >>> [round(float(optim.restarts(1.0, 10, 2, t_mul=2)(t)), 3) for t in (0, 5, 10, 20, 30)]
    [1.0, 0.5, 1.0, 0.5, 0.0]
    """
    if num_cycles < 1:
        raise ValueError(errors.explained(f"optim.restarts: num_cycles must be 1 or more; got {num_cycles}."))
    cosines, ends, at = [], [], 0
    for i in range(num_cycles):
        length = round(first_cycle_steps * t_mul**i)
        cosines.append(
            cosine(peak_value * m_mul**i, length, warmup_steps=warmup_steps, init_value=init_value, end_value=end_value)
        )
        at += length
        ends.append(at)
    return cosines[0] if num_cycles == 1 else join_schedules(cosines, ends[:-1])
