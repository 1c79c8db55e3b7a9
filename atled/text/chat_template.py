"""Chat templates: Jinja templates that turn messages into the text that a model was trained on.

Templates come with models and may be hostile. They run in Jinja's sandbox, on copies of the messages that consist of
strings, numbers, lists and dicts only, so they reach neither Python's internals nor the caller's objects. They can
still fail, and compute for a long time. `tokenizer.py` makes ids of the text.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NoReturn

import numpy as np

from atled.core import errors
from atled.text import extras
from atled.text.added_tokens import Finder

_PACKAGES = ("jinja2.ext", "jinja2.sandbox", "jinja2")
_OLDEST = (3, 1, 6)  # the sandbox of older versions can be escaped
_DEPTH = 100  # of lists and dicts in messages


def render(template: str, variables: Mapping[str, Any]) -> str:
    """The text of a template with these variables."""
    jinja2 = _jinja2()
    compiled = _compiled(template)
    try:
        return compiled.render(variables)
    except jinja2.TemplateError as error:
        message = error.message or type(error).__name__
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as error:
        message = f"{type(error).__name__}: {error}"
    raise ValueError(errors.explained(f"chat: the chat template failed: {message}"))


def _jinja2() -> Any:
    """The package."""
    _, _, jinja2 = (extras.package(name, "chat", "chat templates need") for name in _PACKAGES)
    if tuple([int(n) for n in jinja2.__version__.split(".")[:3] if n.isdecimal()]) < _OLDEST:
        says = f"chat: chat templates need jinja2 {'.'.join(map(str, _OLDEST))} or newer; got {jinja2.__version__}."
        raise ImportError(errors.explained(says, "pip install -U jinja2."))
    return jinja2


@functools.lru_cache(16)
def _compiled(template: str) -> Any:
    jinja2 = _jinja2()
    try:
        return _environment().from_string(template)
    except (jinja2.TemplateError, RecursionError, MemoryError, SyntaxError, ValueError) as error:
        says = f"chat: the chat template is not valid: {getattr(error, 'message', None) or error}"
        raise ValueError(errors.explained(says)) from None


@functools.cache
def _environment() -> Any:
    """The sandbox, with the functions and settings that published templates rely on."""
    jinja2 = _jinja2()

    class Namespace(jinja2.runtime.Namespace):
        """Without names that begin with an underscore, which Python gives a meaning."""

        def __init__(*args: Any, **named: Any) -> None:
            given = dict(*args[1:], **named)
            for name in given:
                Namespace.check(name)
            jinja2.runtime.Namespace.__init__(args[0], given)

        def __setitem__(self, name: str, value: Any) -> None:
            Namespace.check(name)
            jinja2.runtime.Namespace.__setitem__(self, name, value)

        @staticmethod
        def check(name: Any) -> None:
            if not isinstance(name, str) or name.startswith("_"):
                raise jinja2.exceptions.SecurityError(f"a namespace must not have the attribute {name!r}")

    class Generation(jinja2.ext.Extension):
        """`{% generation %}` marks answers for training; here it changes nothing."""

        tags: ClassVar[set[str]] = {"generation"}

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def raise_exception(message: Any) -> NoReturn:
        raise jinja2.TemplateError(str(message))

    def tojson(
        x: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(form: str) -> str:
        return datetime.datetime.now().strftime(form)

    def new_dict(*args: Any, **named: Any) -> dict[Any, Any]:
        return dict(*args, **named)

    extensions = [Generation, jinja2.ext.loopcontrols]
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=extensions
    )
    del environment.globals["lipsum"]
    environment.globals.update(
        dict=new_dict, namespace=Namespace, raise_exception=raise_exception, strftime_now=strftime_now
    )
    environment.filters["tojson"] = tojson
    return environment


def plain(x: Any, depth: int = 0) -> Any:
    """A copy of messages that consists of strings, numbers, lists and dicts only, without entries that are None."""
    if x is None or type(x) in (str, int, float, bool):
        return x
    if isinstance(x, np.generic):
        return plain(x.item(), depth)
    if isinstance(x, str):
        return str.__str__(x)  # subclasses have more methods
    if isinstance(x, (int, float)):
        return int.__int__(x) if isinstance(x, int) else float.__float__(x)
    if depth > _DEPTH:
        raise ValueError(errors.explained(f"chat: messages must not be nested deeper than {_DEPTH}."))
    if isinstance(x, Mapping):
        is_message = depth == 1 and "role" in x
        entries = {k: v for k, v in x.items() if not (is_message and v is None)}
        return {k if isinstance(k, (bool, int, float)) else str(k): plain(v, depth + 1) for k, v in entries.items()}
    if isinstance(x, (list, tuple)):
        return [plain(y, depth + 1) for y in x]
    says = "chat: messages and variables must consist of strings, numbers, lists and dicts"
    raise TypeError(errors.explained(f"{says}; got {type(x).__name__}.", "the JSON schema of a tool, not a function."))


def unused_character(x: Any) -> str:
    """A character that is in none of the strings."""
    used = set("".join(_strings(x)))
    candidates = itertools.chain(range(0xFDD0, 0xFDF0), range(0x10FFFF, 0x10000, -1))  # first those without a meaning
    return next(chr(i) for i in candidates if chr(i) not in used)


def _strings(x: Any) -> Iterator[str]:
    if isinstance(x, str):
        yield x
    elif isinstance(x, Mapping):
        for key, value in x.items():
            yield from _strings(key)
            yield from _strings(value)
    elif isinstance(x, (list, tuple)):
        for y in x:
            yield from _strings(y)


def marked(x: Any, specials: Finder, mark: str) -> Any:
    """The messages with a mark inside of each special token, and of what may be the beginning of one, in all strings
    but roles: templates compare these, and make special tokens of them.
    """
    if isinstance(x, str):
        return _marked_string(x, specials, mark)
    if isinstance(x, dict):
        return {k: v if k == "role" and isinstance(v, str) else marked(v, specials, mark) for k, v in x.items()}
    return [marked(y, specials, mark) for y in x] if isinstance(x, list) else x


def _marked_string(text: str, specials: Finder, mark: str) -> str:
    """The text with a mark after the first character of each special token, and of each beginning of one at the end:
    a template may put the next string right after this one.
    """
    tokens = list(specials.overlapping(text))
    if any([len(token.text) == 1 for _, token in tokens]):
        says = "chat: a message contains a special token of one character, which cannot be text."
        raise ValueError(errors.explained(says, "allow_special=True, if nobody else writes the messages."))
    lengths = range(1, 1 + min(len(text), max(specials.lengths, default=0)))
    ends = [n for n in lengths if text[-n:] in specials.beginnings and not text[-n:].isspace()]
    cuts = sorted({start + 1 for start, _ in tokens} | {len(text) - n + 1 for n in ends})
    return mark.join([text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])])
