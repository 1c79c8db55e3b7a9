"""Generates the pages of the API reference, one for each public namespace, from signatures and docstrings.

Constants, dtypes, aliases, and functions of other packages have no docstring of ours: for these, `WORDS` has the
descriptions, and `reference_examples.txt` the examples.

`pages()` returns Markdown by file name; the build of the site calls it, and its result is not committed. The public
names are those in `tests/structure/public_names.txt`. `entries()` returns the same content as data, for tests.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pathlib
import re
import types
from dataclasses import dataclass
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAMES = ROOT / "tests" / "structure" / "public_names.txt"
EXAMPLES = ROOT / "scripts" / "reference_examples.txt"  # of names without a docstring

PORTED = "For programs written for JAX"
SUMMARIES = {  # by namespace
    "atled": "Transforms, devices, settings.",
    "atled.jax.ad_checkpoint": "Rematerialization: what the backward pass stores and what it recomputes.",
    "atled.checkpoints": "Checkpoints of pytrees on disk and in object stores.",
    "atled.jax.custom_batching": "Custom rules for `vmap`.",
    "atled.jax.custom_derivatives": "Custom derivative rules.",
    "atled.data": "Input pipelines.",
    "atled.debug": "Printing, breakpoints and callbacks in compiled code.",
    "atled.distributed": "Multi-process runs.",
    "atled.jax.dtypes": "Dtypes and promotion.",
    "atled.errors": "Exceptions and warnings.",
    "atled.export": "Compiled programs as portable files.",
    "atled.image": "Resizing images.",
    "atled.inspect": "Visualization of shardings and of communication between devices.",
    "atled.jax": "JAX's public API, as names for the objects of atled.",
    "atled.lax": "XLA-level ops, loops, branches, collectives.",
    "atled.jax.memory": "The memory spaces of devices.",
    "atled.metrics": "Metrics accumulated over steps, devices and processes.",
    "atled.nn": "Layers and functions for neural networks.",
    "atled.nn.initializers": "Weight initializers.",
    "atled.nn.losses": "Losses.",
    "atled.numpy": "NumPy's functions.",
    "atled.numpy.fft": "Fourier transforms.",
    "atled.numpy.linalg": "Linear algebra.",
    "atled.optim": "Optimizers and schedules.",
    "atled.profiler": "Profiles of time and memory.",
    "atled.random": "Keys and random numbers.",
    "atled.jax.ref": "Mutable arrays.",
    "atled.settings": "Settings: read, changed, overridden.",
    "atled.sharding": "Device meshes and shardings of arrays.",
    "atled.jax.stages": "The stages of a jitted function: traced, lowered, compiled.",
    "atled.test_util": "Helpers for tests: derivatives checked against finite differences.",
    "atled.topologies": "Ahead-of-time compilation for devices that are not present.",
    "atled.train": "The training loop and its parts.",
    "atled.tree": "Functions of pytrees: nested lists, tuples, dicts and modules.",
    "atled.jax.tree_util": "Pytree functions under JAX's names.",
    "atled.typing": "Types for annotations.",
}
LAYER = "A layer, as a pair of functions, `init` and `apply`."
WORDS = {  # descriptions of names of other packages, and of values that cannot have a docstring, by last name
    "device_kind_handler_dict": "Functions that arrange devices in meshes, by device kind; a program may add entries.",
    "maximum_supported_calling_convention_version": "The newest loadable calling convention of exported files.",
    "minimum_supported_calling_convention_version": "The oldest loadable calling convention of exported files.",
    "upstream_dialects": "The MLIR dialects that modules may use in addition to StableHLO.",
    "ir_type_handlers": "Functions that convert abstract values to MLIR types, by class.",
    "__version__": "The version of the package.",
    "__array_api_version__": "The version of the array API standard that the namespace follows.",
    "ComplexWarning": "NumPy's warning about a conversion that discards imaginary parts.",
    "Device": "A device: a CPU, a GPU or a core of a TPU, with its `platform`, `id` and `process_index`.",
    "checkpoint_policies": "Policies for `remat`: functions that decide which values to save for the backward pass.",
    "float0": "The dtype of gradients with respect to integers; it holds no data.",
    "bfloat16": "The 16-bit float with the exponent of `float32`.",
    "Step": "The type of step numbers, `int`.",
    "ErrorCategory": "A category of errors; `checkify` takes a set of categories.",
    "all_checks": "All checks.",
    "automatic_checks": "The checks that are inserted automatically: NaN, indices, divisions.",
    "div_checks": "The check for a division by zero.",
    "float_checks": "The checks for NaN and for a division by zero.",
    "index_checks": "The check for indices out of bounds.",
    "nan_checks": "The check for NaN.",
    "user_checks": "The explicit checks, written with `check`.",
    "Effects": "The type of sets of effects, `frozenset`.",
    "ParamDict": "The parameters of an equation, by name.",
    "array_types": "The classes whose instances count as arrays.",
    "no_effects": "The empty set of effects.",
    "deserialize_portable_artifact": "A StableHLO module from the bytes of a portable artifact.",
    "serialize_portable_artifact": "A StableHLO module as bytes that later versions read.",
    "hlo_to_stablehlo": "An HLO module as StableHLO.",
    "refine_polymorphic_shapes": "A module in which dynamic shapes are replaced by concrete ones.",
    "primitive_jvps": "Forward-mode rules, by primitive: `rule(primals, tangents, **params)` gives result and tangent.",
    "primitive_transposes": "Transpose rules, by primitive: `rule(cotangent, *operands, **params)` gives cotangents.",
    "fancy_primitive_batchers": "Batching rules, by primitive, that also get the size and name of the batch axis.",
    "dce_rules": "Dead-code elimination rules, by primitive.",
    "not_mapped": "The batch axis of an operand without a batch axis, a marker.",
    "DEVICE_TO_DEVICE_TYPE": "The channel type for transfers between devices.",
    "RECV_FROM_HOST_TYPE": "The channel type for transfers from the host.",
    "SEND_TO_HOST_TYPE": "The channel type for transfers to the host.",
    "Token": "A token, which orders effects in an MLIR module.",
    "Value": "An SSA value in an MLIR module.",
    "token_type": "The type of tokens in an MLIR module.",
    "Backend": "The client for the devices of one platform.",
    "DotDimensionNumbers": "The axes of `dot_general`: contracting and batch axes of both operands.",
    "e": "Euler's number.",
    "euler_gamma": "The Euler-Mascheroni constant.",
    "inf": "Infinity.",
    "nan": "Not a number.",
    "newaxis": "`None`: an index that adds an axis of length one.",
    "pi": "The ratio of a circle's circumference to its diameter.",
    "index_exp": "`index_exp[1:3, 0]` is the index as a tuple.",
    "s_": "`s_[1:3]` is the index as an object: a slice, or a tuple of them.",
    "ProfileData": "A profile from a file, with its planes, lines and events.",
    "ProfileEvent": "An event of a profile: a name, a start, a duration.",
    "ProfileOptions": "Options of a profile: what is recorded.",
    "ProfilePlane": "The events of one device or of the host.",
    "TraceAnnotation": "A context manager that names a span of the host's timeline.",
    "register_subprocess": "Include a subprocess in profiles.",
    "CompilerOptions": "Options of a compilation, by name.",
    "KeyEntry": "One key of a path in a pytree.",
    "KeyPath": "A path in a pytree, a tuple of keys.",
    "dtype": "NumPy's class of dtypes.",
    "generic": "NumPy's base class of all scalar types, for `issubdtype`.",
    "number": "All numbers, for `issubdtype`.",
    "integer": "All integers, for `issubdtype`.",
    "signedinteger": "All signed integers, for `issubdtype`.",
    "unsignedinteger": "All unsigned integers, for `issubdtype`.",
    "inexact": "All floats and complex numbers, for `issubdtype`.",
    "floating": "All floats, for `issubdtype`.",
    "complexfloating": "All complex numbers, for `issubdtype`.",
    "flexible": "NumPy's base class of strings and records, for `issubdtype`; no atled array has such a dtype.",
    "character": "NumPy's base class of strings, for `issubdtype`; no atled array has such a dtype.",
    "object_": "NumPy's class of objects, for `issubdtype`; no atled array has such a dtype.",
    "ArrayLike": "The type of array arguments: an atled array, a NumPy array, or a number.",
    "DTypeLike": "The type of dtype arguments: a dtype, its name, or a scalar type.",
    "default_registry": "The pytree registry.",
    **dict.fromkeys(
        (
            "Elu", "Exp", "FanInSum", "Flatten", "Gelu", "Identity", "LeakyRelu", "LogSoftmax", "Relu", "Selu",
            "Sigmoid", "Softmax", "Softplus", "Tanh",
        ),
        LAYER,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """The section of the reference on a public name."""

    name: str
    kind: str
    signature: str
    summary: str
    details: str
    example: str


def namespaces() -> dict[str, list[str]]:
    """The last parts of the public names, by namespace."""
    found: dict[str, list[str]] = {}
    for line in NAMES.read_text().split():
        module, _, last = line.rpartition(".")
        found.setdefault(module, []).append(last)
    return {
        **found,
        "atled.typing": ["ArrayLike", "DTypeLike"],
    }  # aliases, which are not in the file


def entries(namespace: str) -> list[Entry]:
    """The entries of a namespace's page; nested namespaces have pages of their own."""
    every = namespaces()
    found = []
    for last in every[namespace]:
        if f"{namespace}.{last}" not in every:
            found.append(_entry(namespace, last, getattr(importlib.import_module(namespace), last)))
    return found


