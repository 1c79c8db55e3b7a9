"""Debugging of compiled code at run time: `print`, `callback`, `breakpoint`; and leaked tracers: `checking_leaks`."""

from __future__ import annotations

import builtins
import cmd
import contextlib
import functools
import gc
import linecache
import logging
import string
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from atled.core import errors, leaked_tracer_holders, source
from atled.core.array import Array
from atled.core.trace import Tracer
from atled.higher_order.callbacks import effect_callback

__all__ = [
    "breakpoint", "callback", "check_tracer_leaks", "checking_leaks",
    "inspect_array_sharding", "log", "print", "visualize_array_sharding", "visualize_sharding",
]  # fmt: skip
__dir__ = __all__.copy


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with the run-time values of its arguments, for its side effect.

    Calls run in program order, whether `ordered` or not; under `vmap`, there is one call per example. The function gets
    global arrays, so `partitioned=True` raises. `callback(ordered=True)(f, x)` is `callback(f, x, ordered=True)`.

    >>> import atled
    >>> seen = []
    >>> f = atled.jit(lambda x: (callback(lambda v: seen.append(float(v)), x), x * 2.0)[1])
    >>> _ = f(3.0), atled.effects_barrier()
    >>> seen
    [3.0]
    """
    _whole("callback", partitioned)
    if callback is None:
        return lambda f, *given, **named: effect_callback(f, given, named, "debug.callback", ordered)
    return effect_callback(callback, args, kwargs, "debug.callback", ordered)


def _whole(name: str, partitioned: bool) -> None:
    if partitioned:
        raise NotImplementedError(
            f"debug.{name}: partitioned=True is not supported; the callback gets global arrays.\n  try: call it "
            f"inside shard_map, once per shard."
        )


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Print run-time values: `fmt` is a format string, with `{}` and `{name}` for the arguments.

    The format is checked at trace time or, with `skip_format_check`, only when the values are printed.
    `print(ordered=True)(fmt, x)` is `print(fmt, x, ordered=True)`.

    >>> import atled
    >>> f = atled.jit(lambda x: (print("x = {x}, twice {}", x * 2.0, x=x), x)[1])
    >>> _ = f(1.5), atled.effects_barrier()
    x = 1.5, twice 3.0
    """
    _whole("print", partitioned)
    if fmt is None:
        return functools.partial(print, ordered=ordered, skip_format_check=skip_format_check)
    if not skip_format_check:
        _check_format(fmt, args, kwargs)

    def show(*found: Any, **named: Any) -> None:
        builtins.print(fmt.format(*found, **named), flush=True)

    effect_callback(show, args, kwargs, "debug.print", ordered)


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Like `print`, but to the logger `atled` at level INFO.

    >>> import atled, logging
    >>> log("x = {}", 1.5)
    """
    _whole("log", partitioned)
    if fmt is None:
        return functools.partial(log, ordered=ordered, skip_format_check=skip_format_check)
    if not skip_format_check:
        _check_format(fmt, args, kwargs)

    def show(*found: Any, **named: Any) -> None:
        logging.getLogger("atled").info(fmt.format(*found, **named))

    effect_callback(show, args, kwargs, "debug.log", ordered)


def visualize_sharding(shape: Sequence[int], sharding: Any, *, use_color: bool = True, **kwargs: Any) -> None:
    """Print which slices of an array of a given shape are on which device, as `inspect.sharding` does.

    JAX's other arguments, such as `scale`, `min_width` and `color_map`, have no effect.

    >>> import atled
    >>> visualize_sharding((4,), atled.sharding.SingleDeviceSharding(atled.devices()[0]), use_color=False)
    [4]: whole on device 0
    ┌─────┐
    │  0  │
    └─────┘
    """
    from atled import inspect

    builtins.print(inspect.sharding(sharding, shape, color=None if use_color else False))


def visualize_array_sharding(arr: Array, **kwargs: Any) -> None:
    """Print which slices of an array are on which device, as `inspect.sharding` does.

    >>> import atled.numpy as jnp
    >>> visualize_array_sharding(jnp.arange(4), use_color=False)
    [4]: whole on device 0
    ┌─────┐
    │  0  │
    └─────┘
    """

    def show(sharding: Any) -> None:
        visualize_sharding(arr.shape, sharding, **kwargs)

    inspect_array_sharding(arr, callback=show)


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Call a function with the sharding of an array. Raises for traced arrays, whose sharding is not known.

    >>> import atled.numpy as jnp
    >>> inspect_array_sharding(jnp.arange(4), callback=lambda s: builtins.print(s.num_devices))
    1
    """
    if isinstance(value, Tracer):
        raise NotImplementedError(
            errors.explained(
                "debug.inspect_array_sharding: an array in compiled code has no sharding yet.",
                "f.lower(...).compile().output_shardings, or inspect.collectives.",
            )
        )
    callback(value.sharding)


