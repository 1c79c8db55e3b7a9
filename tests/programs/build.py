"""A random program as a function of atled: written down as Python, and run. What a failure prints is what ran."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from language import Equation, Program, Var

HEADER = """\
import numpy as np

import atled
import atled.numpy as jnp
from atled import lax
"""

FIRST_ORDER: dict[str, Callable[..., str]] = {
    "sin": lambda e, x: f"jnp.sin({x})",
    "cos": lambda e, x: f"jnp.cos({x})",
    "tanh": lambda e, x: f"jnp.tanh({x})",
    "exp_tanh": lambda e, x: f"jnp.exp(jnp.tanh({x}))",
    "inverse": lambda e, x: f"1 / (2 + {x} ** 2)",
    "scale": lambda e, x: f"0.5 * {x} + 0.25",
    "constant": lambda e: _constant(e),
    "add": lambda e, x, y: f"{x} + {y}",
    "sub": lambda e, x, y: f"{x} - {y}",
    "mul": lambda e, x, y: f"{x} * {y}",
    "div": lambda e, x, y: f"{x} / (2 + {y} * {y})",
    "maximum": lambda e, x, y: f"jnp.maximum({x}, {y} + 0.375)",
    "where": lambda e, p, x, y: f"jnp.where({p} > {e.options['threshold']}, {x}, {y})",
    "sum": lambda e, x: f"jnp.sum({x}, axis={e.options['axis']})",
    "mean": lambda e, x: f"jnp.mean({x}, axis={e.options['axis']})",
    "max": lambda e, x: _max(e, x),
    "cumsum": lambda e, x: f"jnp.cumsum({x}, axis={e.options['axis']})",
    "matmul": lambda e, x, y: f"{x} @ {y}",
    "broadcast": lambda e, x: f"jnp.broadcast_to({x}, {e.results[0].shape})",
    "reshape": lambda e, x: f"jnp.reshape({x}, {e.results[0].shape})",
    "transpose": lambda e, x: f"{x}.T",
    "slice": lambda e, x: f"{x}[{':'.join('' if n is None else str(n) for n in e.options['cut'])}]",
    "concatenate": lambda e, x, y: f"jnp.concatenate([{x}, {y}])",
    "index": lambda e, x: f"{x}[{':, ' * e.options['axis']}{e.options['at']}]",
    "pick": lambda e, x, p: f"{x}[jnp.int32(jnp.mean({p}) > {e.options['threshold']})]",
}


def _constant(e: Equation) -> str:
    shape = e.results[0].shape
    count = 1
    for n in shape:
        count *= n
    return f"jnp.asarray(np.cos(np.arange({count}) + {e.options['phase']}).reshape({shape}))"


def _max(e: Equation, x: Var) -> str:
    axis = e.options["axis"]
    spread = "[:, None]" if axis + 1 < len(x.shape) else ""
    return f"jnp.max({x} + 0.31 * np.arange({x.shape[axis]}){spread}, axis={axis})"


class Writer:
    """Lines of Python, and names that are still free."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers = itertools.count()

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def function(
        self, depth: int, program: Program, name: str, given: str | None = None, back: Callable[..., str] | None = None
    ) -> str:
        """A function of a program. `given` are its parameters as Python, if they are not simply the inputs."""
        types = ", ".join([f"f64[{','.join(map(str, v.shape))}]" for v in program.inputs])
        self.line(depth, f"def {name}({listed(program.inputs) if given is None else given}):  # {types}")
        if given is not None:
            self.unpack(depth + 1, program, given)
        for e in program.equations:
            self.equation(depth + 1, e)
        self.line(depth + 1, "return " + (back or (lambda outputs: tupled(outputs)))(program.outputs))
        self.line(depth, "")
        return name

    def unpack(self, depth: int, program: Program, given: str) -> None:
        """Loops give a number i, what they carry, and slices."""
        count = len(program.inputs)
        if given.startswith(("i", "carry_i")):
            if given != "i, carry":
                self.line(depth, "i, carry = carry_i")
            self.line(depth, f'{program.inputs[0]} = jnp.asarray(i, "float64") * 0.25')
            count -= 1
        names = program.inputs[len(program.inputs) - count :]
        if given.endswith("xs"):
            self.line(depth, f"{tupled(names)} = (*carry, *xs)")
        else:
            self.line(depth, f"{tupled(names)} = carry")

    def equation(self, depth: int, e: Equation) -> None:
        if e.bodies:
            WRITE[e.kind](self, depth, e, tupled(e.results))
        else:
            self.line(depth, f"{e.results[0]} = {FIRST_ORDER[e.kind](e, *e.operands)}")

    def name(self, kind: str) -> str:
        return f"{kind}{next(self.numbers)}"


def listed(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names))


def tupled(names: Sequence[Any]) -> str:
    return f"({listed(names)}{',' if len(names) == 1 else ''})"


def _jit(w: Writer, depth: int, e: Equation, results: str) -> None:
    body = w.function(depth, e.bodies[0], w.name("inner"))
    w.line(depth, f"{results} = atled.jit({body})({listed(e.operands)})")


def policy(name: str | None) -> str:
    """The keyword argument of `remat`, or nothing."""
    return "" if name is None else f", policy=atled.checkpoint_policies.{name}"


def _remat(w: Writer, depth: int, e: Equation, results: str) -> None:
    body = w.function(depth, e.bodies[0], w.name("again"))
    w.line(depth, f"{results} = atled.remat({body}{policy(e.options['policy'])})({listed(e.operands)})")


