"""`jit`: a function traced once for each signature, compiled, and launched with as little Python as possible.

A call takes one of three paths. *Launch*: generated code (`launch.py`) runs the cached executable for the arguments.
*Trace*: under another transformation, the program becomes a `Call`, or is inlined if `inline`. *Slow*: new signatures
and errors. The library's own functions are `jit(inline=True)`: one launch when called on arrays, their equations when
traced.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, MethodType
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from atled.core import config, dtypes, errors, tree
from atled.core.array import Array, describe, type_of, unwrapped
from atled.core.config import scope
from atled.core.exact import Same, exact
from atled.core.program import Literal, Program, Recorder, evaluate, inline, record
from atled.core.sharding import current_mesh
from atled.core.trace import Axis, Tracer, bind, leaving, received, state
from atled.core.types import ArrayType
from atled.engine import client
from atled.engine.array import DeviceArray, as_array, bring, wrap
from atled.engine.eager import moved
from atled.engine.execute import EngineError, Executable, Spread, executable, on_pressure
from atled.higher_order.call import Call
from atled.higher_order.expectations import check_expectations
from atled.higher_order.keys import WeakIdentityDict, call_key, keeps, recordings
from atled.staging.ahead import Traced, TracedFunction, prepared, refuse_options
from atled.staging.compiles import Compile, limit, note, note_models
from atled.staging.launch import CLEAN, FIRST_CODE, MISS, NAMESPACE, Form, Site, donors, failure_of, taking
from atled.staging.signature import Arguments, Boxed, Options, Signature, leaf_names


class Shared:
    """Shared by all jits of one function with the same options: its traces, and its generated launch code.

    The functions that `jit` returns have `code` as their code and `namespace` as their globals; both change with calls
    of new signatures. Other threads may be running that code, so names are never removed from the namespace.
    """

    def __init__(self, f: Callable[..., Any], options: Options, is_anchored: bool = False) -> None:
        # weak: the entry of a function in `_by_function` must not keep it alive
        self._function: Callable[[], Any] = weakref.ref(f) if is_anchored else lambda: f
        self.options = options
        self.name = str(getattr(f, "__name__", type(f).__name__))
        self.signature = Signature(self._function, self.name, options)  # pyright: ignore[reportArgumentType]
        self.traces: dict[Any, Traced] = {}
        self.sites: dict[Any, Site] = {}
        self.met: set[Any] = set()  # signatures that were called once; a second call generates a site
        self.recent: dict[Any, list[Site]] = {}  # by number of arguments and keywords
        self.compiles: list[Compile] = []
        self.launched: set[Any] = set()  # programs and placements
        self.expected: weakref.WeakSet[Program] = weakref.WeakSet()  # whose range checks passed
        self.code = FIRST_CODE
        self.namespace: dict[str, Any] = {**NAMESPACE, "miss": functools.partial(_missed, self)}
        self.wrappers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.form: Form | None = None  # the parameters of the generated code, if there is any
        self.misses = 0
        with _lock:
            _all_shared.add(self)

    @property
    def f(self) -> Callable[..., Any]:
        """The function itself."""
        return self._function()

    def clear(self) -> None:
        """Drop all traces and the log of compilations."""
        self.forget()
        self.compiles.clear()

    def forget(self) -> None:
        """Forget every trace."""
        with _lock:
            self.traces, self.launched = {}, set()
            self.namespace["miss"] = functools.partial(_missed, self)  # identifies it in the keys of its callers
            self.forget_launches()

    def forget_launches(self) -> None:
        """Drop the executables of generated code."""
        with _lock:
            for site in self.sites.values():
                site.entries.clear()

    def install(self, code: Any) -> None:
        """Make generated code the code of the jitted functions."""
        with _lock:
            self.code = code
            for wrapper in self.wrappers:
                self.dress(wrapper)

    def dress(self, wrapper: Any) -> None:
        """Give a jitted function the installed code."""
        if self.form is not None:
            wrapper.__defaults__, wrapper.__kwdefaults__ = self.form.defaults, self.form.keyword_defaults
        wrapper.__code__ = self.code


_lock = threading.RLock()
_all_shared: weakref.WeakSet[Shared] = weakref.WeakSet()  # for clearing
_by_function = WeakIdentityDict()  # options to `Shared`, for each function object
_by_value: dict[Any, Traced] = {}  # traces by the cache key of the function (code and everything it reads); newest last
_TRACES_LIMIT = 4096
_SITES_LIMIT = 256


def _shared_for(f: Callable[..., Any], options: Options) -> Shared:
    """The state of a function object."""
    key = options._replace(device=Same(options.device))
    with _lock:
        table = _by_function.get(f)
        if table is None:
            table = {}
            if not _by_function.set(f, table):
                return Shared(f, options)
        found = table.get(key)
        if found is None:
            found = table[key] = Shared(f, options, True)
    return found


def clear_caches() -> None:
    """Drop all traces and all compiled programs in memory."""
    for shared in _everyone():
        shared.clear()
    _forget_equals()


def _forget_traces() -> None:
    for shared in _everyone():
        shared.forget()
    _forget_equals()


def _forget_launches() -> None:
    for shared in _everyone():
        shared.forget_launches()


def _everyone() -> list[Shared]:
    with _lock:
        return list(_all_shared)


def _forget_equals() -> None:
    with _lock:
        _by_value.clear()
    recordings.clear()


config.on_global_change.append(_forget_launches)
on_pressure.append(_forget_traces)
client.on_fork.append(_forget_launches)
client.on_reset.append(clear_caches)


# -- the slow path ---------------------------------------------------------------------------------------------------


def _missed(shared: Shared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that the installed code was not made for."""
    if shared.options.is_library:
        args, kwargs = tuple(map(unwrapped, args)), {name: unwrapped(x) for name, x in kwargs.items()}
    if shared.form is not None:
        args, kwargs = shared.form.sorted(args, kwargs)
    if not scope().off:
        for site in shared.recent.get((len(args), *kwargs), ())[-8:]:
            if site.run.__code__ is not shared.code:
                out = site.run(*args, **kwargs)
                if out is not MISS:
                    shared.misses += 1
                    if shared.misses % 16 == 0:
                        shared.install(site.run.__code__)
                    return out
    try:
        return _slow(shared, args, kwargs)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def _slow(shared: Shared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    options = shared.options
    if not scope().jit and not options.is_library:
        return shared.f(*args, **kwargs)
    if options.out_at is not None:
        refuse_out(shared.name, args[options.out_at] if len(args) > options.out_at else kwargs.get("out"))
    is_recording = type(state.base) is Recorder or state.base.is_watching
    if options.is_thin and (is_recording or any([isinstance(x, Tracer) for x in (*args, *kwargs.values())])):
        if options.static_argnames:
            args, kwargs = shared.signature.frozen(args, kwargs)
        return shared.f(*args, **kwargs)
    call = Arguments(shared.signature, args, kwargs)
    if is_recording or any([isinstance(x, Tracer) for x in call.leaves]):
        if options.is_library:
            return _splice(shared, call)
        types = call.types()
        traced = _trace(shared, call, types)
        given = [x if isinstance(x, Array) else as_array(x, t) for x, t in zip(call.leaves, types, strict=True)]
        operands = [*traced.captured, *given]
        if not scope().jit:
            out = evaluate(traced.program, operands)
        elif options.is_inline:
            out = _values(inline(traced.program, operands))
        else:
            out = list(bind(Call(traced.program), *operands))
        return traced.out_structure.unflatten(out)
    return _launch(shared, call)


def _splice(shared: Shared, call: Arguments) -> Any:
    """The result of a library function under a trace: its equations are inlined, with Python numbers as literals."""
    fixed = [(i, exact(x)) for i, x in enumerate(call.leaves) if type(x) in _NUMBERS]
    types = [None if type(x) in _NUMBERS else type_of(x) for x in call.leaves]
    traced = _trace(shared, call, types, tuple(fixed))
    if traced.notes:
        _say(traced.notes)
    operands = [*traced.captured, *[x for x, t in zip(call.leaves, types, strict=True) if t is not None]]
    if type(state.base) is Recorder or len(traced.program.equations) == 1:
        out = _values(inline(traced.program, operands))
    else:  # under grad or vmap without jit: still one launch
        out = bind(Call(traced.program), *operands)
    return traced.out_structure.unflatten(list(out))


def _values(out: list[Any]) -> list[Any]:
    """Results with literals converted to arrays."""
    return [as_array(x.value, x.type) if type(x) is Literal else x for x in out]


_NUMBERS = (int, float, complex, bool)


def _trace(shared: Shared, call: Arguments, types: Sequence[ArrayType | None], fixed: tuple[Any, ...] = ()) -> Traced:
    """The program of a call, traced if it is new. Leaves without a type are `fixed`: position and exact number."""
    here, traces = _trace_key(shared), shared.traces
    key = (call.structure, call.static_key, tuple(types), fixed, here)
    traced = traces.get(key)
    if traced is None:
        traced = _record(shared, call, types) if shared.options.is_library else _equal_or_new(shared, call, types, key)
        if len(traces) >= _TRACES_LIMIT:
            shared.forget()
        if here == _trace_key(shared) and not any([isinstance(x, Tracer) for x in traced.captured]):
            traced = traces.setdefault(key, traced)  # two threads may arrive here; one is first
    return traced


def _trace_key(shared: Shared) -> tuple[Any, ...]:
    """The context part of the trace cache key: settings, mesh, axes in scope."""
    axes = tuple([(a.name, a.size) for a in state.axes.values()]) if state.axes else ()
    is_placed = not shared.options.is_library or "out_sharding" in shared.options.static_argnames
    return config.trace_key(), axes, current_mesh() if is_placed else None


def _equal_or_new(shared: Shared, call: Arguments, types: Sequence[ArrayType | None], call_part: Any) -> Traced:
    """The trace of an equivalent function, or a new one."""
    statics = [x for _, _, x in call.statics]

    def whole() -> Any:
        return call_key([shared.f], statics, [call.structure]), shared.options, call_part, _trace_key(shared)

    key = traced = None
    with contextlib.suppress(Exception):  # Heavy, or an error from code that runs only to compute the key
        key = whole()
        traced = _by_value.get(key)
    if key is None:
        return _record(shared, call, types)
    if traced is None:
        traced = _record(shared, call, types)
        is_whole = traced.out_structure.is_plain and not any([isinstance(x, Tracer) for x in traced.captured])
        if is_whole and keeps(key, whole):
            with _lock:
                while len(_by_value) >= _TRACES_LIMIT:
                    _by_value.pop(next(iter(_by_value)))
                traced = _by_value.setdefault(key, traced)
    return traced


def _record(shared: Shared, call: Arguments, types: Sequence[ArrayType | None]) -> Traced:
    out_structure: list[Any] = []

    def flat(*operands: Any) -> list[Any]:
        given = iter(operands)
        leaves = [x if t is None else next(given) for x, t in zip(call.leaves, types, strict=True)]
        args, kwargs = received(call.rebuild, leaves)
        result = shared.f(*args, **kwargs)
        if not is_library:
            leaving(shared.name, result)
        found, structure = tree.flatten(result)
        out_structure.append(structure)
        for x in found:
            if not isinstance(x, Array):
                _check_result(shared, x)
        return found

    is_library = shared.options.is_library
    names = () if is_library else leaf_names(shared.signature, call)
    dynamic = [t for t in types if t is not None]
    before, notes = state.notes, []
    state.notes = notes if is_library else None
    try:
        program, captured = record(flat, dynamic, shared.name, names, not is_library, not shared.options.is_shown)  # pyright: ignore[reportArgumentType]
    finally:
        state.notes = before
    if captured and not is_library:
        note_models(shared.name, shared.f)
    return Traced(program, captured, call.structure, out_structure[0], shared.name, notes)  # pyright: ignore[reportArgumentType]


def _say(notes: list[Any]) -> None:
    """Emit the warnings of a traced library function, attributed to its caller's line."""
    if state.notes is not None:
        state.notes.extend(notes)
    else:
        for note in notes:
            note()


def _check_result(shared: Shared, x: Any) -> None:
    try:
        type_of(x)
    except TypeError:
        raise TypeError(f"{shared.name}: the results must be arrays or numbers; got {describe(x)}.") from None


def _check_numbers(shared: Shared, call: Arguments) -> None:
    """Raise an error for a Python integer that would wrap around in the dtype of the array it is combined with."""
    numbers = [i for i, x in enumerate(call.leaves) if type(x) is int]
    kinds = [type_of(x) for x in call.leaves] if numbers else []
    narrow = [t.dtype for t in kinds if t.kind in "iu" and not t.weak]
    over = [i for i in numbers if not all([dtypes.holds(d, call.leaves[i]) for d in narrow])]
    if over:  # tracing with the numbers as literals shows whether they are combined
        types = [None if i in over else type_of(x) for i, x in enumerate(call.leaves)]
        _trace(shared, call, types, tuple([(i, call.leaves[i]) for i in over]))


def _launch(shared: Shared, call: Arguments) -> Any:
    if shared.options.is_library:
        _check_numbers(shared, call)
    types = call.types()
    arrays = [x if type(x) is DeviceArray else as_array(x, t) for x, t in zip(call.leaves, types, strict=True)]
    start, began = time.perf_counter(), (shared.traces, config.changes[0])
    traced = _trace(shared, call, types)
    if traced.notes:
        _say(traced.notes)
    if any([isinstance(x, Tracer) for x in traced.captured]):  # the function closes over a tracer
        return traced.out_structure.unflatten(list(bind(Call(traced.program), *traced.captured, *arrays)))
    captured = [as_array(x) for x in traced.captured]
    given = [*captured, *arrays]
    if not shared.options.is_library and traced.program not in shared.expected:
        check_expectations(traced.program, given)
        shared.expected.add(traced.program)
    program, left, donated, (where, committed) = prepared(shared.signature, traced, call, given)
    ready, is_found = _compiled(shared, call, program, (where, committed, donated), start)
    used = [given[i] for i in left]
    there = moved(used, where)
    buffers = [a._buffer for a in there]
    held = buffers[: len(captured)]  # all captured values are used
    if not scope().off and not traced.notes:
        execute = ready.execute
        waiting = [i for i, (a, m) in enumerate(zip(used, there, strict=True)) if a is not m and i >= len(held)]
        if waiting and isinstance(where, Spread):  # numbers and uncommitted arrays, which are moved in each call
            execute = functools.partial(bring, execute, [(i, there[i]._placed) for i in waiting])
            waiting = []
        execute = taking(execute, left, len(given))
        if not waiting and not is_found:  # a function created anew for each call is not called again
            with _lock:
                if shared.traces is began[0] and config.changes[0] == began[1]:  # the caches were not cleared meanwhile
                    _remember(shared, call, traced, arrays, (execute, ready.handlers, ready.placed, held))
    try:
        out = ready(buffers)
    except EngineError as error:
        names = () if shared.options.is_library else leaf_names(shared.signature, call)
        raise failure_of([a._buffer for a in given], error, names) from None
    if donated and any([i is not None for i in donated]):
        _note_donor(shared.signature)
    made = traced.out_structure.unflatten([wrap(b) for b in out])
    if scope().is_watched and (scope().debug_nans or scope().debug_infs):
        from atled.staging.nans import check_results

        check_results(shared, call, made)
    return made


def _note_donor(signature: Signature) -> None:
    """Remember a donating call, for messages about donated arrays."""
    while len(donors) >= 64:
        donors.pop(next(iter(donors)))
    positions, names = signature.donated
    donors[signature.name] = ", ".join(sorted(names) or [str(n) for n in sorted(positions)])


def _compiled(
    shared: Shared, call: Arguments, program: Program, how: tuple[Any, ...], start: float
) -> tuple[Executable, bool]:
    """The compiled program, added to the function's log; and whether it was cached by an equivalent function."""
    with _lock:
        is_first = (program, how) not in shared.launched  # by this function
        if is_first and shared.options.max_compiles is not None:
            limit(shared.options.max_compiles, shared.compiles, shared.signature, call)
        shared.launched.add((program, how))
    noted = ("noted", *how)
    is_found = is_first and noted in program.derived
    ready = executable(program, *how)
    if is_found:
        shared.compiles.append(program.derived[noted])
    elif is_first:
        milliseconds = (time.perf_counter() - start) * 1e3
        program.derived[noted] = note(shared.compiles, shared.signature, call, milliseconds)
    return ready, is_found


def _remember(shared: Shared, call: Arguments, traced: Traced, arrays: list[DeviceArray], entry: Any) -> None:
    """Let the next call like this one take the launch path."""
    shape = (len(call.args), *call.kwargs)
    is_wide = [a.type for a in arrays] != [type_of(x) for x in call.leaves]
    is_clean = tuple([kind in CLEAN for _, kind, _ in call.given_statics])
    site_key = (shape, call.structure, None if shared.options.is_library else call.is_array, is_wide, is_clean)
    site = shared.sites.get(site_key)
    if site is None:
        if len(shared.sites) >= _SITES_LIMIT:  # keeps its code and constants alive as long as the function
            return
        if site_key not in shared.met:  # many functions are called once, and code generation is slow
            if len(shared.met) >= _SITES_LIMIT:
                shared.met.clear()
            shared.met.add(site_key)
            return
        if shared.form is None:
            shared.form = Form(shared.f)
        site = shared.sites[site_key] = Site(
            len(shared.sites), shared.form, call, traced.out_structure, shared.options.is_library, is_wide,
            () if shared.options.is_library else leaf_names(shared.signature, call), shared.namespace,
        )  # fmt: skip
        shared.recent.setdefault(shape, []).append(site)
    site.remember(call, arrays, entry, traced.out_structure)
    if shared.code is FIRST_CODE:
        shared.install(site.run.__code__)


# -- the public function ---------------------------------------------------------------------------------------------


def _tuple(x: Any, kind: type) -> tuple[Any, ...]:
    return () if x is None else (x,) if isinstance(x, kind) else tuple(x)


_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)


