"""Random programs that select, and what their derivatives are compared with: JAX's, and differences of the value.

A program is Python text over `jnp`, `lax` and `nn`, so that it runs with atled and with JAX: a function of four
numbers. It is looked at where derivatives are in question: zeros, ties, NaN, infinities. Where atled and JAX differ,
one of the `REASONS` must explain why.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

N = 4
UNARY = [
    "jnp.sin({a})", "jnp.exp({a})", "jnp.tanh({a})", "jnp.sqrt({a})", "jnp.log({a})", "1.0 / {a}", "jnp.abs({a})",
    "{a} ** 2", "{a} ** 0.5", "{a} ** -1", "jnp.cbrt({a})", "jnp.log1p({a})", "jnp.arcsin({a})", "-{a}", "0.5 * {a}",
    "{a} + 1.0", "jnp.sqrt(jnp.abs({a}))", "jnp.abs(jnp.sign({a})) * {a}", "jnp.square({a})", "nn.softplus({a})",
]  # fmt: skip
BINARY = [
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "jnp.hypot({a}, {b})", "jnp.arctan2({a}, {b})",
    "jnp.logaddexp({a}, {b})", "{a} * jnp.sum({b})", "{a} @ {b} + {a}",
]  # fmt: skip
SELECTING = [
    "jnp.where({c}, {a}, {b})", "jnp.where({c}, {a}, 0.0)", "jnp.where({c}, 1.0, {a})", "jnp.maximum({a}, {b})",
    "jnp.minimum({a}, {b})", "jnp.maximum({a}, 0.0)", "jnp.minimum({a}, 1.0)", "jnp.clip({a}, -1.0, 1.0)",
    "lax.clamp(-1.0, {a}, 1.0)", "nn.relu({a})", "nn.relu6({a})", "nn.leaky_relu({a})", "nn.elu({a})",
    "nn.hard_tanh({a})", "({c}) * {a}", "jnp.max({a}) + {b}", "jnp.min({a}) * {b}", "jnp.sort({a})",
    "jnp.sort({a})[::-1]", "{a}[::-1]", "{a}[jnp.array([2, 0, 0, 3])]", "{a}[jnp.argmax({b})] + {b}",
    "{a}.at[1].set(0.0)",
    "{a}.at[jnp.array([0, 2])].set({b}[:2])", "{a}.at[jnp.array([0, 0, 3])].max({b}[:3])",
    "{a}.at[jnp.array([1, 1, 2])].add({b}[1:])", "jnp.tril({a}[:, None] * {b}).sum(0)", "jnp.cumsum({a})",
    "lax.cummax({a})", "lax.cummin({a})", "lax.top_k({a}, 2)[0].sum() + {b}", "jnp.roll({a}, 1)",
    "jnp.pad({a}[1:], (0, 1))", "lax.dynamic_slice({a}, (1,), (2,)).sum() * {b}", "jnp.concatenate([{a}[:2], {b}[2:]])",
    "jnp.nan_to_num({a}, posinf=3.0, neginf=-3.0)", "jnp.nansum({a}) + {b}", "jnp.where(jnp.isnan({a}), {b}, {a})",
    "jnp.where(jnp.isfinite({a}), {a}, 0.0)", "jnp.sum({a}, where={c}) + {b}", "jnp.median({a}) + {b}",
    "jnp.linalg.norm({a}) * {b}", "jnp.std({a}) + {b}", "nn.logsumexp({a}) - {b}", "nn.softmax({a}) * {b}",
    "jnp.where(jnp.any({c}), jnp.sum({a}), 0.0) + {b}", "jnp.nanmax({a}) + {b}", "jnp.prod({a}) + {b}",
    "lax.cond(jnp.sum({a}) > 0, lambda v: {u}, lambda v: 2.0 * v, {b})",
    "lax.scan(lambda s, v: (s + jnp.where(v > 0, {u}, 0.0), s), 0.0, {a})[1]",
    "lax.fori_loop(0, 2, lambda i, v: jnp.where(v > 0, {u}, v), {a})",
    "lax.switch(jnp.argmin({a}), [lambda v: v, lambda v: {u}, jnp.negative, jnp.sin], {b})",
    "lax.reduce_window({a}, -jnp.inf, lax.max, (2,), (1,), 'SAME')",
    "jnp.interp({a}, jnp.arange(3.0), jnp.array([0.0, 1.0, 3.0]))",
    "jnp.select([{c}, {a} > 1], [{a}, {b}], {a} * {b})", "jnp.take_along_axis({a}, jnp.argsort({b}), 0)",
]  # fmt: skip
TESTS = ["{a} > 0", "{a} != 0", "{a} < {b}", "{a} >= 1.0", "jnp.isfinite({a})", "jnp.abs({a}) < 1.5", "~jnp.isnan({b})"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.0, 1.5]
EXTREME = [np.nan, np.inf, -np.inf]


def program(seed: int) -> str:
    """The lines of a function of x, an array of four numbers; its result is one number."""
    r = random.Random(seed)
    names, lines = ["x"], []
    for k in range(r.randint(2, 6)):
        a, b = r.choice(names[-3:]), r.choice(names)
        kind = r.choice([UNARY, UNARY, BINARY, SELECTING, SELECTING, SELECTING])
        if k == 0:
            kind = r.choice([UNARY, SELECTING])
        text = r.choice(kind)
        test = r.choice(TESTS).format(a=r.choice(names), b=r.choice(names))
        lines.append(f"    v{k} = {text.format(a=a, b=b, c=test, u=r.choice(UNARY).format(a='v'))}")
        names.append(f"v{k}")
    if not any([t in "".join(lines) for t in ("where", "max", "min", "clip", "sort", "[", "relu", "cond", "isnan")]):
        lines.append(f"    last = jnp.where({names[-1]} > 0, {names[-1]}, 0.0)")
        names.append("last")
    return "\n".join(["def f(x):", *lines, f"    return jnp.sum({names[-1]})"])


def points(seed: int) -> list[np.ndarray]:
    """Where to look: at ordinary numbers, at zeros and ties, and at NaN and infinities among others."""
    r = np.random.RandomState(seed % 2**32)
    ordinary, special, extreme = r.normal(size=N), r.choice(SPECIAL, N), r.choice(SPECIAL, N)
    extreme[r.randint(N)] = r.choice(EXTREME)
    return [ordinary, special, extreme]


def function(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    space = dict(names)
    exec(text, space)
    return space["f"]


def transforms(m: Any, f: Any) -> dict[str, tuple[str, Callable[..., Any]]]:
    """The ways to a derivative: the reference that each is compared with, and a function of x."""
    lax = m.lax
    never = lambda x: 3.0 * x[0]
    return {
        "value": ("value", f),
        "jit": ("value", m.jit(f)),
        "grad": ("reverse", m.grad(f)),
        "jit(grad)": ("reverse", m.jit(m.grad(f))),
        "grad(jit)": ("reverse", m.grad(m.jit(f))),
        "jvp": ("forward", m.jacfwd(f)),
        "vmap(grad)": ("reverse", lambda x: m.vmap(m.grad(f))(x[None])[0]),
        "grad(remat)": ("reverse", m.grad(m.remat(f))),
        "grad(scan)": (
            "reverse",
            m.grad(lambda x: lax.scan(lambda c, _: (c + f(x), None), 0.0, None, length=2)[0] / 2),
        ),
        "grad(cond)": ("reverse", m.grad(lambda x: lax.cond(x[0] == 77.0, never, f, x))),
        "hessian": ("second", m.hessian(f)),
        "jit(hessian)": ("second", m.jit(m.hessian(f))),
    }


REASONS = {
    "discarded": "JAX's is NaN, because what was discarded is infinite or NaN; ours is the slope of the value",
    "kink": "the slopes to the left and right differ; ours is one of them or between, JAX's another one, or NaN",
    "several kinks": "each line of the program has the slopes of a side, or between, and ours is their product",
    "the value is NaN": "and so is a derivative of it by some argument; which others are NaN differs",
    "a NaN that passes": "the value is NaN, and its derivative by a factor of the first NaN is; JAX has other slopes",
    "at infinity": "an argument or the value is infinite, so no slope can be measured; ours is a limit, zero or NaN",
    "infinite slope": "the slope or a factor of it is infinite: ours or JAX's is inf, the other NaN or another sign",
    "a NaN that JAX loses": "`top_k` of JAX takes a NaN with a sign bit for the smallest number; ours is the largest",
    "JAX alone": "ours is the sum of the derivatives of all elements, which are those of JAX; JAX's is not",
    "curvature at a kink": "of `abs` or a norm at zero: there ours is zero, JAX's may be that of one side",
    "rounding": "the slope cannot be measured: the value is huge, or its slope changes nearby",
}


class Case:
    """A function with its Jacobian here and in JAX, and `scaled`: the function of a factor of the first NaN."""

    def __init__(self, value: Any, ours: Any, theirs: Any, by_factor: Any, is_slope: bool = False) -> None:
        self.value, self.ours, self.theirs, self.by_factor, self.is_slope = value, ours, theirs, by_factor, is_slope

    def explain(self, x: np.ndarray) -> set[str | None]:
        """Why the Jacobians differ at x: a reason for each element, None if there is none."""
        ours, theirs, value = (np.asarray(g(x)) for g in (self.ours, self.theirs, self.value))
        return {self._element(x, value, ours, theirs, k, i) for k, i in np.argwhere(~same(ours, theirs))}

    def _element(self, x: Any, value: Any, ours: Any, theirs: Any, k: int, i: int) -> str | None:
        mine, other = float(ours[k, i]), float(theirs[k, i])
        if np.isnan(value[k]):
            if np.isnan(ours[k]).any():
                return "the value is NaN"
            if self.is_slope and np.isinf(x).any():
                return "at infinity"  # the value's derivative is inf - inf
            return "a NaN that passes" if np.isnan(np.asarray(self.by_factor(x))[k]) else None
        if not np.isfinite(x[i]) or np.isinf(value[k]) or (np.isinf(x).any() and np.isnan(mine + other)):
            return "at infinity"
        return explained(lambda v: np.asarray(self.value(v))[k], x, i, mine, other)

    def _where(self, x: np.ndarray) -> np.ndarray:
        """Where both differ, and the value is not NaN."""
        return (
            ~same(np.asarray(self.ours(x)), np.asarray(self.theirs(x))) & ~np.isnan(np.asarray(self.value(x)))[:, None]
        )

    def ours_is_zero(self, x: np.ndarray) -> bool:
        """Whether ours is zero wherever both differ."""
        return bool((np.asarray(self.ours(x))[self._where(x)] == 0).all())

    def agrees_around(self, x: np.ndarray) -> bool:
        """Whether both agree at points around x, where they differ at x."""
        where = self._where(x)
        around = [x + d for d in np.random.RandomState(0).uniform(-1e-3, 1e-3, (3, N))]
        return all([same(np.asarray(self.ours(v)), np.asarray(self.theirs(v)))[where].all() for v in around])


def explained(f: Any, x: np.ndarray, i: int, mine: float, other: float) -> str | None:
    """Why a slope of a function of x by x[i] differs from JAX's, by differences; f gives a finite number."""
    slopes, middle = [], float(f(x))
    for h in (1e-4, 1e-5, 1e-6):
        for sign in (-1, 1):
            near = x.copy()
            near[i] += sign * h
            slopes.append(sign * (float(f(near)) - middle) / h)
    (left, right), before = slopes[-2:], slopes[-4:-2]
    finite = [s for s in (left, right) if np.isfinite(s)]
    if not finite:  # at a pole, or at the end of where it is defined
        return "infinite slope" if not np.isfinite(mine) or mine == 0 else None
    room = lambda s: 1e-3 * (1 + abs(s))
    is_steep = max(map(abs, finite)) > 1e5 or any(
        [np.isfinite(a) and np.isfinite(b) and abs(a - b) > 0.05 * (1 + abs(a)) for a, b in zip((left, right), before)]
    )
    if np.isfinite(mine) and min(finite) - room(min(finite)) <= mine <= max(finite) + room(max(finite)):
        is_kink = len(finite) == 2 and abs(left - right) > room(left)
        return "kink" if is_kink or not np.isnan(other) else "discarded"
    if is_steep or len(finite) < 2:
        return "infinite slope" if not np.isfinite(mine) or not np.isfinite(other) else "rounding"
    return None


