"""Ahead-of-time compilation: traces, lowers and compiles a function in separate steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from atled.core import errors, tree
from atled.core.array import type_of
from atled.core.program import Program, Recorder, used
from atled.core.sharding import Mesh, asked_sharding
from atled.core.trace import Tracer, state
from atled.core.types import ArrayType, ShapeDtypeStruct
from atled.engine import client
from atled.engine.array import as_array
from atled.engine.compilation import lowered
from atled.engine.compile_options import CompilerOptions, tuned
from atled.engine.eager import moved, placement
from atled.engine.executable import Executable, compiled_anew, executable
from atled.engine.jaxlib_versions import EngineError
from atled.engine.placement import MeshPlacement, Where, on_device
from atled.staging.jit_signature import Arguments, Signature, donations, fitted, flat_shardings, leaf_names
from atled.staging.launch_codegen import MISS, NAMESPACE, LaunchParameters, Site, failure_of, result_builder, taking

if TYPE_CHECKING:
    from atled.engine import topology as topologies


class Traced:
    """A function traced for one signature."""

    __slots__ = ("captured", "in_structure", "name", "notes", "out_structure", "program")

    def __init__(
        self,
        program: Program,
        captured: list[Any],
        in_structure: tree.TreeDef,
        out_structure: tree.TreeDef,
        name: str,
        notes: list[Any],
    ) -> None:
        self.program = program
        self.notes = notes  # warnings to repeat for each caller, at its line
        self.captured = captured
        self.in_structure = in_structure
        self.out_structure = out_structure
        self.name = name

    def run(self, keeps_unused: bool) -> tuple[Program, tuple[int, ...]]:
        """The program to compile, and the positions of its inputs; without unused inputs unless `keeps_unused`."""
        return (self.program, tuple(range(len(self.program.inputs)))) if keeps_unused else used(self.program)


def _stand_in(structure: tree.TreeDef) -> Any:
    """A tree with distinct leaves, because a `PullBack` in it would merge residuals that are the same object."""
    return structure.unflatten([object() for _ in range(structure.num_leaves)])


def _info(traced: Traced, shardings: Sequence[Any]) -> Any:
    types = traced.program.output_types
    return traced.out_structure.unflatten(
        [
            ShapeDtypeStruct(t.shape, t.dtype, sharding=s, weak_type=t.weak)
            for t, s in zip(types, shardings, strict=True)
        ]
    )


class ArgInfo(NamedTuple):
    """The type of an argument of a traced function, and whether its buffer is donated.

    >>> import atled, atled.numpy as jnp
    >>> atled.jit(lambda x: 2 * x, donate_argnums=0).lower(jnp.ones(3)).args_info
    ((ArgInfo(aval=f32[3], donated=True),), {})
    """

    aval: ArrayType
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype


class _Stage:
    """The base class of the stages (traced, lowered, compiled), with JAX's attribute names."""

    @property
    def _function(self) -> TracedFunction:
        raise NotImplementedError

    @property
    def fun_name(self) -> str:
        return self._function._traced.name

    @property
    def in_tree(self) -> tree.TreeDef:
        """The tree of (positional arguments, keyword arguments)."""
        return self._function._traced.in_structure

    @property
    def out_tree(self) -> tree.TreeDef:
        return self._function._traced.out_structure

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, in their tree."""
        traced = self._function._traced
        return traced.in_structure.unflatten(traced.program.input_types[len(traced.captured) :])

    @property
    def args_info(self) -> Any:
        """The tree of the arguments with an `ArgInfo` for each leaf."""
        function = self._function
        traced, count = function._traced, len(function._traced.captured)
        donated = donations(
            function._signature, function._call, traced.program, count, range(len(traced.program.inputs))
        )
        taken = {i for i, result in enumerate(donated) if result is not None}
        types = traced.program.input_types[count:]
        return traced.in_structure.unflatten([ArgInfo(t, count + i in taken) for i, t in enumerate(types)])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        return self._function._signature.options.donate_argnums


class TracedFunction(_Stage):
    """A function traced for one signature: inspect `.program`, or call `.lower()`.

    >>> import atled, atled.numpy as jnp
    >>> atled.jit(lambda x: 2 * x).trace(jnp.ones(3)).out_info
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """

    def __init__(self, traced: Traced, call: Arguments, signature: Signature) -> None:
        self._traced, self._call, self._signature = traced, call, signature

    @property
    def _function(self) -> TracedFunction:
        return self

    @property
    def out_avals(self) -> list[ArrayType]:
        return list(self._traced.program.output_types)

    @property
    def program(self) -> Program:
        return self._traced.program

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the results, in their tree, with the shardings in `out_shardings`."""
        traced = self._traced
        result = _stand_in(traced.out_structure)
        asked = flat_shardings(self._signature.options.out_shardings, result, traced.name, "out_shardings")
        return _info(traced, _fitted_results(asked, traced))

    def lower(self) -> Lowered:
        """Lower the function to StableHLO."""
        return Lowered(self)


