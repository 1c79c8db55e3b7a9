"""The calls of jitted functions, and the state that they share.

A call takes one of three paths. *Launch*: generated code (`launch_codegen.py`) looks up the executable for the
arguments and runs it. *Trace*: under another transformation, the program becomes a `Call`, or is inlined if `inline`.
*Slow*: new signatures, special cases and errors.
"""

from __future__ import annotations

import functools
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from atled.core import dtypes, errors, settings, tree
from atled.core.array import Array, describe, type_of, unwrapped
from atled.core.cache_keys import IdentityKey, WeakIdentityDict, exact
from atled.core.program import Literal, Program, Recorder, evaluate, inline, record
from atled.core.settings import scope
from atled.core.sharding import current_mesh
from atled.core.trace import Tracer, bind, leaving, received, state
from atled.core.types import ArrayType
from atled.engine import client
from atled.engine.array import DeviceArray, as_array, bring, wrap
from atled.engine.compile_options import tuned
from atled.engine.eager import moved
from atled.engine.executable import Executable, executable
from atled.engine.jaxlib_versions import EngineError
from atled.engine.memory_mappings import on_pressure
from atled.engine.placement import MeshPlacement
from atled.higher_order.call import Call, TunedCall
from atled.staging.aot import Traced, TracedFunction, prepared
from atled.staging.jit_signature import Arguments, Options, Signature, leaf_names, refuse_out
from atled.staging.launch_codegen import (
    CLEAN,
    FIRST_CODE,
    MISS,
    NAMESPACE,
    LaunchParameters,
    Site,
    donors,
    failure_of,
    taking,
)
from atled.staging.range_checks import check_expectations
from atled.staging.recompilation import Compile, limit, note, note_models


class Shared:
    """The state that all jits of one function with the same options share: traces and generated launch code.

    The functions that `jit` returns have `code` as their code and `namespace` as their globals; calls with new
    signatures change both. Names are never removed from the namespace, because other threads may be running the code.
    """

    def __init__(self, f: Callable[..., Any], options: Options, is_anchored: bool = False) -> None:
        # a weak reference, because an entry in `_by_function` must not keep its function alive
        self._function: Callable[[], Any] = weakref.ref(f) if is_anchored else lambda: f
        self.options = options
        self.name = str(getattr(f, "__name__", type(f).__name__))
        self.signature = Signature(self._function, self.name, options)  # pyright: ignore[reportArgumentType]
        self.traces: dict[Any, Traced] = {}
        self.sites: dict[Any, Site] = {}
        self.met: set[Any] = set()  # signatures of one call so far; the second one generates a site
        self.recent: dict[Any, list[Site]] = {}  # sites, by the number of arguments and the keywords
        self.compiles: list[Compile] = []
        self.launched: set[Any] = set()  # pairs of program and placement that were launched
        self.expected: weakref.WeakSet[Program] = weakref.WeakSet()  # programs whose range checks passed
        self.code = FIRST_CODE
        self.namespace: dict[str, Any] = {**NAMESPACE, "miss": functools.partial(_missed, self)}
        self.wrappers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.form: LaunchParameters | None = None  # the parameters of the generated code; None if there is no code
        self.misses = 0
        self.of_values: Any = None  # the function on the values of its references (see ref.py)
        with _lock:
            _all_shared.add(self)

    @property
    def f(self) -> Callable[..., Any]:
        """The function that is jitted."""
        return self._function()

    def clear(self) -> None:
        """Drop all traces and the log of compilations."""
        self.forget()
        self.compiles.clear()

    def forget(self) -> None:
        """Drop all traces, and the executables of generated code."""
        with _lock:
            self.traces, self.launched, self.of_values = {}, set(), None
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
_by_function = WeakIdentityDict()  # function object -> {options: `Shared`}
_TRACES_LIMIT = 4096
_SITES_LIMIT = 256


def shared_for(f: Callable[..., Any], options: Options) -> Shared:
    """The state of a function object with these options, made if it is new."""
    key = options._replace(device=IdentityKey(options.device))
    with _lock:
        table = _by_function.get(f)
        if table is None:
            table = {}
            if not _by_function.set(f, table):
                return Shared(f, options)
        shared = table.get(key)
        if shared is None:
            shared = table[key] = Shared(f, options, True)
    return shared


def clear_caches() -> None:
    """Drop all traces and all compiled programs in memory.

    >>> import atled
    >>> traces = []
    >>> f = atled.jit(lambda x: traces.append("traced") or x + 1)
    >>> for clear in (False, False, True):
    ...     if clear:
    ...         clear_caches()
    ...     _ = f(1)
    >>> traces  # once, and again after the caches were dropped
    ['traced', 'traced']
    """
    for shared in _everyone():
        shared.clear()
    for forget in on_pressure:  # executables
        forget()