class Programs:
    """A program as functions of x, here and in JAX."""

    def __init__(self, text: str, ours: Any, theirs: Any) -> None:
        self.text, self.ours, self.theirs = text, ours, theirs
        self.spaces = [{"jnp": m.numpy, "lax": m.lax, "nn": m.nn} for m in (ours, theirs)]
        *self.lines, last = text.splitlines()[1:]
        self.last = last.removeprefix("    return jnp.sum(").removesuffix(")")
        self.names = ["x", *[line.split()[0] for line in self.lines]]

    def scalar(self) -> tuple[Any, Any]:
        return function(self.text, self.spaces[0]), function(self.text, self.spaces[1])

    def vector(self, kind: str) -> Case:
        """The program without its last sum."""
        f, g = (function("\n".join(["def f(x):", *self.lines, f"    return {self.last}"]), s) for s in self.spaces)
        by_factor = lambda x: self._by_factor(x, lambda f: f, self.last)
        jacobian = "jacrev" if kind == "reverse" else "jacfwd"
        return self._case(f, *[getattr(m, jacobian)(h) for m, h in ((self.ours, f), (self.theirs, g))], by_factor)

    def slope(self) -> Case:
        """The gradient of the program."""
        f, g = self.scalar()
        by_factor = lambda x: self._by_factor(x, self.ours.grad, f"jnp.sum({self.last})")
        return self._case(self.ours.grad(f), self.ours.hessian(f), self.theirs.hessian(g), by_factor, True)

    def _case(self, f: Any, ours: Any, theirs: Any, by_factor: Any, is_slope: bool = False) -> Case:
        return Case(self.ours.jit(f), self.ours.jit(ours), self.theirs.jit(theirs), by_factor, is_slope)

    def _by_factor(self, x: np.ndarray, transform: Any, result: str) -> Any:
        """The derivative by a factor of all values that are NaN for another reason than that their operands are."""
        text, names = ["def f(x):"], {**self.spaces[0], "w": 1.0}
        values = dict(zip(self.names, self.values(x), strict=True))
        for line, name in zip(["    x = x", *self.lines], self.names, strict=True):
            numbers = {n: self.ours.numpy.asarray(np.where(np.isnan(v), 0.75, v)) for n, v in values.items()}
            first = "" if name == "x" else f"{line}\n"
            alone = function(f"def f(x):\n{first}    return {name}", {**self.spaces[0], **numbers})
            names[f"born_{name}"] = np.isnan(values["x"] if name == "x" else np.asarray(alone(numbers["x"])))
            text += [line, f"    {name} = {name} * jnp.where(born_{name}, w, 1.0)"]
        text.append(f"    return {result}")
        return self.ours.jacrev(lambda w: transform(function("\n".join(text), {**names, "w": w}))(x))(1.0)

    def values(self, x: np.ndarray) -> list[np.ndarray]:
        """x and what all lines give."""
        text = "\n".join(["def f(x):", *self.lines, f"    return [{', '.join(self.names)}]"])
        return [np.asarray(v) for v in function(text, self.spaces[0])(self.ours.numpy.asarray(x))]

    def jax_loses_a_nan(self, x: np.ndarray) -> bool:
        """Whether the values differ in lines with `top_k` of a NaN, and in no others."""
        known, found = dict(zip(self.names, self.values(x), strict=True)), False
        for line, name in zip(self.lines, self.names[1:], strict=True):
            text = f"def f(x):\n{line}\n    return {name}"
            f, g = (function(text, {**s, **{k: m.numpy.asarray(v) for k, v in known.items()}})
                    for s, m in zip(self.spaces, (self.ours, self.theirs), strict=True))  # fmt: skip
            if same(np.asarray(f(self.ours.numpy.asarray(x))), np.asarray(g(self.theirs.numpy.asarray(x)))).all():
                continue
            if "top_k" not in line or not any([n in line and np.isnan(v).any() for n, v in known.items() if n != name]):
                return False
            found = True
        return found

    def has_kink(self, x: np.ndarray) -> bool:
        """Whether the slopes of a line of the program differ to the left and right."""
        values = lambda i, h: self.values(x + h * np.eye(N)[i])
        for i in range(N):
            for low, middle, high in zip(values(i, -1e-6), values(i, 0), values(i, 1e-6), strict=True):
                if np.nanmax(np.abs(high - 2 * middle + low), initial=0.0) > 1e-8:
                    return True
        return False

    def product_of_lines(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The Jacobian as the product of those of the lines, if each is explained by itself.

        Zero times infinity is left out of sums; the second array says where.
        """
        known = dict(zip(self.names, self.values(x), strict=True))
        whole = {"x": (np.eye(N), np.zeros((N, N), bool))}  # the derivatives of all values by x
        for line, name in zip(self.lines, self.names[1:], strict=True):
            total, is_open = np.zeros((N, N)), np.zeros((N, N), bool)
            for operand, (inner, was_open) in list(whole.items()):
                if operand not in line.split("=", 1)[1]:
                    continue
                text = f"def f({operand}):\n{line}\n    return {name}"
                f, g = (function(text, {**s, **{k: m.numpy.asarray(v) for k, v in known.items()}})
                        for s, m in zip(self.spaces, (self.ours, self.theirs), strict=True))  # fmt: skip
                case = self._case(f, self.ours.jacrev(f), self.theirs.jacrev(g), lambda _: np.zeros(N))
                if None in case.explain(known[operand]):
                    return None
                outer = np.asarray(case.ours(known[operand]))[:, :, None]
                is_zero = (outer == 0) | (inner == 0)
                total = total + np.where(is_zero, 0.0, outer * inner).sum(1)
                is_open |= (is_zero & ~np.isfinite(outer * inner)).any(1) | ((outer != 0) & was_open).any(1)
            whole[name] = (total, is_open)
        return whole[self.last]


def reason(programs: Programs, kind: str, x: np.ndarray, got: np.ndarray) -> str | None:
    """Why a value or derivative differs from JAX's, by one of `REASONS`; None if nothing explains it."""
    if kind == "value":
        return "a NaN that JAX loses" if programs.jax_loses_a_nan(x) else None
    case = programs.slope() if kind == "second" else programs.vector(kind)
    ours = np.asarray(case.ours(x))
    whole = ours if kind == "second" else _sum(ours)
    if not (same(got, whole) | np.isnan(whole)).all():
        return None  # this transform has another derivative than the others
    found = case.explain(x)
    if not found:
        return "JAX alone"
    if None in found:
        found.discard(None)
        if kind == "second":
            is_kink = (case.ours_is_zero(x) or programs.has_kink(x)) and case.agrees_around(x)
            found.add("curvature at a kink" if is_kink else None)
        else:
            found.add(_by_lines(ours, programs.product_of_lines(x)))
    return None if None in found else min(found, key=list(REASONS).index)


def _by_lines(ours: np.ndarray, product: tuple[np.ndarray, np.ndarray] | None) -> str | None:
    if product is None:
        return None
    whole, is_open = product
    if same(ours, whole).all():
        return "several kinks"
    return "infinite slope" if (same(ours, whole) | (is_open & np.isnan(ours))).all() else None


def _sum(jacobian: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return jacobian.sum(0)


def same(ours: Any, theirs: Any) -> np.ndarray:
    """Element by element, up to rounding."""
    scale = np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0)
    with np.errstate(invalid="ignore"):
        return np.isclose(ours, theirs, rtol=1e-7, atol=1e-9 * (1 + scale), equal_nan=True)


class Difference(Exception):
    """A derivative that nothing explains."""


def check(seed: int, ours: Any, theirs: Any) -> dict[str, int]:
    """Compare all transforms of a program at all its points; count pairs and reasons, or raise a `Difference`."""
    programs, counts = Programs(program(seed), ours, theirs), {"pairs": 0, "points": 0}
    f, g = programs.scalar()
    reference = {"value": theirs.jit(g), "reverse": theirs.jit(theirs.grad(g)), "forward": theirs.jit(theirs.jacfwd(g))}
    reference["second"] = theirs.jit(theirs.hessian(g))
    ways = transforms(ours, f)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = [{k: np.asarray(r(x)) for k, r in reference.items()} for x in points(seed)]
        for name, (kind, way) in ways.items():
            counts["pairs"] += 1
            for x, want in zip(points(seed), wanted, strict=True):
                counts["points"] += 1
                got = np.asarray(way(ours.numpy.asarray(x)))
                if same(got, want[kind]).all():
                    continue
                why = reason(programs, kind, x, got)
                if why is None:
                    raise Difference(
                        f"{programs.text}\n# {name} at {x.tolist()} (seed {seed})\n"
                        f"# {got.tolist()}\n# {want[kind].tolist()}"
                    )
                counts[why] = counts.get(why, 0) + 1
    return counts


def total(rows: Sequence[dict[str, int]]) -> dict[str, int]:
    """The sum of counts."""
    return {k: sum([r.get(k, 0) for r in rows]) for k in ("pairs", "points", *REASONS)}