class Lowered(_Stage):
    """A function lowered to StableHLO: inspect `.as_text()`, or call `.compile()`.

    >>> import atled
    >>> "stablehlo.multiply" in atled.jit(lambda x: 2 * x).lower(1.0).as_text()
    True
    """

    def __init__(self, traced: TracedFunction) -> None:
        self._traced = traced
        t = traced._traced
        given = [as_array(x) for x in t.captured] + [_Like(x) for x in traced._call.leaves]
        self._program, _, self._donated, (self._where, self._committed) = prepared(
            traced._signature, t, traced._call, given
        )
        self._module = lowered(self._program, self._where, self._donated)

    @property
    def _function(self) -> TracedFunction:
        return self._traced

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The StableHLO module as an MLIR object; for the dialect "hlo", the XLA computation."""
        if dialect == "hlo":
            from atled.engine import stablehlo

            return stablehlo.computation(self._module)
        if dialect not in (None, "stablehlo"):
            raise NotImplementedError(f"compiler_ir: the dialect must be 'stablehlo' or 'hlo'; got {dialect!r}.")
        return self._module.module

    def cost_analysis(self) -> dict[str, float]:
        """XLA's cost estimate: flops, bytes accessed, and more. Compiles the function."""
        return self.compile().cost_analysis()

    @property
    def out_info(self) -> Any:
        return self._traced.out_info

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The StableHLO module as text, or the HLO for the dialect "hlo"; `debug_info` adds the user's source lines."""
        from atled.engine import stablehlo

        if dialect == "hlo":
            return self.compiler_ir("hlo").as_hlo_text()
        if dialect not in (None, "stablehlo"):
            raise NotImplementedError(f"as_text: the dialect must be 'stablehlo' or 'hlo'; got {dialect!r}.")
        return stablehlo.module_text(self._module, debug_info)

    def compile(
        self,
        topology: topologies.Topology | dict[str, Any] | None = None,
        effort: float | None = None,
        *,
        compiler_options: dict[str, Any] | None = None,
    ) -> Compiled:
        """Compile for the arguments' device or mesh.

        Args:
            topology: devices that are not attached. If the arguments have no sharding, compile for the first of them;
                if they have a sharding over a mesh of such devices, `topology` is not needed.
            effort: the optimization effort for a topology, from -1 (fastest compilation) to 1.
            compiler_options: XLA options for this program, by name, such as {"xla_cpu_enable_fast_math": False}.
        """
        from atled.engine import topology as topologies  # rarely needed

        if isinstance(topology, dict):  # JAX's first parameter
            topology, compiler_options = None, topology
        program, where, module = self._tuned(compiler_options), self._where, self._module
        if topology is not None and topologies.of(where) is None:
            if isinstance(where, MeshPlacement):
                raise ValueError(
                    f"compile: the mesh must have devices of {topology.name}; got one of {where.mesh.flat[0]}, ….\n"
                    "  try: make_mesh(shape, names, devices=topology.devices)."
                )
            where = topology.devices[0]
            module = lowered(program, where, self._donated)
        there = topologies.of(where)
        if there is not None and topology not in (None, there):
            raise ValueError(f"compile: the arguments are on {there.name}; got {topology.name}.")
        if there is not None:
            return Compiled(topologies.unloaded(program, where, self._donated, module, effort), self._traced)
        if effort is not None:
            raise ValueError("compile: effort is supported only for topologies, not for attached devices.")
        return Compiled(executable(program, where, self._committed, self._donated, module), self._traced)

    def _tuned(self, options: dict[str, Any] | None) -> Program:
        """The program with the compiler options of `jit`, overridden by these."""
        before = {name: value for name, _, value in self._traced._signature.options.compiler_options}
        return tuned(self._program, chosen_options("compile", {**before, **(options or {})}))

    def compile_anew(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """Compile without the caches: the HLO text of a cached executable may have another program's source lines."""
        from atled.engine import topology as topologies

        if topologies.of(self._where) is not None:
            return self.compile(compiler_options=compiler_options)
        program = self._tuned(compiler_options)
        ready = compiled_anew(program, self._where, self._committed, self._donated, self._module)
        return Compiled(ready, self._traced)


def chosen_options(name: str, options: dict[str, Any] | None) -> CompilerOptions:
    """XLA options for one program as a sorted, hashable tuple; raises for options of other types."""
    for option, value in (options or {}).items():
        if not isinstance(option, str) or not isinstance(value, (bool, int, float, str)):
            raise TypeError(
                errors.explained(
                    f"{name}: compiler_options must map names of XLA options to bool, int, float or str; "
                    f"got {option!r}: {value!r}.",
                    '{"xla_cpu_enable_fast_math": False}.',
                )
            )
    return tuple([(option, type(value).__name__, value) for option, value in sorted((options or {}).items())])


class _Like:
    """The type and placement of an argument, which is an array or a `ShapeDtypeStruct`."""

    def __init__(self, x: Any) -> None:
        self.type = type_of(x)
        asked = asked_sharding(x)
        self.committed = getattr(x, "committed", asked is not None)
        self.sharding = asked if asked is not None else on_device(client.default_device())


def prepared(
    signature: Signature, traced: Traced, call: Arguments, arrays: Sequence[Any]
) -> tuple[Program, tuple[int, ...], tuple[int | None, ...], tuple[Where, bool]]:
    """The program to run for a traced function, the positions of its inputs, their donations, and the placement."""
    program, left = traced.run(signature.options.keeps_unused)
    donated = donations(signature, call, traced.program, len(traced.captured), left)
    return program, left, donated, _place(signature, traced, call, arrays, donated, left)


def _place(
    signature: Signature,
    traced: Traced,
    call: Arguments,
    arrays: Sequence[Any],
    donated: tuple[int | None, ...],
    left: Sequence[int],
) -> tuple[Where, bool]:
    """The device or mesh on which to run a traced function, and whether the results are committed to it."""
    options = signature.options
    if options.device is not None:
        return options.device, True
    ins: list[Any] = []
    outs: list[Any] = []
    if options.in_shardings is not None or options.out_shardings is not None:
        args, kwargs = call.dynamic
        ins = flat_shardings(options.in_shardings, args, traced.name, "in_shardings")
        ins = [*[None] * len(traced.captured), *ins, *[None] * len(tree.leaves(kwargs))]
        result = _stand_in(traced.out_structure)
        outs = flat_shardings(options.out_shardings, result, traced.name, "out_shardings")
        names = [*["a value it closes over"] * len(traced.captured), *leaf_names(signature, call)]
        ins = [
            fitted(s, t.shape, f"in_shardings of {traced.name}, argument {name}")
            for s, t, name in zip(ins, traced.program.input_types, names, strict=True)
        ]
        outs = _fitted_results(outs, traced)
    where, committed = placement(traced.program, [arrays[i] for i in left], [ins[i] for i in left] if ins else (), outs)
    if donated and isinstance(where, MeshPlacement):  # a result that reuses a donated buffer gets its sharding
        out_shardings = list(where.outs)
        for s, i in zip(where.ins, donated, strict=True):
            if i is not None and out_shardings[i] is None:
                out_shardings[i] = s
        where = where._replace(outs=tuple(out_shardings))
    return where, committed


def _fitted_results(asked: Sequence[Any], traced: Traced) -> list[Any]:
    what = f"out_shardings of {traced.name}"
    return [fitted(s, t.shape, what) for s, t in zip(asked, traced.program.output_types, strict=True)]


class Compiled(_Stage):
    """A function compiled for one signature: call it, or analyze its cost.

    >>> import atled
    >>> float(atled.jit(lambda x: 2 * x).lower(1.0).compile()(3.0))
    6.0
    """

    def __init__(self, ready: Executable | topologies.Unloaded, traced: TracedFunction) -> None:
        self._executable, self._traced = ready, traced
        self._site: Site | None = None

    @property
    def _function(self) -> TracedFunction:
        return self._traced

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out = MISS if self._site is None else self._site.run(*args, **kwargs)
        return self._checked(args, kwargs) if out is MISS else out

    def _with_statics(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, including static ones that the caller omitted."""
        before = self._traced._call.args
        static = {i for i in self._traced._signature.static[0] if i < len(before)}
        if not static or len(args) != len(before) - len(static):
            return args
        rest = iter(args)
        return tuple([x if i in static else next(rest) for i, x in enumerate(before)])

    def _checked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Check the arguments and run; later calls with the same placements use generated code instead."""
        signature, traced = self._traced._signature, self._traced._traced
        ready = self._executable
        if not isinstance(ready, Executable):
            raise RuntimeError(
                f"{traced.name}: compiled for {ready.topology.name}, but no such device is attached, so it cannot run."
                "\n  try: as_text(), memory_analysis(), cost_analysis() or serialize()."
            )
        call = Arguments(signature, self._with_statics(args), kwargs)
        if call.static_key != self._traced._call.static_key:
            then, now = [", ".join([f"{k}: {v!r}" for k, _, v in c.statics]) for c in (self._traced._call, call)]
            raise TypeError(f"{traced.name}: compiled for static arguments {{{then}}}; got {{{now}}}.")
        want = traced.program.input_types[len(traced.captured) :]
        got = call.types()
        if call.structure != traced.in_structure:
            raise TypeError(f"{traced.name}: compiled for arguments {traced.in_structure}; got {call.structure}.")
        for name, w, g in zip(leaf_names(signature, call), want, got, strict=True):
            if (w.shape, w.dtype) != (g.shape, g.dtype):
                raise TypeError(f"{traced.name}: argument {name} was compiled for {w}; got {g}.")
        if any(isinstance(x, Tracer) for x in call.leaves) or type(state.base) is Recorder:
            raise TypeError(f"{traced.name}: a compiled function cannot be transformed; transform the jitted function.")
        arrays = [as_array(x, t) for x, t in zip(call.leaves, got, strict=True)]
        left = traced.run(signature.options.keeps_unused)[1]
        given = [*[as_array(x) for x in traced.captured], *arrays]
        used = [given[i] for i in left]
        there = moved(used, ready.where)
        count = len(traced.captured)
        if self._site is None:
            is_wide = got != [type_of(x) for x in call.leaves]
            names = leaf_names(signature, call)
            self._site = Site(
                0, LaunchParameters(None), call, traced.out_structure, True, is_wide, names, dict(NAMESPACE)
            )
        is_there = all([a is b for a, b in zip(used[count:], there[count:], strict=True)])
        if is_there and not call.statics:  # generated code does not check static arguments
            held = [a._buffer for a in there[:count]]
            entry = (taking(ready.execute, left, len(given)), ready.handlers, ready.placed, held)
            self._site.remember(call, arrays, entry, traced.out_structure)
        buffers = [a._buffer for a in there]
        try:
            out = ready(buffers)
        except EngineError as error:
            named = leaf_names(signature, call)
            raise failure_of(buffers, error, [named[i - count] for i in left if i >= count]) from None
        return result_builder(traced.out_structure)(out, ready.placed)

    @property
    def out_info(self) -> Any:
        """Shapes, dtypes and shardings of the results, in their tree."""
        return _info(self._traced._traced, [p.sharding for p in self._executable.placed])

    @property
    def mesh(self) -> Mesh | None:
        """The mesh that the function runs on, or None for a single device."""
        where = self._executable.where
        return where.mesh if isinstance(where, MeshPlacement) else None

    @property
    def input_shardings(self) -> Any:
        """The shardings of the arguments, in their tree, or None for unused arguments."""
        traced, where = self._traced._traced, self._executable.where
        left = traced.run(self._traced._signature.options.keeps_unused)[1]
        ins = where.ins if isinstance(where, MeshPlacement) else [on_device(where)] * len(left)
        taken = dict(zip(left, ins, strict=True))
        count = len(traced.captured)
        return traced.in_structure.unflatten([taken.get(count + i) for i in range(traced.in_structure.num_leaves)])

    @property
    def output_shardings(self) -> Any:
        """Shardings of the results, in their tree."""
        return self._traced._traced.out_structure.unflatten([p.sharding for p in self._executable.placed])

    def as_text(self) -> str:
        """The optimized HLO of the compiled program, as text."""
        return self._executable.raw.get_hlo_text()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's cost estimate: flops, bytes accessed, and more."""
        return self._executable.raw.cost_analysis()

    def memory_analysis(self) -> Any:
        """Sizes of arguments, results and temporary memory."""
        return self._executable.raw.get_compiled_memory_stats()

    def serialize(self) -> bytes:
        """The executable as bytes, in the engine's format for this platform and version."""
        ready = self._executable
        if isinstance(ready, Executable):  # the engine cannot fully serialize an executable loaded from disk
            ready = compiled_anew(ready.program, ready.where, True, ready.donated, None)
        return ready.raw.serialize()
