"""Random programs as plain data, and how bytes make them.

A `Program` is a list of equations over float64 arrays of small shapes. Equations of control flow hold programs again,
which see the variables around them. `reference.py` runs a program with NumPy, `build.py` writes it down as a function
of atled. A bound on the size of every value is kept while a program is made, so that differences stay accurate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Shape = tuple[int, ...]


class Var(NamedTuple):
    """A value with a name: no two variables of a program, or of the programs in it, have the same number."""

    number: int
    shape: Shape

    def __str__(self) -> str:
        return f"v{self.number}"


@dataclass(frozen=True)
class Equation:
    """One step: `results = kind(operands)`, with static options, and programs to repeat or to choose from."""

    kind: str
    operands: tuple[Var, ...]
    results: tuple[Var, ...]
    options: dict[str, Any] = field(default_factory=dict)
    bodies: tuple[Program, ...] = ()


@dataclass(frozen=True)
class Program:
    """Equations from inputs to outputs."""

    inputs: tuple[Var, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Var, ...]

    def all_equations(self) -> Iterator[Equation]:
        """Its equations, and those of the programs in it."""
        for e in self.equations:
            yield e
            for body in e.bodies:
                yield from body.all_equations()

    def kinds(self) -> Counter[str]:
        """How often each kind of equation occurs."""
        return Counter(e.kind for e in self.all_equations())


# -- what there is ----------------------------------------------------------------------------------------------------

UNARY = {"sin": 1.0, "cos": 1.0, "tanh": 1.0, "exp_tanh": math.e, "inverse": 0.5}  # and bounds of their values
BINARY = ("add", "mul", "sub", "div", "maximum")
SHAPING = ("broadcast", "reshape", "transpose", "slice", "concatenate", "index", "pick")
FIRST_ORDER = (
    *UNARY, "scale", "constant", *BINARY, "where", "sum", "mean", "max", "cumsum", "matmul", *SHAPING,
)  # fmt: skip
NESTED = (
    "jit", "remat", "vmap", "cond", "switch", "scan", "fori_loop", "bounded_while", "custom_jvp", "custom_vjp",
    "while_loop",
)  # fmt: skip
THRESHOLDS = (0.0147, -0.3721, 0.2607, 0.7393)  # values do not meet these by chance
POLICIES = (None, "everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable")
SHAPES: tuple[Shape, ...] = ((), (3,), (2, 3), (2,), (3, 2), (3, 3), (2, 2))
LARGEST = 8.0  # no value is larger
LOOPED = 3.0  # what a loop carries is not larger than this, or than it was at the start
MOST = 30  # equations in all


def broadcast_shape(*shapes: Shape) -> Shape | None:
    """The shape that arrays of these shapes broadcast to, or None."""
    out: list[int] = []
    for sizes in zip(*[(1,) * (max(map(len, shapes)) - len(s)) + s for s in shapes]):
        found = {n for n in sizes if n != 1}
        if len(found) > 1:
            return None
        out.append(found.pop() if found else 1)
    return tuple(out)


class Choices:
    """Choices, made by bytes; when there are no more bytes, the first option is taken.

    Hypothesis draws the bytes of a program in one piece: drawn one by one, most programs of a run were variations of
    each other. It shrinks by taking bytes out and making them smaller, so the first option is the simplest.
    """

    def __init__(self, data: bytes) -> None:
        self.data = iter(data)

    def below(self, n: int) -> int:
        return next(self.data, 0) % n if n > 1 else 0

    def of(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]


class Maker:
    """Draws a program, one equation after another. A scope is a list of variables and their bounds."""

    def __init__(self, choices: Choices, size: int, nested: Sequence[str]) -> None:
        self.choose = choices.of
        self.below = choices.below
        self.left = size
        self.nested = nested
        self.count = 0
        self.used: set[Var] = set()

    def number(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)

    def flag(self) -> bool:
        return bool(self.below(2))

    def new(self, shape: Shape) -> Var:
        self.count += 1
        return Var(self.count - 1, shape)

    # -- programs ------------------------------------------------------------------------------------------------------

    def program(
        self, inputs: Sequence[tuple[Var, float]], around: list[Any], size: int, depth: int, outputs: Any
    ) -> tuple[Program, list[float]]:
        """A program of about `size` equations; `outputs` chooses them. Also says how large they can be."""
        equations: list[Equation] = []
        scope = Scope(self, list(around), list(inputs), equations, depth)
        for i in range(size):
            # a program can end after each equation, so that Hypothesis can take out any of them
            if self.left <= 0 or (i and not self.number(0, 15)):
                break
            scope.step()
        chosen = outputs(scope)
        made = Program(tuple([v for v, _ in inputs]), tuple(equations), tuple([v for v, _ in chosen]))
        return made, [b for _, b in chosen]


class Scope:
    """A program in the making: the variables that it can use, and the equations so far."""

    def __init__(self, maker: Maker, outer: list[Any], known: list[Any], equations: list[Equation], depth: int) -> None:
        self.maker, self.outer, self.known, self.equations, self.depth = maker, outer, known, equations, depth

    def emit(
        self, kind: str, operands: Sequence[Var], shape: Shape, bound: float, **options: Any
    ) -> tuple[Var, float]:  # fmt: skip
        """Write an equation with one result; a large result is made small by a second one."""
        (out,) = self.emit_many(kind, operands, [shape], [bound], options)
        return out

    def emit_many(
        self, kind: str, operands: Sequence[Var], shapes: Sequence[Shape], bounds: Sequence[float],
        options: dict[str, Any], bodies: Sequence[Program] = (),
    ) -> list[tuple[Var, float]]:  # fmt: skip
        results = tuple([self.maker.new(s) for s in shapes])
        self.maker.left -= 1
        self.equations.append(Equation(kind, tuple(operands), results, options, tuple(bodies)))
        out = []
        for v, b in zip(results, bounds):
            if b > LARGEST:
                out.append(self.emit("tanh", [v], v.shape, 1.0))
            else:
                self.known.append((v, b))
                out.append((v, b))
        return out

    def any(self, fits: Callable[[Shape], bool] = lambda s: True) -> tuple[Var, float] | None:
        """One of the variables with a shape that fits: the latest ones, and rather one that nothing uses yet."""
        used = self.maker.used
        own = [x for x in reversed(self.known) if fits(x[0].shape)]
        found = [x for x in own if x[0] not in used][:4] + [x for x in own if x[0] in used][:2]
        found += [x for x in reversed(self.outer) if fits(x[0].shape)][: 2 if found else 6]
        if not found:
            return None
        chosen = self.maker.choose(found)
        used.add(chosen[0])
        return chosen

    def last(self, most: int) -> list[tuple[Var, float]]:
        """Outputs: the latest variables that nothing uses, so that little is computed in vain."""
        free = [x for x in reversed(self.known) if x[0] not in self.maker.used]
        return free[: self.maker.number(1, most)] or [self.sure()]

    def some(self, least: int, most: int) -> list[tuple[Var, float]]:
        return [self.sure() for _ in range(self.maker.number(least, most))]

    def sure(self, fits: Callable[[Shape], bool] = lambda s: True) -> tuple[Var, float]:
        """As `any`, where there is always one."""
        return self.any(fits) or self.constant((3,) if not fits(()) else ())

    def constant(self, shape: Shape) -> tuple[Var, float]:
        return self.emit("constant", [], shape, 1.0, phase=0.25 * self.maker.number(0, 3))

    def fitted(self, shape: Shape, most: float = LARGEST) -> tuple[Var, float]:
        """A variable of this shape and at most this size, made from another one if need be."""
        same = self.any(lambda s: s == shape)
        if same is None:
            v, b = self.sure()
            if broadcast_shape(v.shape, shape) != shape:
                v, b = self.emit("mean", [v], (), b, axis=None)
            same = self.emit("broadcast", [v], shape, b)
        if same[1] > most:
            same = self.emit("tanh", [same[0]], shape, 1.0)
        return same

    # -- one equation --------------------------------------------------------------------------------------------------

    def step(self) -> None:
        m = self.maker
        if m.nested and self.depth < 3 and m.left > 6 and m.number(0, 9) > 5:
            getattr(self, m.choose(m.nested))()
        else:
            self.first_order(m.choose(FIRST_ORDER))

    def first_order(self, kind: str) -> None:
        if kind in UNARY:
            v, _ = self.sure()
            self.emit(kind, [v], v.shape, UNARY[kind])
        elif kind in BINARY:
            self.binary(kind)
        else:
            getattr(self, kind if kind != "constant" else "any_constant")()

    def any_constant(self) -> None:
        self.constant(self.maker.choose(SHAPES))

    def scale(self) -> None:
        v, b = self.sure()
        self.emit("scale", [v], v.shape, 0.5 * b + 0.25)

    def binary(self, kind: str) -> None:
        x, a = self.sure()
        y, b = self.sure(lambda s: _fits(broadcast_shape(x.shape, s)))
        shape = broadcast_shape(x.shape, y.shape)
        bound = {"add": a + b, "sub": a + b, "mul": a * b, "div": a / 2, "maximum": max(a, b) + 0.375}[kind]
        if kind == "maximum" and x is y:
            kind, bound = "add", a + b
        assert shape is not None
        self.emit(kind, [x, y], shape, bound)

    def where(self) -> None:
        p, _ = self.sure()
        x, a = self.sure(lambda s: _fits(broadcast_shape(p.shape, s)))
        both = broadcast_shape(p.shape, x.shape)
        assert both is not None
        y, b = self.sure(lambda s: _fits(broadcast_shape(both, s)))
        shape = broadcast_shape(both, y.shape)
        assert shape is not None
        self.emit("where", [p, x, y], shape, max(a, b), threshold=self.maker.choose(THRESHOLDS))

    def reduce(self, kind: str) -> None:
        v, b = self.sure(lambda s: len(s) > 0)
        axis = self.maker.choose([None, *range(len(v.shape))] if kind != "max" else range(len(v.shape)))
        shape = () if axis is None else v.shape[:axis] + v.shape[axis + 1 :]
        many = math.prod(v.shape) if axis is None else v.shape[axis]
        bound = {"sum": b * many, "mean": b, "max": b + 0.31 * many}[kind]
        self.emit(kind, [v], shape, bound, axis=axis)

    def sum(self) -> None:
        self.reduce("sum")

    def mean(self) -> None:
        self.reduce("mean")

    def max(self) -> None:
        self.reduce("max")

    def cumsum(self) -> None:
        v, b = self.sure(lambda s: len(s) > 0)
        axis = self.maker.choose(range(len(v.shape)))
        self.emit("cumsum", [v], v.shape, b * v.shape[axis], axis=axis)

    def matmul(self) -> None:
        x, a = self.sure(lambda s: len(s) > 0)
        y, b = self.sure(lambda s: len(s) > 0 and s[max(len(s) - 2, 0)] == x.shape[-1])
        if y.shape[max(len(y.shape) - 2, 0)] != x.shape[-1]:  # a constant that does not fit either
            y, b = self.constant((x.shape[-1],))
        self.emit("matmul", [x, y], x.shape[:-1] + y.shape[:-2] + y.shape[1:][-1:], a * b * x.shape[-1])

    def broadcast(self) -> None:
        v, b = self.sure(lambda s: len(s) < 2)
        self.emit("broadcast", [v], (self.maker.number(2, 3), *v.shape), b)

    def reshape(self) -> None:
        v, b = self.sure(lambda s: len(s) > 0)
        n = math.prod(v.shape)
        self.emit(
            "reshape",
            [v],
            self.maker.choose([s for s in ((2, 3), (3, 2), (n,), (n, 1), (1, n)) if math.prod(s) == n]),
            b,
        )

    def transpose(self) -> None:
        v, b = self.sure(lambda s: len(s) > 0)
        self.emit("transpose", [v], v.shape[::-1], b)

    def slice(self) -> None:
        v, b = self.sure(lambda s: len(s) > 0)
        m, n = self.maker, v.shape[0]
        start, stride = m.number(0, n - 1), m.choose([1, 2, -1])
        cut = (start, None, stride)
        self.emit("slice", [v], (len(range(n)[slice(*cut)]), *v.shape[1:]), b, cut=cut)

    def concatenate(self) -> None:
        x, a = self.sure(lambda s: len(s) > 0 and s[0] < 3)
        y, b = self.sure(lambda s: len(s) > 0 and s[0] < 3 and s[1:] == x.shape[1:])
        if y.shape[1:] != x.shape[1:]:
            y, b = x, a
        self.emit("concatenate", [x, y], (x.shape[0] + y.shape[0], *x.shape[1:]), max(a, b))

    def index(self) -> None:
        v, b = self.sure(lambda s: len(s) > 0)
        axis = self.maker.choose(range(len(v.shape)))
        at = self.maker.choose([0, -1, *range(1, v.shape[axis] - 1)])
        self.emit("index", [v], v.shape[:axis] + v.shape[axis + 1 :], b, axis=axis, at=at)

    def pick(self) -> None:
        """A row whose number depends on a value."""
        v, b = self.sure(lambda s: len(s) > 0 and s[0] > 1)
        if v.shape[0] < 2:
            v, b = self.constant((3,))
        p, _ = self.sure()
        self.emit("pick", [v, p], v.shape[1:], b, threshold=self.maker.choose(THRESHOLDS))

    # -- equations that hold programs ----------------------------------------------------------------------------------

    def body(
        self, inputs: Sequence[tuple[Shape, float]], outputs: Callable[[Scope], Any], closed: bool = False
    ) -> tuple[Program, list[float]]:
        """A program inside this one; a closed one sees its inputs only."""
        m = self.maker
        made = [(m.new(s), b) for s, b in inputs]
        around = [] if closed else [*self.outer, *self.known]
        return m.program(made, around, m.number(1, 4), self.depth + 1, outputs)

    def call(self, kind: str, closed: bool = False, **options: Any) -> None:
        args = self.some(1, 2)
        if closed and self.maker.number(0, 2):  # a value from far away, which may be the same for all lanes of a batch
            args.append(self.maker.choose((self.outer or self.known)[:3]))
        body, bounds = self.body([(v.shape, b) for v, b in args], lambda scope: scope.last(2), closed)
        self.emit_many(kind, [v for v, _ in args], [v.shape for v in body.outputs], bounds, options, [body])

    def jit(self) -> None:
        self.call("jit")

    def remat(self) -> None:
        self.call("remat", policy=self.maker.choose(POLICIES))

    def custom_jvp(self) -> None:
        self.call("custom_jvp", closed=True)

    def custom_vjp(self) -> None:
        self.call("custom_vjp", closed=True)

    def vmap(self) -> None:
        first, b = self.sure(lambda s: len(s) > 0)
        axes = [self.maker.choose(range(len(first.shape)))]
        size = first.shape[axes[0]]
        args = [(first, b), *self.some(0, 1)]
        for v, _ in args[1:]:
            axes.append(self.maker.choose([None, *[i for i, n in enumerate(v.shape) if n == size]]))
        lanes = [(v.shape if a is None else v.shape[:a] + v.shape[a + 1 :], b) for (v, b), a in zip(args, axes)]
        body, bounds = self.body(lanes, lambda s: [x for x in s.last(2) if len(x[0].shape) < 2] or [s.fitted(())])
        out_axes = tuple([self.maker.choose(range(len(v.shape) + 1)) for v in body.outputs])
        shapes = [(*v.shape[:a], size, *v.shape[a:]) for v, a in zip(body.outputs, out_axes)]
        options = {"in_axes": tuple(axes), "out_axes": out_axes, "size": size}
        self.emit_many("vmap", [v for v, _ in args], shapes, bounds, options, [body])

    def choice(self, kind: str, thresholds: tuple[float, ...]) -> None:
        p, _ = self.sure()
        args = self.some(0, 2)
        inputs = [(v.shape, b) for v, b in args]
        first, bounds = self.body(inputs, lambda scope: scope.last(2))
        bodies, rows = [first], [bounds]
        for _ in thresholds:
            made, more = self.body(inputs, lambda s: [s.fitted(v.shape) for v in first.outputs])
            bodies.append(made)
            rows.append(more)
        shapes = [v.shape for v in first.outputs]
        options = {"thresholds": thresholds}
        self.emit_many(kind, [p, *[v for v, _ in args]], shapes, [max(b) for b in zip(*rows)], options, bodies)

    def cond(self) -> None:
        self.choice("cond", (self.maker.choose(THRESHOLDS),))

    def switch(self) -> None:
        self.choice("switch", THRESHOLDS[1:3])

    def loop(self, kind: str, counted: bool, slices: Sequence[Any], stacks: int, options: dict[str, Any]) -> None:
        """A loop of any kind: a body from a number if there is one, what is carried, and slices."""
        length = options.get("length", 0)
        carry = [(v, max(b, LOOPED)) for v, b in self.some(1, 2)]
        inputs = [((), 1.0)] if counted else []
        inputs += [*[(v.shape, b) for v, b in carry], *[(v.shape[1:], b) for v, b in slices]]

        def outputs(scope: Scope) -> list[tuple[Var, float]]:
            found = [scope.fitted(v.shape, b) for v, b in carry]
            rest = [scope.sure(lambda s: len(s) < 2) for _ in range(stacks)]
            return [*found, *rest]

        body, bounds = self.body(inputs, outputs)
        shapes = [v.shape for v, _ in carry] + [(length, *v.shape) for v in body.outputs[len(carry) :]]
        limits = [b for _, b in carry] + bounds[len(carry) :]
        options = {**options, "carried": len(carry)}
        self.emit_many(kind, [v for v, _ in (*carry, *slices)], shapes, limits, options, [body])

    def scan(self) -> None:
        m = self.maker
        slices = []
        if first := self.any(lambda s: len(s) > 0) if m.number(0, 3) else None:
            slices = [first, *self.more(first)]
        stacks = m.number(0, 2)
        length = slices[0][0].shape[0] if slices else m.number(1 if stacks else 0, 3)
        options = {"length": length, "reverse": m.flag(), "unroll": m.choose([1, 1, 2, True]), "counted": m.flag()}
        self.loop("scan", options["counted"], slices, stacks, options)

    def more(self, first: tuple[Var, float]) -> list[tuple[Var, float]]:
        found = self.any(lambda s: s[:1] == first[0].shape[:1]) if self.maker.flag() else None
        return [found] if found else []

    def fori_loop(self) -> None:
        low = self.maker.choose([0, 1, -2])
        high = low + self.maker.choose([2, 1, 3, 0])
        self.loop("fori_loop", True, [], 0, {"low": low, "high": high, "unroll": self.maker.choose([1, 1, 2])})

    def ending(self) -> dict[str, Any]:
        """When a loop ends: after so many steps, two more if the mean of a value that it closes over is above a
        threshold, or if the mean of what it carries is.
        """
        m = self.maker
        # an input is as often below a threshold as above it, so the lanes of a batch end at different steps
        more = m.choose([*[v for v, _ in (*self.outer, *self.known)][:3], self.sure()[0]]) if m.number(0, 3) else None
        return {"steps": m.number(1, 2), "threshold": m.choose(THRESHOLDS), "more": more, "stops": not m.number(0, 2)}

    def bounded_while(self) -> None:
        self.loop("bounded_while", True, [], 0, {**self.ending(), "most": self.maker.number(1, 4)})

    def while_loop(self) -> None:
        self.loop("while_loop", True, [], 0, self.ending())


def closes(program: Program) -> bool:
    """Whether a program uses variables of the programs around it."""
    own = set(program.inputs) | {v for e in program.all_equations() for v in e.results}
    own |= {v for e in program.all_equations() for body in e.bodies for v in body.inputs}
    used = [*program.outputs]
    for e in program.all_equations():
        used += [
            *e.operands,
            *[v for body in e.bodies for v in body.outputs],
            *[x for x in [e.options.get("more")] if x],
        ]
    return not own.issuperset(used)


def _fits(shape: Shape | None) -> bool:
    return shape is not None and len(shape) <= 2


def random_program(choices: Choices) -> Program:
    """A program of up to 30 equations. One with an unbounded loop has no reverse-mode rule in it."""
    size = choices.of((6, 8, 4, 10, 12, 8, 20))
    is_forward = choices.below(6) == 5
    without = ("custom_vjp",) if is_forward else ("while_loop",)
    maker = Maker(
        choices, size, [k for k in (*NESTED, "scan", "vmap", "scan", "custom_vjp", "while_loop") if k not in without]
    )
    inputs = [(maker.new(maker.choose(SHAPES)), 1.5) for _ in range(maker.choose((1, 2, 3, 2)))]

    def outputs(scope: Scope) -> list[tuple[Var, float]]:
        if is_forward and not any(e.kind == "while_loop" for e in scope.equations):
            scope.while_loop()
        return scope.last(3)

    return maker.program(inputs, [], size, 0, outputs)[0]
