"""Source maps from programs to Python lines, with the API of `jax.experimental.source_mapper`.

A source map, in the JSON format of browsers and editors, names the source of each line of generated code. Each stage
has its own: the traced program, StableHLO, and XLA's HLO text before and after optimization.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from atled.core import settings
from atled.core.program import Program, subprograms
from atled.core.source import Source
from atled.staging.jit import jit, make_program

__all__ = [
    "MappingsGenerator", "Pass", "SourceMap", "SourceMapDump", "all_passes", "canonicalize_filename",
    "compile_with_env", "create_mlir_sourcemap", "filter_passes", "generate_sourcemaps", "register_pass",
]  # fmt: skip
__dir__ = __all__.copy
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
Segment = tuple[int, ...]


def _written(numbers: Sequence[int]) -> str:
    """Integers as base-64 VLQ: digits of five bits, the lowest first; the lowest bit of an integer is its sign."""
    out = []
    for n in numbers:
        rest = abs(n) << 1 | (n < 0)
        while rest > 31:
            out.append(_DIGITS[rest & 31 | 32])
            rest >>= 5
        out.append(_DIGITS[rest])
    return "".join(out)


def _read(text: str) -> Segment:
    numbers, value, shift = [], 0, 0
    for digit in text:
        bits = _DIGITS.index(digit)
        value |= (bits & 31) << shift
        shift += 5
        if bits < 32:
            numbers.append(-(value >> 1) if value & 1 else value >> 1)
            value, shift = 0, 0
    return tuple(numbers)


@dataclasses.dataclass(frozen=True)
class SourceMap:
    """Source files, and for each generated line, segments with positions in them, relative to the previous segment.

    >>> SourceMap(3, ["f.py"], [], [], [[(0, 0, 4, 8)], []]).to_json()
    '{"version": 3, "sources": ["f.py"], "sourcesContent": [], "names": [], "mappings": "AAIQ;"}'
    """

    version: int
    sources: Sequence[str]
    sources_content: Sequence[str]
    names: Sequence[str]
    mappings: Sequence[Sequence[Segment]]

    @classmethod
    def from_json(cls, json_data: str) -> SourceMap:
        """Parse a source map from JSON."""
        fields = json.loads(json_data)
        lines = [[_read(s) for s in line.split(",") if s] for line in fields["mappings"].split(";")]
        return cls(fields["version"], fields["sources"], fields["sourcesContent"], fields["names"], lines)

    def to_json(self) -> str:
        """The source map as JSON."""
        lines = [",".join([_written(s) for s in line]) for line in self.mappings]
        fields = {"version": self.version, "sources": list(self.sources), "sourcesContent": list(self.sources_content)}
        return json.dumps({**fields, "names": list(self.names), "mappings": ";".join(lines)})


class MappingsGenerator:
    """Builds segments from absolute positions: column, file, source line, source column, name; all count from 0.

    >>> made = MappingsGenerator()
    >>> for line in (4, 6):
    ...     made.new_group()
    ...     made.new_segment(2, 0, line, 0)
    >>> made.mappings()
    [[(2, 0, 4, 0)], [(2, 0, 2, 0)]]
    """

    def __init__(self) -> None:
        self._lines: list[list[Segment]] = []
        self._before = [0] * 5

    def new_group(self) -> None:
        """Begin the next line of the generated text."""
        self._lines.append([])
        self._before[0] = 0

    def new_segment(self, *seg: int) -> None:
        """Add a segment: the column where generated text starts, and the position of its source."""
        if not self._lines:
            raise RuntimeError("new_segment: call new_group() first to begin a line.")
        self._lines[-1].append(tuple([n - b for n, b in zip(seg, self._before)]))
        self._before[: len(seg)] = seg

    def mappings(self) -> Sequence[Sequence[Segment]]:
        """The segments of all lines."""
        return self._lines


@dataclasses.dataclass(frozen=True)
class SourceMapDump:
    """A generated text and its source map.

    >>> import atled.numpy as jnp
    >>> (dump,) = generate_sourcemaps(jnp.sin, filter_passes("jaxpr"))(1.0)
    >>> dump.pass_name, "sin" in dump.generated_code
    ('jaxpr', True)
    """

    source_map: SourceMap
    generated_code: str
    pass_name: str


@dataclasses.dataclass(frozen=True)
class Pass:
    """A stage: `compile_fn(folder, f, args, kwargs, **options)` and a conversion of its result to a `SourceMapDump`.

    >>> (program,) = filter_passes("jaxpr")
    >>> made = program.compile_fn("", lambda x: x + 1, (1.0,), {})
    >>> program.name, program.generate_dump(made).pass_name
    ('jaxpr', 'jaxpr')
    """

    name: str
    compile_fn: Callable[..., Any]
    generate_dump: Callable[..., SourceMapDump]


_passes: dict[str, Pass] = {}


def register_pass(pass_: Pass) -> None:
    """Add a stage.

    >>> (program,) = filter_passes("jaxpr")
    >>> try:
    ...     register_pass(program)
    ... except ValueError as error:
    ...     print(error)
    register_pass: the stage 'jaxpr' is already registered.
    """
    if pass_.name in _passes:
        raise ValueError(f"register_pass: the stage {pass_.name!r} is already registered.")
    _passes[pass_.name] = pass_


def all_passes() -> Sequence[Pass]:
    """All stages.

    >>> [p.name for p in all_passes()]
    ['jaxpr', 'hlo:stable-hlo', 'hlo:original', 'hlo:optimized']
    """
    return list(_passes.values())


def filter_passes(regex: str) -> Sequence[Pass]:
    """The stages whose names start with a match of the pattern.

    >>> [p.name for p in filter_passes("hlo:o")]
    ['hlo:original', 'hlo:optimized']
    """
    return [p for name, p in _passes.items() if re.match(regex, name)]


def generate_sourcemaps(f: Callable[..., Any], passes: Sequence[Pass], **pass_kwargs: Any) -> Callable[..., Any]:
    """A function of the arguments of `f` that returns the text and the source map of each stage.

    >>> import atled.numpy as jnp
    >>> (dump,) = generate_sourcemaps(jnp.sin, filter_passes("hlo:stable-hlo"))(1.0)
    >>> "stablehlo.sine" in dump.generated_code, dump.source_map.version
    (True, 3)
    """

    def dumps(*args: Any, **kwargs: Any) -> list[SourceMapDump]:
        compiled: dict[Any, Any] = {}
        for p in passes:
            if p.compile_fn not in compiled:
                compiled[p.compile_fn] = p.compile_fn("", f, args, kwargs, **pass_kwargs)
        return [p.generate_dump(compiled[p.compile_fn], **pass_kwargs) for p in passes]

    return dumps


def compile_with_env(f: Any, f_args: Any, f_kwargs: Any, env_flags: Any, compiler_flags: Any) -> None:
    """Compile a function with the settings `env_flags` and the compiler options `compiler_flags`, such as dump flags.

    >>> import atled.numpy as jnp
    >>> compile_with_env(lambda x: x @ x, (jnp.eye(2),), {}, {"matmul_precision": "highest"}, {})
    """
    with settings.override(**env_flags):
        lowered = jit(lambda *args, **kwargs: f(*args, **kwargs)).lower(*f_args, **f_kwargs)
        lowered.compile(compiler_options=compiler_flags)


def canonicalize_filename(file_name: str) -> str:
    """The name of a file in source maps: `file_name`, since atled has no setting that shortens it.

    >>> canonicalize_filename("/home/me/train.py")
    '/home/me/train.py'
    """
    return file_name


# -- stages -----------------------------------------------------------------------------------------------------------


def _mapped(text: str, places: Sequence[tuple[str, int, int] | None]) -> SourceMap:
    """The source map of a text, given the file, line and column of each of its lines, counted from 1."""
    files: dict[str, int] = {}
    generator = MappingsGenerator()
    for line, place in zip(text.split("\n"), places, strict=True):
        generator.new_group()
        if place is not None:
            file = files.setdefault(canonicalize_filename(place[0]), len(files))
            generator.new_segment(len(line) - len(line.lstrip()), file, place[1] - 1, max(place[2] - 1, 0))
    return SourceMap(3, list(files), [], [], generator.mappings())


def _record(folder: str, f: Any, args: Any, kwargs: Any, **_: Any) -> Any:
    return make_program(lambda *args, **kwargs: f(*args, **kwargs))(*args, **kwargs)


def _of_program(program: Any, **_: Any) -> SourceMapDump:
    known: dict[str, Source] = {}

    def look(p: Program) -> None:
        for e in p.equations:
            if e.source is not None:
                known.setdefault(str(e.source), e.source)
            for inner in subprograms(e.op):
                look(inner)

    look(program)
    text = str(program)
    sources = [known.get(line.rpartition("  # ")[2]) for line in text.split("\n")]
    return SourceMapDump(_mapped(text, [s and (s.file, *s.position) for s in sources]), text, "jaxpr")


def _lower(folder: str, f: Any, args: Any, kwargs: Any, **_: Any) -> Any:
    return jit(lambda *args: f(*args, **kwargs)).lower(*args)


_NAMED = re.compile(r'#loc(\d*) = loc\((?:"((?:[^"\\]|\\.)*)":(\d+):(\d+)|(?:"(?:[^"\\]|\\.)*"|callsite)\(#loc(\d*))')


def create_mlir_sourcemap(mlir_dump: str) -> SourceMap:
    """The source map of a module's text, which must contain locations, such as `as_text(debug_info=True)` returns.

    >>> import atled
    >>> text = atled.jit(lambda x: x + 1).lower(1.0).as_text(debug_info=True)
    >>> found = create_mlir_sourcemap(text)
    >>> len(found.mappings) == len(text.split(chr(10)))
    True
    """
    places: dict[str, Any] = {}  # by id: a location, or the id of another
    for number, file, line, column, other in _NAMED.findall(mlir_dump):
        places[number] = (file, int(line), int(column)) if file else other

    def place(line: str) -> Any:
        used = re.findall(r"loc\(#loc(\d*)\)", line)
        location = places.get(used[-1]) if used and not line.startswith("#loc") else None
        while isinstance(location, str):
            location = places.get(location)
        return location

    return _mapped(mlir_dump, [place(line) for line in mlir_dump.split("\n")])


def _of_stablehlo(lowered: Any, **_: Any) -> SourceMapDump:
    text = lowered.as_text(debug_info=True)
    return SourceMapDump(create_mlir_sourcemap(text), text, "hlo:stable-hlo")


_ROW = re.compile(r"^(\d+) (?:\"(.*)\"|\{(.*)\})$", re.M)


def _hlo_map(text: str) -> SourceMap:
    """The source map of XLA's HLO text, whose header has tables of files, locations and frames."""
    tables: dict[str, dict[str, Any]] = {}
    for part in re.split(r"\n\n", text):
        heading, _, rows = part.strip().partition("\n")
        if heading in ("FileNames", "FileLocations", "StackFrames"):
            entries = _ROW.findall(rows)
            tables[heading] = {n: name or dict([x.split("=") for x in fields.split()]) for n, name, fields in entries}

    def place(line: str) -> Any:
        frame = re.search(r"metadata=\{.*stack_frame_id=(\d+)", line)
        if frame is None:
            return None
        at = tables["FileLocations"][tables["StackFrames"][frame[1]]["file_location_id"]]
        return tables["FileNames"][at["file_name_id"]], int(at["line"]), int(at["column"])

    return _mapped(text, [place(line) for line in text.split("\n")])


def _of_hlo(lowered: Any, **_: Any) -> SourceMapDump:
    text = lowered.compiler_ir("hlo").get_hlo_module().to_string()
    return SourceMapDump(_hlo_map(text), text, "hlo:original")


def _of_optimized(lowered: Any, xla_compiler_flags: Any = None, **_: Any) -> SourceMapDump:
    # the cache may hold an equal program with other source locations
    text = lowered.compile_anew(xla_compiler_flags).as_text()
    return SourceMapDump(_hlo_map(text), text, "hlo:optimized")


register_pass(Pass("jaxpr", _record, _of_program))
register_pass(Pass("hlo:stable-hlo", _lower, _of_stablehlo))
register_pass(Pass("hlo:original", _lower, _of_hlo))
register_pass(Pass("hlo:optimized", _lower, _of_optimized))