class LibraryFunction(Protocol[_P, _R]):
    """The type of a `library_function`, for type checkers: the same parameters and result."""

    __name__: str

    @property
    def __wrapped__(self) -> Callable[_P, _R]: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...


class Jitted(LibraryFunction[_P, _R], Protocol[_P, _R]):
    """The type of a jitted function, for type checkers: the same function with further methods."""

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
        static_argnums, static_argnames: arguments that are Python values: the function is compiled for each value.
        donate_argnums, donate_argnames: arguments whose buffers the results may reuse; they must not be used again.
        inline: when traced, inline the equations into the surrounding program instead of a call.
        device: run there, instead of on the arguments' device.
        in_shardings, out_shardings: shardings of arguments and results: a sharding, a `PartitionSpec` of the current
            mesh, or None for the arguments' sharding and the compiler's choice; or trees of those.
        keep_unused: pass unused arguments to the compiled program. By default they are ignored: not moved, not donated,
            and possibly on another device.
        max_compiles: raise if the function would be compiled more often, and name what changed.
        backend: a platform, to run on its first device.
        compiler_options: must be empty; set XLA flags for the process in XLA_FLAGS.

    From the second compilation on, the logger `atled` reports which argument changed, and the compile time. The result
    is a function with `.lower(...)`, `.trace(...)`, `.eval_shape(...)`, `.compiles`, a list of signatures it was
    compiled for, and `.clear_cache()`.

    >>> import atled.numpy as jnp
    >>> @jit
    ... def f(x):
    ...     return jnp.sin(x) ** 2 + jnp.cos(x) ** 2
    >>> round(float(f(0.3)), 4), len(f.compiles)
    (1.0, 1)
    """
    refuse_options("jit", compiler_options)
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
        in_shardings=None if in_shardings is None else Boxed(in_shardings),
        out_shardings=None if out_shardings is None else Boxed(out_shardings),
    )
    if fun is None:
        return lambda g: _jitted(g, options)
    if not callable(fun):
        raise TypeError(f"jit: expected a function; got {describe(fun)}.")
    return _jitted(fun, options)


def _jitted(f: Any, options: Options) -> Any:
    """The jitted function. For a model, or a model's method, the model is an argument, so its arrays may change."""
    owner, function = (f.__self__, f.__func__) if type(f) is MethodType else (f, type(f).__call__)
    node = tree._nodes.get(type(owner))
    if node is None or node.code is None:
        return _wrapped(f, _shared_for(f, options))
    shifted = options._replace(
        static_argnums=tuple([n + (n >= 0) for n in options.static_argnums]),
        donate_argnums=tuple([n + (n >= 0) for n in options.donate_argnums]),
        in_shardings=None if options.in_shardings is None else options.in_shardings.after(None),
    )
    inner = _wrapped(function, _shared_for(function, shifted))

    def call(*args: Any, **kwargs: Any) -> Any:
        return inner(owner, *args, **kwargs)

    made: Any = call
    made.__name__ = made.__qualname__ = getattr(f, "__name__", type(f).__name__)
    made.__doc__, made.__module__, made.__wrapped__ = f.__doc__, f.__module__, f
    made.compiles, made.clear_cache = inner.compiles, inner.clear_cache
    for name in ("trace", "lower", "eval_shape"):
        setattr(made, name, functools.partial(getattr(inner, name), owner))
    return made