def _entry(namespace: str, last: str, value: Any) -> Entry:
    kind = _kind(value)
    text = _docstring(value, last)
    before, mark, rest = text.partition(">>>")
    before, example = before.rstrip(), mark + rest or _written_example(f"{namespace}.{last}", value)
    summary, _, details = before.partition("\n\n")
    return Entry(f"{namespace}.{last}", kind, _signature(f"{namespace}.{last}", value), summary, details, example)


@functools.cache
def written_examples() -> dict[str, str]:
    """The examples in `reference_examples.txt`, by public name; a line `# name` precedes each example."""
    blocks = re.split(r"^# ", EXAMPLES.read_text(), flags=re.M)[1:]
    return {name: example.strip() for name, _, example in (block.partition("\n") for block in blocks)}


def _written_example(name: str, value: Any) -> str:
    """The written example of a name, or of another name of the same object; "" if there is none."""
    every = written_examples()
    if name in every or isinstance(value, (int, float, str, types.NoneType)):
        return every.get(name, "")
    return next((example for other, example in every.items() if _named(other) is value), "")


def _named(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def _kind(value: Any) -> str:
    if inspect.isclass(value):
        return "class"
    if isinstance(value, types.ModuleType):
        return "distribution"
    return "function" if callable(value) and not isinstance(value, types.GenericAlias) else "value"


def _docstring(value: Any, last: str) -> str:
    """The docstring of a value of ours, the entry in `WORDS` for other packages' values, or ""."""
    home = getattr(value, "__module__", None) or type(value).__module__
    if last in WORDS and (not home.startswith("atled") or not _is_own(value)):
        return WORDS[last]
    if isinstance(value, types.ModuleType):
        return _of_distribution(value)
    own = value.__dict__.get("__doc__") if inspect.isclass(value) else getattr(value, "__doc__", None)
    if home.startswith("atled") or _is_own(value):
        return inspect.cleandoc(own or type(value).__doc__ or "")
    return ""


def _of_distribution(value: Any) -> str:
    """The distribution as named in a docstring of its functions: "The density, for the normal distribution." """
    said = getattr(value, value.__all__[0]).__doc__
    of = said.partition(", for ")[2] or re.sub(r"^The (logarithm of the )?(density of |probability that )", "", said)
    return f"{of[0].upper()}{of[1:].rstrip('.')}: a namespace of functions."


def _is_own(value: Any) -> bool:
    """Whether the value, or its class, is defined in atled."""
    of = value if inspect.isclass(value) or inspect.isfunction(value) else type(value)
    return str(getattr(of, "__module__", "")).startswith("atled")


def _signature(name: str, value: Any) -> str:
    if inspect.isclass(value) and issubclass(value, BaseException):
        return f"class {name}({value.__bases__[0].__name__})"
    if isinstance(value, types.ModuleType):
        return name
    prefix = "class " if inspect.isclass(value) else ""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return f"{prefix}{name}" if callable(value) else f"{name} = {_short(value)}"
    parts = _parameters(found)
    gives = "" if prefix or found.return_annotation is found.empty else f" -> {_annotation(found.return_annotation)}"
    line = f"{prefix}{name}({', '.join(parts)}){gives}"
    if len(line) <= 90:
        return line
    return f"{prefix}{name}(\n" + "".join([f"    {part},\n" for part in parts]) + f"){gives}"


def _parameters(found: inspect.Signature) -> list[str]:
    parts: list[str] = []
    last_kind = None
    for p in found.parameters.values():
        if last_kind == p.POSITIONAL_ONLY and p.kind != p.POSITIONAL_ONLY:
            parts.append("/")
        if p.kind == p.KEYWORD_ONLY and last_kind not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            parts.append("*")
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = "" if p.annotation is p.empty else _annotation(p.annotation)
        text = f"{stars}{p.name}" + (f": {kind}" if kind not in ("", "Any") else "")
        if p.default is not p.empty:
            text += (" = " if ":" in text else "=") + _short(p.default)
        parts.append(text)
        last_kind = p.kind
    return [*parts, "/"] if last_kind == inspect.Parameter.POSITIONAL_ONLY else parts


def _annotation(kind: Any) -> str:
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return text.strip("'\"")


def _short(value: Any) -> str:
    """The `repr` of a value without memory addresses, at most 60 characters."""
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    text = re.sub(r"<(?:\w+\.)*(\w+) object at 0x\w+>", r"\1(...)", " ".join(repr(value).split()))
    if " at 0x" in text and isinstance(value, tuple):
        return "(" + ", ".join([getattr(v, "__name__", "...").strip("_<>") for v in value]) + ")"
    text = re.sub(
        r"<(?:bound method|function|class|built-in function) '?([\w.<>]+?)'?( at 0x\w+| of .*)?>", r"\1", text
    )
    return text if len(text) <= 60 else text[:57] + "..."


def pages() -> dict[str, str]:
    """The Markdown of every page, by file name."""
    written = {f"{name}.md": _page(name) for name in namespaces()}
    ours, ported = parts()
    head = (
        "# API reference\n\nSignatures, docstrings and examples of every public name, generated from the package when "
        "the site is built. Examples are executed with the tests.\n\n"
    )
    written["index.md"] = f"{head}{_table(ours)}\n## {PORTED}\n\n{_table(ported)}"
    return written


def parts() -> tuple[list[str], list[str]]:
    """The namespaces of atled, and those for programs written for JAX."""
    ported = [name for name in namespaces() if name.startswith("atled.jax")]
    return [name for name in namespaces() if name not in ported], ported


def _table(names: list[str]) -> str:
    rows = [f"| [`{name}`]({name}.md) | {len(namespaces()[name])} | {summary_of(name)} |" for name in names]
    return "\n".join(["| namespace | names | content |", "| --- | --- | --- |", *rows]) + "\n"


def summary_of(namespace: str) -> str:
    """The summary of a namespace: from `SUMMARIES`, or the first paragraph of its docstring."""
    if namespace in SUMMARIES:
        return SUMMARIES[namespace]
    text = inspect.cleandoc(importlib.import_module(namespace).__doc__ or "").split("\n\n")[0]
    return " ".join(_escaped(text).split()).replace("|", "\\|")


def _page(namespace: str) -> str:
    found = entries(namespace)
    inside = [last for last in namespaces()[namespace] if f"{namespace}.{last}" in namespaces()]
    lines = [f"# {namespace}", "", summary_of(namespace), ""]
    if inside:
        lines += ["Inside: " + ", ".join([f"[`{last}`]({namespace}.{last}.md)" for last in inside]) + ".", ""]
    for title, kinds in (("Functions", ("function", "distribution")), ("Classes", ("class",)), ("Values", ("value",))):
        some = [e for e in found if e.kind in kinds]
        if some:
            lines += [f"## {title}", ""]
        for e in some:
            lines += _section(e)
    return "\n".join(lines)


def _section(e: Entry) -> list[str]:
    last = e.name.rpartition(".")[2]
    lines = [f"### {_escaped(last)} {{ #{e.name} }}", "", "```python", e.signature, "```", "", _markdown(e.summary), ""]
    if e.details:
        lines += [_markdown(e.details), ""]
    if e.example:
        lines += ["```pycon", *e.example.splitlines(), "```", ""]
    return [*lines, *_methods(e)]


def _methods(e: Entry) -> list[str]:
    """A list item for each public method that has a docstring."""
    module, _, last = e.name.rpartition(".")
    value = getattr(importlib.import_module(module), last)
    if isinstance(value, types.ModuleType):
        members = {name: getattr(value, name) for name in value.__all__}
    elif inspect.isclass(value) and value.__module__.startswith("atled"):
        members = {
            n: getattr(value, n) if isinstance(v, (classmethod, staticmethod)) else v for n, v in vars(value).items()
        }
    else:
        return []
    lines = []
    for name, member in members.items():
        text = inspect.cleandoc(getattr(member, "__doc__", None) or "").split("\n\n")[0]
        if name.startswith("_") or not text or not (callable(member) or isinstance(member, property)):
            continue
        try:
            parts = [] if isinstance(member, property) else _parameters(inspect.signature(member))
            parts = parts[1:] if member is vars(value).get(name) and inspect.isclass(value) else parts  # without self
            shown = "" if isinstance(member, property) else f"({', '.join(parts[1:] if parts[:1] == ['/'] else parts)})"
        except (ValueError, TypeError):
            shown = "(...)"
        lines.append(f"- `{name}{shown}`: {_markdown(' '.join(text.split()))}")
    return [*lines, ""] if lines else []


def _markdown(text: str) -> str:
    """The text of a docstring as Markdown: sections of arguments become lists, Markdown characters are escaped."""
    lines = []
    within = False
    for line in text.splitlines():
        argument = re.match(r"    ([\w*][\w*, ]*): (.*)", line) if within else None
        if re.fullmatch(r"(Args|Returns|Raises|Fields|Attributes):", line):
            within = True
            lines += ["", f"**{line[:-1]}**", ""]
        elif argument:
            lines.append(f"- `{argument[1]}`: {_escaped(argument[2])}")
        elif within and line.startswith("    "):
            lines.append("    " + _escaped(line.strip()))
        else:
            within = within and not line
            lines.append(line if line.startswith("    ") else _escaped(line))
    return "\n".join(lines).strip()


def _escaped(text: str) -> str:
    """Text with Markdown characters escaped, except in backticks and in the mark of a list item."""
    mark = re.match(r"(?:[*-] )?", text)[0]  # type: ignore[index]
    parts = re.split(r"(`[^`]*`)", text[len(mark) :])
    parts[::2] = [re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts[::2]]
    return mark + "".join(parts)
