"""`jit`: traces a function once for each signature, compiles it, and launches it with as little Python as possible.

`jit_calls.py` handles calls. The library's own functions behave like `jit(inline=True)`: on arrays, a call is one
launch; under a trace, their equations are inlined.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, MethodType
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from atled.core import tree_registry
from atled.core.array import describe
from atled.core.program import Program
from atled.core.trace import Axis, state
from atled.engine import client
from atled.staging.aot import TracedFunction, chosen_options
from atled.staging.jit_calls import Shared, shared_for, trace
from atled.staging.jit_signature import Options, ShardingTree
from atled.staging.recompilation import Compile


def _tuple(x: Any, kind: type) -> tuple[Any, ...]:
    return () if x is None else (x,) if isinstance(x, kind) else tuple(x)


_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)


class LibraryFunction(Protocol[_P, _R]):
    """The type of a `library_function` for type checkers: it has the function's parameters and result."""

    __name__: str

    @property
    def __wrapped__(self) -> Callable[_P, _R]: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...


class Jitted(LibraryFunction[_P, _R], Protocol[_P, _R]):
    """The type of a jitted function for type checkers: it also has methods such as `lower`."""

    compiles: list[Compile]

    def trace(self, *args: Any, **kwargs: Any) -> TracedFunction: ...
    def lower(self, *args: Any, **kwargs: Any) -> Any: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def clear_cache(self) -> None: ...