def _forget_traces() -> None:
    for shared in _everyone():
        shared.forget()


def _forget_launches() -> None:
    for shared in _everyone():
        shared.forget_launches()


def _everyone() -> list[Shared]:
    with _lock:
        return list(_all_shared)


settings.on_global_change.append(_forget_launches)
on_pressure.append(_forget_traces)
client.on_fork.append(_forget_launches)
client.on_reset.append(clear_caches)


def _missed(shared: Shared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call that does not match the installed code: try recent sites, then the slow path."""
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
    if not options.is_library:
        for x in call.leaves:
            if hasattr(type(x), "call_with_references"):
                return type(x).call_with_references(shared, args, kwargs)
    if is_recording or any([isinstance(x, Tracer) for x in call.leaves]):
        if options.is_library:
            return _splice(shared, call)
        types = call.types()
        traced = _trace(shared, call, types)
        given = [x if isinstance(x, Array) else as_array(x, t) for x, t in zip(call.leaves, types, strict=True)]
        operands = [*traced.captured, *given]
        if not scope().jit:
            out = evaluate(traced.program, operands)
        elif options.is_inline and not options.compiler_options:
            out = _values(inline(traced.program, operands))
        else:
            out = list(bind(_call(shared, traced.program), *operands))
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
    else:  # under grad or vmap without jit: one launch
        out = bind(Call(traced.program), *operands)
    return traced.out_structure.unflatten(list(out))


def _call(shared: Shared, program: Program) -> Call:
    chosen = shared.options.compiler_options
    return TunedCall(program, chosen) if chosen else Call(program)


def _values(out: list[Any]) -> list[Any]:
    """The results, with literals converted to arrays."""
    return [as_array(x.value, x.type) if type(x) is Literal else x for x in out]


_NUMBERS = (int, float, complex, bool)


def _trace(shared: Shared, call: Arguments, types: Sequence[ArrayType | None], fixed: tuple[Any, ...] = ()) -> Traced:
    """The cached trace of a call, or a new one. Leaves without a type are in `fixed`, as (position, exact number)."""
    here, traces = _trace_key(shared), shared.traces
    key = (call.structure, call.static_key, tuple(types), fixed, here)
    traced = traces.get(key)
    if traced is None:
        traced = _record(shared, call, types)
        if len(traces) >= _TRACES_LIMIT:
            shared.forget()
        if here == _trace_key(shared) and not any([isinstance(x, Tracer) for x in traced.captured]):
            traced = traces.setdefault(key, traced)  # if two threads trace the function, both use the first trace
    return traced


def _trace_key(shared: Shared) -> tuple[Any, ...]:
    """The context part of the trace cache key: settings, mesh, axes in scope."""
    axes = tuple([(a.name, a.size) for a in state.axes.values()]) if state.axes else ()
    is_placed = not shared.options.is_library or "out_sharding" in shared.options.static_argnames
    return settings.trace_key(), axes, current_mesh() if is_placed else None


def _record(shared: Shared, call: Arguments, types: Sequence[ArrayType | None]) -> Traced:
    out_structure: list[Any] = []

    def flat(*operands: Any) -> list[Any]:
        given = iter(operands)
        leaves = [x if t is None else next(given) for x, t in zip(call.leaves, types, strict=True)]
        args, kwargs = received(call.rebuild, leaves)
        result = shared.f(*args, **kwargs)
        if not is_library:
            leaving(shared.name, result)
        results, structure = tree.flatten(result)
        out_structure.append(structure)
        for x in results:
            if not isinstance(x, Array):
                _check_result(shared, x)
        return results

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
    """Raise an error for a Python integer that would wrap around in the dtype of an array operand."""
    numbers = [i for i, x in enumerate(call.leaves) if type(x) is int]
    kinds = [type_of(x) for x in call.leaves] if numbers else []
    narrow = [t.dtype for t in kinds if t.kind in "iu" and not t.weak]
    over = [i for i in numbers if not all([dtypes.holds(d, call.leaves[i]) for d in narrow])]
    if over:  # a trace with the numbers as literals raises if an op combines them with such an array
        types = [None if i in over else type_of(x) for i, x in enumerate(call.leaves)]
        _trace(shared, call, types, tuple([(i, call.leaves[i]) for i in over]))


def _launch(shared: Shared, call: Arguments) -> Any:
    if shared.options.is_library:
        _check_numbers(shared, call)
    types = call.types()
    arrays = [x if type(x) is DeviceArray else as_array(x, t) for x, t in zip(call.leaves, types, strict=True)]
    start, began = time.perf_counter(), (shared.traces, settings.changes[0])
    traced = _trace(shared, call, types)
    if traced.notes:
        _say(traced.notes)
    if any([isinstance(x, Tracer) for x in traced.captured]):  # the function closes over a tracer
        return traced.out_structure.unflatten(list(bind(_call(shared, traced.program), *traced.captured, *arrays)))
    captured = [as_array(x) for x in traced.captured]
    given = [*captured, *arrays]
    if not shared.options.is_library and traced.program not in shared.expected:
        check_expectations(traced.program, given)
        shared.expected.add(traced.program)
    program, left, donated, (where, committed) = prepared(shared.signature, traced, call, given)
    program = tuned(program, shared.options.compiler_options)
    ready = _compiled(shared, call, program, (where, committed, donated), start)
    used = [given[i] for i in left]
    there = moved(used, where)
    buffers = [a._buffer for a in there]
    held = buffers[: len(captured)]  # the program uses all captured values
    if not scope().off and not traced.notes:
        execute = ready.execute
        waiting = [i for i, (a, m) in enumerate(zip(used, there, strict=True)) if a is not m and i >= len(held)]
        if waiting and isinstance(where, MeshPlacement):  # each call moves numbers and uncommitted arrays
            execute = functools.partial(bring, execute, [(i, there[i]._placed) for i in waiting])
            waiting = []
        execute = taking(execute, left, len(given))
        if not waiting:
            with _lock:
                if shared.traces is began[0] and settings.changes[0] == began[1]:  # no cache was cleared meanwhile
                    _remember(shared, call, traced, arrays, (execute, ready.handlers, ready.placed, held))
    try:
        out = ready(buffers)
    except EngineError as error:
        names = () if shared.options.is_library else leaf_names(shared.signature, call)
        raise failure_of([a._buffer for a in given], error, names) from None
    if donated and any([i is not None for i in donated]):
        _note_donor(shared.signature)
    results = traced.out_structure.unflatten([wrap(b) for b in out])
    if scope().is_watched and (scope().debug_nans or scope().debug_infs):
        from atled.staging.find_nans import check_results

        check_results(shared, call, results)
    return results


def _note_donor(signature: Signature) -> None:
    """Record a call that donates arguments, for messages about donated arrays."""
    while len(donors) >= 64:
        donors.pop(next(iter(donors)))
    positions, names = signature.donated
    donors[signature.name] = ", ".join(sorted(names) or [str(n) for n in sorted(positions)])


def _compiled(shared: Shared, call: Arguments, program: Program, how: tuple[Any, ...], start: float) -> Executable:
    """The compiled program; adds new compilations to the function's log."""
    with _lock:
        is_first = (program, how) not in shared.launched  # for this function
        if is_first and shared.options.max_compiles is not None:
            limit(shared.options.max_compiles, shared.compiles, shared.signature, call)
        shared.launched.add((program, how))
    ready = executable(program, *how)
    if is_first:
        note(shared.compiles, shared.signature, call, (time.perf_counter() - start) * 1e3)
    return ready


def _remember(shared: Shared, call: Arguments, traced: Traced, arrays: list[DeviceArray], entry: Any) -> None:
    """Register the executable, so that similar calls take the launch path; generate their code at the second call."""
    shape = (len(call.args), *call.kwargs)
    is_wide = [a.type for a in arrays] != [type_of(x) for x in call.leaves]
    is_clean = tuple([kind in CLEAN for _, kind, _ in call.given_statics])
    site_key = (shape, call.structure, None if shared.options.is_library else call.is_array, is_wide, is_clean)
    site = shared.sites.get(site_key)
    if site is None:
        if len(shared.sites) >= _SITES_LIMIT:  # a site lives as long as the function
            return
        if site_key not in shared.met:  # no code for the first call, often the only one: generation is slow
            if len(shared.met) >= _SITES_LIMIT:
                shared.met.clear()
            shared.met.add(site_key)
            return
        if shared.form is None:
            shared.form = LaunchParameters(shared.f)
        site = shared.sites[site_key] = Site(
            len(shared.sites), shared.form, call, traced.out_structure, shared.options.is_library, is_wide,
            () if shared.options.is_library else leaf_names(shared.signature, call), shared.namespace,
        )  # fmt: skip
        shared.recent.setdefault(shape, []).append(site)
    site.remember(call, arrays, entry, traced.out_structure)
    if shared.code is FIRST_CODE:
        shared.install(site.run.__code__)


def trace(f: Callable[..., Any], shared: Shared, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedFunction:
    """Trace a function for arguments, which may be `ShapeDtypeStruct`s, without compiling it."""
    try:
        call = Arguments(shared.signature, args, kwargs)
        types = call.types()
        return TracedFunction(_trace(shared, call, types), call, shared.signature)
    except Exception as error:
        raise errors.for_user(error)  # noqa: B904