def _vmap(w: Writer, depth: int, e: Equation, results: str) -> None:
    body = w.function(depth, e.bodies[0], w.name("lane"))
    axes = f"in_axes={e.options['in_axes']}, out_axes={e.options['out_axes']}"
    w.line(depth, f"{results} = atled.vmap({body}, {axes})({listed(e.operands)})")


def _cond(w: Writer, depth: int, e: Equation, results: str) -> None:
    no, yes = [w.function(depth, b, w.name(n)) for b, n in zip(e.bodies, ("no", "yes"))]
    p, *args = e.operands
    predicate = f"jnp.mean({p}) > {e.options['thresholds'][0]}"
    w.line(depth, f"{results} = lax.cond({listed([predicate, yes, no, *args])})")


def _switch(w: Writer, depth: int, e: Equation, results: str) -> None:
    branches = [w.function(depth, b, w.name("branch")) for b in e.bodies]
    p, *args = e.operands
    low, high = e.options["thresholds"]
    number = f"jnp.int32(jnp.mean({p}) > {low}) + jnp.int32(jnp.mean({p}) > {high})"
    w.line(depth, f"{results} = lax.switch({listed([number, f'[{listed(branches)}]', *args])})")


def _scan(w: Writer, depth: int, e: Equation, results: str) -> None:
    o, count = e.options, e.options["carried"]

    def back(outputs: Sequence[Var]) -> str:
        carry = tupled(outputs[:count])
        return f"({f'(i + 1, {carry})' if o['counted'] else carry}, {tupled(outputs[count:])})"

    body = w.function(depth, e.bodies[0], w.name("step"), "carry_i, xs" if o["counted"] else "carry, xs", back)
    start, xs = tupled(e.operands[:count]), tupled(e.operands[count:])
    start = f"(np.int32(0), {start})" if o["counted"] else start
    keywords = f"length={o['length']}, reverse={o['reverse']}, unroll={o['unroll']}"
    last = tupled(e.results[:count])
    last = f"(_, {last})" if o["counted"] else last
    w.line(depth, f"{last}, {tupled(e.results[count:])} = lax.scan({body}, {start}, {xs}, {keywords})")


def _fori_loop(w: Writer, depth: int, e: Equation, results: str) -> None:
    o = e.options
    body = w.function(depth, e.bodies[0], w.name("step"), "i, carry")
    w.line(
        depth,
        f"{results} = lax.fori_loop({o['low']}, {o['high']}, {body}, {tupled(e.operands)}, unroll={o['unroll']})",
    )


def _while(w: Writer, depth: int, e: Equation, results: str) -> None:
    o = e.options
    body = w.function(depth, e.bodies[0], w.name("step"), "carry_i", lambda outputs: f"(i + 1, {tupled(outputs)})")
    goes_on = w.name("goes_on")
    w.line(depth, f"def {goes_on}(carry_i):")
    more = "" if o["more"] is None else f" + 2 * jnp.int32(jnp.mean({o['more']}) > {o['threshold']})"
    stops = f" & ~(jnp.mean(carry_i[1][0]) > {o['threshold']})" if o["stops"] else ""
    w.line(depth + 1, f"return (carry_i[0] < {o['steps']}{more}){stops}")
    w.line(depth, "")
    most = f", max_steps={o['most']}" if "most" in o else ""
    start = f"(np.int32(0), {tupled(e.operands)})"
    w.line(depth, f"_, {results} = lax.while_loop({goes_on}, {body}, {start}{most})")


def _custom_jvp(w: Writer, depth: int, e: Equation, results: str) -> None:
    body = w.function(depth, e.bodies[0], w.name("plain"))
    own = w.name("own")
    w.line(depth, f"{own} = atled.custom_jvp({body})")
    w.line(depth, f"{own}.defjvp(lambda primals, tangents: atled.jvp({body}, primals, tangents))")
    w.line(depth, f"{results} = {own}({listed(e.operands)})")


def _custom_vjp(w: Writer, depth: int, e: Equation, results: str) -> None:
    body = w.function(depth, e.bodies[0], w.name("plain"))
    own = w.name("own")
    w.line(depth, f"{own} = atled.custom_vjp({body})")
    # the result comes from vjp, so that forward mode over this rule does not meet a reverse-mode rule in the body
    w.line(depth, f"{own}.defvjp(")
    w.line(depth + 1, f'lambda *args: (atled.vjp({body}, *args)[0], {{"args": args, "none": None}}),')
    w.line(depth + 1, f'lambda kept, g: atled.vjp({body}, *kept["args"])[1](g),')
    w.line(depth, ")")
    w.line(depth, f"{results} = {own}({listed(e.operands)})")


WRITE: dict[str, Callable[[Writer, int, Equation, str], None]] = {
    "jit": _jit, "remat": _remat, "vmap": _vmap, "cond": _cond, "switch": _switch, "scan": _scan,
    "fori_loop": _fori_loop, "bounded_while": _while, "while_loop": _while, "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
}  # fmt: skip


def text(program: Program) -> str:
    """The program as a Python function f, which returns a tuple."""
    w = Writer()
    w.function(0, program, "f")
    return "\n".join([line.rstrip() for line in w.lines if line.strip()]) + "\n"


def run(source: str) -> dict[str, Any]:
    """Run Python text; gives the names that it defines."""
    names: dict[str, Any] = {}
    exec(compile(source, "<random program>", "exec"), names)
    return names


def function(program: Program) -> Callable[..., tuple[Any, ...]]:
    """The program as a function of atled."""
    return run(HEADER + text(program))["f"]
