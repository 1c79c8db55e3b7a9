"""What can be called as a function of JAX can be called here: parameters, their order and kinds, and their defaults."""

from __future__ import annotations

import importlib
import inspect
import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "names"))
import explained
import offered
import peers

jax = pytest.importorskip("jax")

NAMESPACES = (
    "jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.lax", "jax.lax.linalg", "jax.random", "jax.nn",
    "jax.nn.initializers", *peers.MODULES,
)  # fmt: skip
REFUSED = "JAX takes it only to refuse it"
UFUNC = "JAX's ufuncs name `out` and `where` only to refuse them"
# Of JAX, for what is not given.
SENTINELS = ("NoDefault", "NotSpecified", "Unspecified", "UnspecifiedValue", "InferFromArgs")
SENTINEL = "each has a value of its own for what is not given"
# By namespace and function: the parameters that differ without a difference, and why. Others are on the page.
EXPLAINED: dict[str, dict[str, tuple[str, str]]] = {
    "jax.numpy": {
        **dict.fromkeys(
            ("add", "bitwise_and", "bitwise_or", "bitwise_xor", "logaddexp", "logaddexp2", "logical_and", "logical_or",
             "logical_xor", "maximum", "minimum", "multiply", "negative", "subtract"),
            ("args out where", UFUNC),
        ),
        "array": ("args", "positions after dtype are `copy`, `order`, `ndmin`, as NumPy once had them"),
        "fromiter": ("args kwargs", "JAX passes all on to NumPy; here they have NumPy's names"),
    },
    "jax": {
        **dict.fromkeys(("grad", "value_and_grad", "vjp"), ("reduce_axes", REFUSED)),
        "local_devices": ("host_id", "deprecated"),
        "make_jaxpr": ("static_argnums", "None is none of them, as ()"),
        "shard_map": ("axis_names", "None is all of them, as the empty set"),
    },
    "jax.lax": {
        "cond": ("operand", SENTINEL),
        "switch": ("operand", SENTINEL),
        "random_gamma_grad": ("args", "JAX names no parameters"),
        "round": ("rounding_method", "the same member of our own enumeration"),
        "rng_bit_generator": ("algorithm", "the same member of our own enumeration"),
    },
}  # fmt: skip


def functions(namespace: str) -> list[str]:
    """The functions that both have."""
    try:
        here = importlib.import_module(offered.ours(namespace))
    except ModuleNotFoundError:
        return []
    there = importlib.import_module(namespace)
    both = [n for n in peers.kept()[namespace] if hasattr(here, n) and is_function(getattr(there, n))]
    return [n for n in both if _signature(getattr(there, n)) and _signature(getattr(here, n))]


def is_function(value: object) -> bool:
    is_type = inspect.isclass(value) or hasattr(value, "__origin__")  # such as tuple[int, ...]
    return callable(value) and not is_type and type(value).__name__ != "_ScalarMeta"


def _signature(value: object) -> inspect.Signature | None:
    try:
        return inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # those of jaxlib say none
        return None


def differences(theirs: inspect.Signature, ours: inspect.Signature) -> list[str]:
    """The parameters for which a call that JAX takes is not taken here, or means something else."""
    out = []
    have = ours.parameters
    positional = [p for p in have.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_any = {p.kind for p in have.values()}
    place = 0
    for p in theirs.parameters.values():
        if p.name.startswith("_") or type(p.default).__name__ == "DeprecatedArg":
            continue
        if p.kind == p.POSITIONAL_ONLY or p.kind == p.POSITIONAL_OR_KEYWORD:
            mine = positional[place] if place < len(positional) else None
            place += 1
            if mine is None and p.VAR_POSITIONAL in takes_any and p.kind == p.POSITIONAL_ONLY:
                continue
            is_named = p.kind == p.POSITIONAL_ONLY or (
                mine is not None and mine.name == p.name and mine.kind == p.POSITIONAL_OR_KEYWORD
            )
            if mine is None or not is_named or not is_default(p, mine):
                out.append(p.name)
        elif p.kind == p.KEYWORD_ONLY:
            mine = have.get(p.name)
            if mine is None and p.VAR_KEYWORD in takes_any:
                continue
            if mine is None or mine.kind == p.POSITIONAL_ONLY or not is_default(p, mine):
                out.append(p.name)
        elif p.kind not in takes_any:
            out.append(p.name)
    return out


def is_default(theirs: inspect.Parameter, ours: inspect.Parameter) -> bool:
    """Whether a parameter that can be left out can be left out here, and has the same value then."""
    if theirs.default is theirs.empty:
        return True
    if ours.default is theirs.default or type(theirs.default).__name__ in SENTINELS:
        return True
    if type(ours.default) is type(theirs.default) and ours.default == theirs.default:
        return True
    return _told(ours.default) == _told(theirs.default) and not isinstance(theirs.default, (int, float, str))


def _told(value: object) -> str:
    """What a default is called, without where it comes from."""
    text = f"{value.__name__}" if inspect.isfunction(value) else repr(value)
    return re.sub(r"<class '|'>|\b(jax|atled)[\w.]*\.| at 0x\w+", "", text)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_parameters(namespace):
    names = functions(namespace)
    if not names:
        pytest.skip("no function is here")
    there, here = (importlib.import_module(n) for n in (namespace, offered.ours(namespace)))
    given = {**EXPLAINED.get(namespace, {}), **explained.PARAMETERS.get(namespace, {})}
    wrong = {n: f"{given[n]} of no function" for n in set(given) - set(names)}
    for name in names:
        found = differences(*[inspect.signature(getattr(m, name)) for m in (there, here)])
        said = given.get(name, ("", ""))[0].split()
        if sorted(found) != sorted(said):
            wrong[name] = f"{found}, explained {said}: {inspect.signature(getattr(there, name))}"
    assert wrong == {}, "\n".join([f"{n}: {w}" for n, w in wrong.items()])


def test_the_comparison_finds_differences():
    def theirs(a, b=1, /, c=2, *, d=None): ...
    def same(x, y=1, c=2, extra=0, *, d=None): ...
    def renamed(x, y=1, z=2, *, d=None): ...
    def other(x, y=2, c=3, *, e=None): ...

    compare = lambda f: differences(inspect.signature(theirs), inspect.signature(f))
    assert compare(same) == [] and compare(renamed) == ["c"] and compare(other) == ["b", "c", "d"]