@overload
def library_function(
    f: Callable[_P, _R], *, static: Sequence[str] = (), is_thin: bool = False
) -> LibraryFunction[_P, _R]: ...
@overload
def library_function(
    f: None = None, *, static: Sequence[str] = (), is_thin: bool = False
) -> Callable[[Callable[_P, _R]], LibraryFunction[_P, _R]]: ...
def library_function(f: Any = None, *, static: Sequence[str] = (), is_thin: bool = False) -> Any:
    """A function of the library: one launch on arrays, its equations under a trace.

    Composite functions are traced once and inlined; those that are hardly more than one op (`is_thin`) are not jitted.
    """
    if f is None:
        return lambda g: library_function(g, static=static, is_thin=is_thin)
    code = f.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    out_at = names.index("out") if "out" in names else None
    return _wrapped(
        f, Shared(f, Options(static_argnames=tuple(static), is_library=True, is_thin=is_thin, out_at=out_at))
    )


def refuse_out(name: str, out: Any) -> None:
    """Raise if NumPy's `out` is given, an array to write into."""
    if out is not None:
        raise NotImplementedError(
            errors.explained(
                f"{name}: arrays are immutable, so `out` must be None; got {describe(out)}.",
                "use the result of the call, or x.at[...].set(result) for a part of an array.",
            )
        )