@overload
def jit(
    fun: Callable[_P, _R],
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    inline: bool = False,
    device: Any = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    keep_unused: bool = False,
    max_compiles: int | None = None,
    backend: str | None = None,
    compiler_options: dict[str, Any] | None = None,
) -> Jitted[_P, _R]: ...
@overload
def jit(
    fun: None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    inline: bool = False,
    device: Any = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    keep_unused: bool = False,
    max_compiles: int | None = None,
    backend: str | None = None,
    compiler_options: dict[str, Any] | None = None,
) -> Callable[[Callable[_P, _R]], Jitted[_P, _R]]: ...
def jit(
    fun: Any = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    inline: bool = False,
    device: Any = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    keep_unused: bool = False,
    max_compiles: int | None = None,
    backend: str | None = None,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compile a function with XLA, for each combination of argument types that it is called with.

    The function runs once on tracers to record its ops; later calls run the compiled program. Python side effects
    happen only while tracing. Arrays that the function closes over become inputs of the program.

    Args:
        static_argnums, static_argnames: arguments that are Python values. The function is compiled for each value.
        donate_argnums, donate_argnames: arguments whose buffers the results may reuse; they must not be used again.
        inline: under a trace, whether to inline the function's equations instead of recording a call.
        device: the device to run on; by default the device of the arguments.
        in_shardings, out_shardings: a sharding, a `PartitionSpec` for the current mesh, or None, which keeps an
            argument's sharding and lets the compiler choose a result's; or trees of these.
        keep_unused: whether to pass unused arguments to the compiled program. By default, unused arguments are
            neither moved nor donated, and may be on another device.
        max_compiles: the number of compilations after which another one raises an error that names what changed.
        backend: the name of a platform, on whose first device to run.
        compiler_options: XLA options for this function, by name, such as {"xla_cpu_enable_fast_math": False}. The
            options also apply to its derivatives and batched forms. Calling the function inside another `jit` raises.
            XLA_FLAGS sets options for the process.

    From the second compilation on, the logger `atled` reports which argument changed, and the compile time. The jitted
    function has the methods `.lower(...)`, `.trace(...)`, `.eval_shape(...)` and `.clear_cache()`; `.compiles` lists
    the signatures that it was compiled for.

    >>> import atled.numpy as jnp
    >>> @jit
    ... def f(x):
    ...     return jnp.sin(x) ** 2 + jnp.cos(x) ** 2
    >>> round(float(f(0.3)), 4), len(f.compiles)
    (1.0, 1)
    """
    if backend is not None:
        device = device or client.devices(backend)[0]
    options = Options(
        _tuple(static_argnums, int),
        _tuple(static_argnames, str),
        _tuple(donate_argnums, int),
        _tuple(donate_argnames, str),
        is_inline=inline,
        device=device,
        keeps_unused=keep_unused,
        max_compiles=max_compiles,
        in_shardings=None if in_shardings is None else ShardingTree(in_shardings),
        out_shardings=None if out_shardings is None else ShardingTree(out_shardings),
        compiler_options=chosen_options("jit", compiler_options),
    )
    if fun is None:
        return lambda g: _jitted(g, options)
    if not callable(fun):
        raise TypeError(f"jit: expected a function; got {describe(fun)}.")
    return _jitted(fun, options)


def _jitted(f: Any, options: Options) -> Any:
    """Jit a function. A model, or the model of a method, becomes an argument, so its arrays may change."""
    owner, function = (f.__self__, f.__func__) if type(f) is MethodType else (f, type(f).__call__)
    node = tree_registry.nodes.get(type(owner))
    if node is None or node.code is None:
        return _wrapped(f, shared_for(f, options))
    shifted = options._replace(
        static_argnums=tuple([n + (n >= 0) for n in options.static_argnums]),
        donate_argnums=tuple([n + (n >= 0) for n in options.donate_argnums]),
        in_shardings=None if options.in_shardings is None else options.in_shardings.after(None),
    )
    inner = _wrapped(function, shared_for(function, shifted))

    def call(*args: Any, **kwargs: Any) -> Any:
        return inner(owner, *args, **kwargs)

    jitted: Any = call
    jitted.__name__ = jitted.__qualname__ = getattr(f, "__name__", type(f).__name__)
    jitted.__doc__, jitted.__module__, jitted.__wrapped__ = f.__doc__, f.__module__, f
    jitted.compiles, jitted.clear_cache, jitted.owner = inner.compiles, inner.clear_cache, owner
    for name in ("trace", "lower", "eval_shape"):
        setattr(jitted, name, functools.partial(getattr(inner, name), owner))
    return jitted


@overload
def library_function(
    f: Callable[_P, _R], *, static: Sequence[str] = (), donate: Sequence[str] = (), is_thin: bool = False
) -> LibraryFunction[_P, _R]: ...
@overload
def library_function(
    f: None = None, *, static: Sequence[str] = (), donate: Sequence[str] = (), is_thin: bool = False
) -> Callable[[Callable[_P, _R]], LibraryFunction[_P, _R]]: ...
def library_function(
    f: Any = None, *, static: Sequence[str] = (), donate: Sequence[str] = (), is_thin: bool = False
) -> Any:
    """Decorate a function of the library: on arrays, a call is one launch; under a trace, its equations are inlined.

    A function is traced once for each signature. A function of hardly more than one op (`is_thin`) runs its Python
    code instead of being inlined. `static` and `donate` are names of parameters.
    """
    if f is None:
        return lambda g: library_function(g, static=static, donate=donate, is_thin=is_thin)
    code = f.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    out_at = names.index("out") if "out" in names else None
    static, donate = tuple(static), tuple(donate)
    options = Options(static_argnames=static, donate_argnames=donate, is_library=True, is_thin=is_thin, out_at=out_at)
    return _wrapped(f, Shared(f, options))


def _wrapped(f: Callable[..., Any], shared: Shared) -> Any:
    call: Any = FunctionType(shared.code, shared.namespace, str(getattr(f, "__name__", "f")))
    shared.wrappers.add(call)
    shared.dress(call)
    call.__qualname__ = str(getattr(f, "__qualname__", call.__name__))
    call.__doc__ = getattr(f, "__doc__", None)
    call.__module__ = getattr(f, "__module__", __name__)
    call.__wrapped__ = f
    if not shared.options.is_library:
        # these hold f, to which a cached `shared` has only a weak reference
        call.trace = lambda *args, **kwargs: trace(f, shared, args, kwargs)
        call.lower = lambda *args, **kwargs: trace(f, shared, args, kwargs).lower()
        call.eval_shape = lambda *args, **kwargs: trace(f, shared, args, kwargs).out_info
        call.compiles = shared.compiles
        call.clear_cache = shared.clear
    return call


# -- tracing without compilation --------------------------------------------------------------------------------------


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of a function's results, found by tracing, without computing them.

    >>> from atled import ShapeDtypeStruct
    >>> eval_shape(lambda x: x @ x, ShapeDtypeStruct((10**6, 10**6), "float32"))
    ShapeDtypeStruct(shape=(1000000, 1000000), dtype=float32)
    """
    return trace(fun, Shared(fun, Options()), args, kwargs).out_info


def make_program(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] | None = None,
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that returns the program of `fun` for given arguments, including dead code.

    Args:
        static_argnums: positions of arguments that are Python values.
        axis_env: pairs of name and size, of named axes that collectives in `fun` may use.
        return_shape: whether to also return what `eval_shape` returns.

    >>> import atled.numpy as jnp
    >>> print(make_program(lambda x: jnp.sin(x) * 2.0)(jnp.ones(3)))  # doctest: +ELLIPSIS
    program <lambda>(a: f32[3]) {
      b: f32[3] = sin a...
      c: f32[3] = mul b 2.0:f32[]...
      return c
    }
    """

    def make(*args: Any, **kwargs: Any) -> Any:
        shared = Shared(fun, Options(static_argnums=_tuple(static_argnums, int), is_shown=True))
        before, state.axes = state.axes, {**state.axes, **{n: Axis(n, k, None) for n, k in axis_env or ()}}
        try:
            staged = trace(fun, shared, args, kwargs)
        finally:
            state.axes = before
        p = staged.program
        program = Program(p.inputs, p.equations, p.outputs, p.name, p.input_names)  # a copy that shares no cached state
        program.consts = list(staged._traced.captured)
        return (program, staged.out_info) if return_shape else program

    return make