class _Anything(string.Formatter):
    """A formatter that ignores values; it checks only that the arguments exist."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value


def _check_format(fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    try:
        _Anything().vformat(fmt, args, kwargs)
    except (IndexError, KeyError) as error:
        says = f"debug.print: the format {fmt!r} needs the argument {error}, which was not given."
        raise ValueError(errors.explained(says)) from None


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    **kwargs: Any,
) -> None:
    """Stop here at run time, and open a debugger with the run-time values of this function's variables.

    Works under `jit`, `vmap`, `grad` and in loops. `c` continues, `q` ends the program, `h` lists all commands. The
    frame is always the caller's; JAX's arguments for frames, such as `num_frames`, have no effect.

    >>> import atled, io
    >>> out = io.StringIO()
    >>> @atled.jit
    ... def f(x):
    ...     y = x + 1
    ...     breakpoint(stdin=io.StringIO("p y"), stdout=out)  # without these, the terminal
    ...     return y * 2
    >>> f(3).block_until_ready()
    Array(8, dtype=int32, weak_type=True)
    >>> [line for line in out.getvalue().splitlines() if "array" in line]
    ['(atled) array(4, dtype=int32)']
    """
    del filter_frames, num_frames, ordered, token, kwargs
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: backend must be 'cli'; got {backend!r}.")
    frame: Any = sys._getframe(1)
    while frame is not None and source.is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return
    names = dict(frame.f_locals)
    arrays = {k: v for k, v in names.items() if isinstance(v, Array)}
    rest = {**frame.f_globals, **{k: v for k, v in names.items() if k not in arrays}}
    place = (frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno)

    def stop(**found: Any) -> None:
        Console(place, found, rest, stdin, stdout).cmdloop()

    effect_callback(stop, (), arrays, "debug.breakpoint")


class Console(cmd.Cmd):
    """The debugger of `breakpoint`: it evaluates expressions with the variables at the breakpoint."""

    prompt = "(atled) "

    def __init__(
        self, place: tuple[str, str, int], found: dict[str, Any], rest: dict[str, Any], stdin: Any, stdout: Any
    ):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.place, self.found, self.names = place, found, {**rest, **found}
        function, file, line = place
        self.intro = f"stopped in {function}, {file}:{line}\n  {linecache.getline(file, line).strip()}\n" + "".join(
            [f"  {name}: {value.dtype}{list(value.shape)}\n" for name, value in found.items()]
        )

    def default(self, line: str) -> None:
        if line == "EOF":
            self.stdout.write("\n")
            return None
        try:
            self.stdout.write(f"{eval(line, self.names)!r}\n")
        except SyntaxError:
            try:
                exec(line, self.names)
            except Exception as error:
                self.stdout.write(f"*** {type(error).__name__}: {error}\n")
        except Exception as error:
            self.stdout.write(f"*** {type(error).__name__}: {error}\n")

    def onecmd(self, line: str) -> bool:
        return True if line in ("EOF", "c", "continue") else bool(super().onecmd(line))

    def emptyline(self) -> bool:
        return False

    def do_p(self, line: str) -> None:
        """p expression: print the value of an expression."""
        self.default(line)

    def do_l(self, line: str) -> None:
        """l: list the source around this line."""
        _, file, at = self.place
        for n in range(max(at - 5, 1), at + 6):
            text = linecache.getline(file, n)
            if text:
                self.stdout.write(f"{'->' if n == at else '  '} {n:4} {text}")

    def do_a(self, line: str) -> None:
        """a: print all array variables of the function."""
        for name, value in self.found.items():
            self.stdout.write(f"{name} = {value!r}\n")

    def do_c(self, line: str) -> bool:
        """c: continue the program."""
        return True

    def do_q(self, line: str) -> None:
        """q: end the program."""
        raise KeyboardInterrupt("debug.breakpoint: ended by q")


def _closed_tracers() -> list[Tracer]:
    """The leaked tracers: tracers that are alive after their transform has ended."""
    gc.collect()
    # type(), because `isinstance` reads `__class__`, which may run a user's code
    return [x for x in gc.get_objects() if issubclass(type(x), Tracer) and not x.interpreter.is_open]


def check_tracer_leaks(new_val: bool = True) -> Any:
    """`checking_leaks()` if `new_val`, else a `with` block that does nothing.

    >>> import atled
    >>> with check_tracer_leaks():
    ...     y = atled.jit(lambda x: x * 2)(1.0)
    """
    return checking_leaks() if new_val else contextlib.nullcontext()


@contextlib.contextmanager
def checking_leaks() -> Iterator[None]:
    """A `with` block that raises UnexpectedTracerError at its end if tracers created in it are still alive.

    Using a leaked tracer raises in any case; this block also finds unused ones. The block is slow, because it scans all
    Python objects.

    >>> import atled
    >>> with checking_leaks():
    ...     y = atled.jit(lambda x: x * 2)(1.0)
    """
    before = {id(x) for x in _closed_tracers()}
    yield
    alive = [x for x in _closed_tracers() if id(x) not in before]
    rows = [(x, leaked_tracer_holders.holder(x)) for x in alive]
    rows = [(x, holder) for x, holder in rows if holder]
    if rows:
        lines = [f"\n    {x.type} of {x.interpreter.transform}, kept in {holder}" for x, holder in rows[:8]]
        raise errors.UnexpectedTracerError(
            f"leaked values: {len(rows)} traced values are still held after their transformation has ended."
            + "".join(lines)
            + "\n  try: return the values from the transformed function instead of storing them outside."
        )