def _wrapped(f: Callable[..., Any], shared: Shared) -> Any:
    call: Any = FunctionType(shared.code, shared.namespace, str(getattr(f, "__name__", "f")))
    shared.wrappers.add(call)
    shared.dress(call)
    call.__qualname__ = str(getattr(f, "__qualname__", call.__name__))
    call.__doc__ = getattr(f, "__doc__", None)
    call.__module__ = getattr(f, "__module__", __name__)
    call.__wrapped__ = f
    if not shared.options.is_library:
        call.trace = lambda *args, **kwargs: trace(f, shared, args, kwargs)  # holds f; `shared` must not
        call.lower = lambda *args, **kwargs: trace(f, shared, args, kwargs).lower()
        call.eval_shape = lambda *args, **kwargs: trace(f, shared, args, kwargs).out_info
        call.compiles = shared.compiles
        call.clear_cache = shared.clear
    return call


# -- ahead of time ---------------------------------------------------------------------------------------------------


def trace(f: Callable[..., Any], shared: Shared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedFunction:
    """Trace a function for arguments, which may be `ShapeDtypeStruct`s, without compiling it."""
    try:
        call = Arguments(shared.signature, args, kwargs)
        types = call.types()
        return TracedFunction(_trace(shared, call, types), call, shared.signature)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of a function's results, without computing anything.

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
    """A function that returns the program of `fun` for its arguments, including dead code.

    Args:
        static_argnums: arguments that are Python values.
        axis_env: names and sizes of axes that collectives in `fun` may name.
        return_shape: also return the shapes of the results, as `eval_shape` does.

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
            found = trace(fun, shared, args, kwargs)
        finally:
            state.axes = before
        p = found.program
        program = Program(p.inputs, p.equations, p.outputs, p.name, p.input_names)  # which shares no state with others
        program.consts = list(found._traced.captured)
        return (program, found.out_info) if return_shape else program

    return make
