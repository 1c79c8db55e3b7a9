"""Compositions of transforms, and what they must equal: values and differences of the reference, nothing of atled.

A composition wraps the function itself (jit, remat, vmap), takes a derivative of it, and wraps that (jit, vmap).
It is written down as Python after the program, and checked lane by lane: each lane of a batch is the derivative of
the reference at that lane's arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import build
import numpy as np
from hypothesis import strategies as st
from language import POLICIES, Choices, Program, Shape, random_program
from reference import Run, Values


@dataclass(frozen=True)
class Wrap:
    """jit, remat with a policy, or vmap with axes."""

    kind: str
    policy: str | None = None
    in_axes: tuple[int | None, ...] = ()
    size: int = 0

    def text(self, f: str) -> str:
        if self.kind == "vmap":
            return f"atled.vmap({f}, in_axes={self.in_axes})"
        return f"atled.{self.kind}({f}{build.policy(self.policy)})"


@dataclass(frozen=True)
class Composition:
    """`outer(derivative(inner(f)))`; between two derivatives there may be wraps, too."""

    inner: tuple[Wrap, ...]
    derivative: str
    between: tuple[Wrap, ...]
    outer: tuple[Wrap, ...]
    seed: int

    def name(self) -> str:
        """Such as `jit vmap grad remat`, the outermost first."""
        name = self.derivative
        if self.between:
            name = name.replace(" of ", " " + " ".join(w.kind for w in reversed(self.between)) + " ")
        words = [w.kind for w in reversed(self.outer)] + [name] + [w.kind for w in reversed(self.inner)]
        return " ".join(words)


# -- the derivatives: which arguments follow the inputs, Python text, and whether it takes forward or reverse mode ----

WEIGHTED = "sum([jnp.sum(w * y) for w, y in zip(weights, inner(*xs), strict=True)])"


@dataclass(frozen=True)
class Derivative:
    """Lines that define `derivative(*args)`: args are inputs, then directions or cotangents if it takes them."""

    lines: tuple[str, ...]
    takes: str = ""  # "tangents" or "cotangents"
    needs: str = ""  # "forward" mode, "reverse" mode, or both; forward over reverse is "reverse"


_LOSS = ("def loss(*xs):", f"    return {WEIGHTED}")
_SLOPE = (*_LOSS, "slope = {between(atled.grad(loss, argnums=EVERY))}")
_SPEED = (*_LOSS, "def speed(xs, ds):", "    return atled.jvp(loss, xs, ds)[1]")
_PAIR = ("def derivative(*args):", "    xs, ds = args[:COUNT], args[COUNT:]")
DERIVATIVES = {
    "value": Derivative(("derivative = inner",)),
    "jvp": Derivative((*_PAIR, "    return atled.jvp(inner, xs, ds)"), "tangents", "forward"),
    "linearize": Derivative(
        (*_PAIR, "    out, push = atled.linearize(inner, *xs)", "    return out, push(*ds)"),
        "tangents", "forward reverse",
    ),
    "grad": Derivative((*_LOSS, "derivative = atled.value_and_grad(loss, argnums=EVERY)"), "", "reverse"),
    "vjp": Derivative(
        (*_PAIR, "    out, pull = atled.vjp(inner, *xs)", "    return out, pull(tuple(ds))"), "cotangents", "reverse"
    ),
    "jvp and vjp": Derivative(
        (
            *_PAIR,
            "    return (*atled.jvp(inner, xs, ds), atled.vjp(inner, *xs)[1](tuple(weights)))",
        ),
        "tangents", "forward reverse",
    ),
    "jacrev": Derivative(("derivative = atled.jacrev(inner, argnums=EVERY)",), "", "reverse"),
    "jacfwd": Derivative(("derivative = atled.jacfwd(inner, argnums=EVERY)",), "", "forward"),
    "hessian": Derivative((*_LOSS, "derivative = atled.hessian(loss, argnums=EVERY)"), "", "reverse"),
    "jvp of grad": Derivative((*_SLOPE, *_PAIR, "    return atled.jvp(slope, xs, ds)[1]"), "tangents", "reverse"),
    "grad of grad": Derivative(
        (
            *_SLOPE, *_PAIR,
            "    along = lambda *xs: sum([jnp.sum(d * g) for d, g in zip(ds, slope(*xs))])",
            "    return atled.grad(along, argnums=EVERY)(*xs)",
        ),
        "tangents", "reverse",
    ),
    "grad of jvp": Derivative(
        (*_SPEED, *_PAIR, "    return atled.grad({between(speed)})(xs, ds)"), "tangents", "forward reverse"
    ),
    "jvp of jvp": Derivative(
        (
            *_SPEED, *_PAIR,
            "    still = tuple([jnp.zeros_like(d) for d in ds])",
            "    return atled.jvp({between(speed)}, (xs, ds), (ds, still))[1]",
        ),
        "tangents", "forward",
    ),
}  # fmt: skip
SECOND_ORDER = ("jvp of grad", "grad of grad", "grad of jvp", "jvp of jvp")
# how often each is drawn; the first is what Hypothesis shrinks to
_DRAWN = (
    "value", "jvp", "jvp", "linearize", "grad", "grad", "grad", "vjp", "vjp", "jvp and vjp", "jacrev", "jacfwd",
    *SECOND_ORDER, *SECOND_ORDER[:3], "hessian",
)  # fmt: skip


def possible(program: Program) -> list[str]:
    """The derivatives that a program has: no reverse mode through a loop without bounds, and no forward mode through
    a reverse-mode rule.
    """
    kinds = program.kinds()
    without = {"reverse"} if "while_loop" in kinds else {"forward"} if "custom_vjp" in kinds else set()
    return [d for d in _DRAWN if not without & set(DERIVATIVES[d].needs.split())]


def _batched(shape: Shape, axis: int | None, size: int) -> Shape:
    return shape if axis is None else (*shape[:axis], size, *shape[axis:])


def random_composition(choices: Choices, program: Program) -> Composition:
    """A composition that a program has."""

    def wrap(kind: str, shapes: list[Shape]) -> Wrap:
        if kind == "remat":
            return Wrap(kind, policy=choices.of(POLICIES))
        if kind != "vmap":
            return Wrap(kind)
        axes = [choices.of([0, None, None, *range(1, len(s) + 1)]) for s in shapes]
        if all([a is None for a in axes]):
            axes[0] = 0
        made = Wrap(kind, in_axes=tuple(axes), size=2)
        shapes[:] = [_batched(s, a, made.size) for s, a in zip(shapes, axes)]
        return made

    def wraps(options: Sequence[tuple[str, ...]], shapes: list[Shape]) -> tuple[Wrap, ...]:
        return tuple([wrap(kind, shapes) for kind in choices.of(options)])

    derivative = choices.of(possible(program))
    shapes = [v.shape for v in program.inputs]
    # a reverse-mode rule is batched only if the batch is inside the derivative
    inner = wraps((*_INNER, *[("vmap",)] * 4) if "custom_vjp" in program.kinds() else _INNER, shapes)
    between = wraps(((), ("jit",), ("remat",), ("jit", "remat")), []) if " of " in derivative else ()
    more = {"tangents": shapes, "cotangents": _output_shapes(program, inner), "": []}[DERIVATIVES[derivative].takes]
    outer = wraps(_OUTER, [*shapes, *more])
    return Composition(inner, derivative, between, outer, choices.below(256))


_INNER = (
    (), (), ("remat",), ("vmap",), ("jit",), ("jit", "remat"), ("vmap", "remat"), ("jit", "vmap"),
    ("vmap",),
)  # fmt: skip
_OUTER = (("jit",), ("jit",), (), ("vmap", "jit"), ("vmap",), ("vmap", "jit"), ("jit", "vmap"), ("vmap", "vmap", "jit"))


def _output_shapes(program: Program, inner: Sequence[Wrap]) -> list[Shape]:
    shapes = [v.shape for v in program.outputs]
    for w in inner:
        if w.kind == "vmap":
            shapes = [(w.size, *s) for s in shapes]
    return shapes


# -- a program, a composition and arguments ----------------------------------------------------------------------------


class Trial:
    """A program under a composition, at a point: Python text, what comes out, and whether it is right."""

    def __init__(self, program: Program, composition: Composition) -> None:
        self.program, self.composition = program, composition
        self.derivative = DERIVATIVES[composition.derivative]
        self.count = len(program.inputs)
        shapes = [v.shape for v in program.inputs]
        for w in composition.inner:
            shapes = [_batched(s, a, w.size) for s, a in zip(shapes, w.in_axes)] if w.kind == "vmap" else shapes
        outputs = _output_shapes(program, composition.inner)
        self.shapes = shapes + {"tangents": shapes, "cotangents": outputs, "": []}[self.derivative.takes]
        for w in composition.outer:
            if w.kind == "vmap":
                self.shapes = [_batched(s, a, w.size) for s, a in zip(self.shapes, w.in_axes)]
        self.weight_shapes = outputs
        # what is compiled at one point must be right at another
        self.points = 2 if any([w.kind == "jit" for w in composition.outer]) else 1

    def text(self) -> str:
        """Python that runs by itself, and defines `points` and `composed`."""
        c = self.composition
        inner, between, outer = "f", "{}", "derivative"
        for w in c.inner:
            inner = w.text(inner)
        for w in c.between:
            between = w.text(between)
        for w in c.outer:
            outer = w.text(outer)
        lines = []
        for line in self.derivative.lines:
            if "{between(" in line:
                start, rest = line.split("{between(")
                middle, end = rest.split(")}")
                line = start + between.format(middle) + end
            lines.append(line.replace("EVERY", str(tuple(range(self.count)))).replace("COUNT", str(self.count)))
        return "\n".join(
            [
                build.HEADER,
                build.text(self.program),
                f"numbers = np.random.default_rng({c.seed})",
                "def drawn(shapes):",
                "    return [jnp.asarray(np.asarray(numbers.uniform(-1.5, 1.5, s))) for s in shapes]",
                f"weights = drawn({self.weight_shapes})",
                f"points = [drawn({self.shapes}) for _ in range({self.points})]",
                f"inner = {inner}",
                *lines,
                f"composed = {outer}",
                "",
            ]
        )

    def reference(self, xs: Sequence[np.ndarray]) -> tuple[Values, Run]:
        """What `inner` must give, and the decisions on the way."""
        run = Run()
        f: Callable[[Sequence[np.ndarray]], Values] = lambda xs: run.program(self.program, xs)
        for w in self.composition.inner:
            if w.kind == "vmap":
                f = _over_lanes(f, w)
        return f(xs), run

    def check(self) -> None:
        """Complain if it is not right; `Rough` if the point is not one where that can be told."""
        names = build.run(self.text())
        weights = [np.asarray(x) for x in names["weights"]]
        batches = [w for w in reversed(self.composition.outer) if w.kind == "vmap"]
        for i, args in enumerate(names["points"]):
            result = names["composed"](*args)
            lanes = _lanes([np.asarray(x) for x in args], result, batches)
            for own, found in lanes if i == 0 else lanes[-1:]:
                point = Point(self.reference, own[: self.count], weights)
                CHECKS[self.composition.derivative](point, own[self.count :], found)


def _over_lanes(f: Callable[..., Values], w: Wrap) -> Callable[..., Values]:
    def mapped(xs: Sequence[np.ndarray]) -> Values:
        return [np.stack(column) for column in zip(*[f(_lane(xs, w.in_axes, i)) for i in range(w.size)])]

    return mapped


def _lane(xs: Sequence[np.ndarray], axes: Sequence[int | None], i: int) -> Values:
    return [x if a is None else np.take(x, i, axis=a) for x, a in zip(xs, axes, strict=True)]


def _lanes(args: Values, result: Any, wraps: Sequence[Wrap]) -> list[tuple[Values, Any]]:
    """Arguments and result of each lane of nested batches, the outermost first."""
    if not wraps:
        return [(args, result)]
    found = []
    for i in range(wraps[0].size):
        found += _lanes(_lane(args, wraps[0].in_axes, i), _map(lambda y, i=i: np.asarray(y)[i], result), wraps[1:])
    return found


def _map(f: Callable[[Any], Any], x: Any) -> Any:
    return tuple([_map(f, y) for y in x]) if isinstance(x, (tuple, list)) else f(x)


# -- what must hold ----------------------------------------------------------------------------------------------------


class Rough(Exception):
    """A point at which differences do not tell the derivative: a decision is close, or the function too curved."""


class Point:
    """The reference at a point: values, and derivatives of them by differences."""

    def __init__(self, f: Callable[..., tuple[Values, Run]], xs: Values, weights: Values) -> None:
        self.f, self.xs, self.weights = f, xs, weights
        self.outputs, run = f(xs)
        self.decisions = run.decisions
        if run.margin < 1e-7:
            raise Rough
        self.directions = np.random.default_rng(len(self.decisions))

    def direction(self) -> Values:
        return [np.asarray(self.directions.uniform(-1, 1, x.shape)) for x in self.xs]

    def at(self, *moves: tuple[float, Values]) -> Values:
        """The outputs some way off."""
        xs = self.xs
        for step, d in moves:
            xs = [x + step * v for x, v in zip(xs, d, strict=True)]
        out, run = self.f(xs)
        if run.decisions != self.decisions:
            raise Rough
        return out

    def slope(self, d: Values) -> Values:
        """The derivative of the outputs along a direction."""

        def central(h: float) -> Values:
            return [(a - b) / (2 * h) for a, b in zip(self.at((h, d)), self.at((-h, d)))]

        return _limit(central(1e-4), central(2e-4))

    def curvature(self, d: Values, e: Values) -> float:
        """The second derivative of the weighted sum of the outputs, along two directions."""

        def central(h: float) -> Values:
            moves = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
            return [
                np.asarray(sum([s * t * self.loss(self.at((s * h, d), (t * h, e))) for s, t in moves]) / (4 * h * h))
            ]

        return float(_limit(central(1e-3), central(2e-3))[0])

    def loss(self, outputs: Values, weights: Values | None = None) -> float:
        return dot(weights or self.weights, outputs)


def dot(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    return float(sum([np.sum(np.asarray(x) * np.asarray(y)) for x, y in zip(xs, ys, strict=True)]))


def _limit(fine: Values, coarse: Values) -> Values:
    """The limit of differences with steps h and 2h whose error grows as h²."""
    for a, b in zip(fine, coarse, strict=True):
        if np.any(np.abs(a - b) > 1e-3 * (1 + np.abs(a))):
            raise Rough
    return [(4 * a - b) / 3 for a, b in zip(fine, coarse, strict=True)]


def close(got: Any, want: Any, tolerance: float, what: str) -> None:
    """Complain about what is not as it should be."""
    leaves, wanted = list(got), list(want)
    assert len(leaves) == len(wanted), f"{what}: {len(leaves)} results, not {len(wanted)}"
    scale = max([1.0, *[float(np.max(np.abs(w), initial=0)) for w in wanted]])
    for i, (x, w) in enumerate(zip(leaves, wanted)):
        x, w = np.asarray(x), np.asarray(w)
        assert x.dtype == np.float64 and x.shape == w.shape, f"{what} {i}: {x.dtype}{x.shape}, not float64{w.shape}"
        assert np.max(np.abs(x - w), initial=0) <= tolerance * scale, f"{what} {i}: {x}, not {w}"


VALUE, ADJOINT, FIRST, SECOND = 1e-9, 1e-9, 1e-6, 1e-4  # relative to the largest value


def _value(p: Point, more: Values, result: Any) -> None:
    close(result, p.outputs, VALUE, "value")


def _forward(p: Point, more: Values, result: Any) -> None:
    close(result[0], p.outputs, VALUE, "value")
    close(result[1], p.slope(more), FIRST, "tangent")


def _gradient(p: Point, gradient: Any, weights: Values) -> None:
    """A gradient against slopes along two directions."""
    assert [np.shape(g) for g in gradient] == [x.shape for x in p.xs], "gradient: shapes are not those of the inputs"
    for _ in range(2):
        d = p.direction()
        close([np.asarray(dot(gradient, d))], [np.asarray(p.loss(p.slope(d), weights))], FIRST, "gradient along d")


def _grad(p: Point, more: Values, result: Any) -> None:
    close([result[0]], [np.asarray(p.loss(p.outputs))], VALUE, "loss")
    _gradient(p, result[1], p.weights)


def _vjp(p: Point, more: Values, result: Any) -> None:
    close(result[0], p.outputs, VALUE, "value")
    _gradient(p, result[1], more)


def _adjoint(p: Point, more: Values, result: Any) -> None:
    _forward(p, more, result[:2])
    close([np.asarray(dot(result[2], more))], [np.asarray(p.loss(result[1]))], ADJOINT, "vjp as the adjoint of jvp")


def _jacobian(p: Point, more: Values, result: Any) -> None:
    for _ in range(2):
        d = p.direction()
        rows = [sum([np.tensordot(j, v, v.ndim) for j, v in zip(row, d, strict=True)]) for row in result]
        close(rows, p.slope(d), FIRST, "jacobian times d")


def _hessian(p: Point, more: Values, result: Any) -> None:
    """The change of a gradient along `more`, along two directions."""
    assert [np.shape(g) for g in result] == [x.shape for x in p.xs], "hessian: shapes are not those of the inputs"
    for _ in range(2):
        d = p.direction()
        close([np.asarray(dot(result, d))], [np.asarray(p.curvature(d, more))], SECOND, "second derivative")


def _whole_hessian(p: Point, more: Values, result: Any) -> None:
    d, e = p.direction(), p.direction()
    columns = [sum([np.tensordot(np.asarray(h), v, v.ndim) for h, v in zip(row, e, strict=True)]) for row in result]
    close([np.asarray(dot(columns, d))], [np.asarray(p.curvature(d, e))], SECOND, "second derivative")


def _twice_forward(p: Point, more: Values, result: Any) -> None:
    close([result], [np.asarray(p.curvature(more, more))], SECOND, "second derivative")


CHECKS: dict[str, Callable[[Point, Values, Any], None]] = {
    "value": _value, "jvp": _forward, "linearize": _forward, "grad": _grad, "vjp": _vjp, "jvp and vjp": _adjoint,
    "jacrev": _jacobian, "jacfwd": _jacobian, "hessian": _whole_hessian, "jvp of grad": _hessian,
    "grad of grad": _hessian, "grad of jvp": _hessian, "jvp of jvp": _twice_forward,
}  # fmt: skip


def random_trials(data: bytes) -> list[Trial]:
    """A program under one composition, or two, made by bytes: the first ones choose compositions."""
    program = random_program(Choices(data[COMPOSING:]))
    choices = Choices(data[:COMPOSING])
    return [Trial(program, random_composition(choices, program)) for _ in range(choices.of((1, 1, 1, 2)))]


COMPOSING = 40
trials = st.binary(min_size=COMPOSING + 80, max_size=COMPOSING + 600).map(random_trials)
