"""Chats: the ids of the reference, special tokens in messages, and templates that are hostile or wrong."""

from __future__ import annotations

import datetime
import enum
import importlib
import re

import golden_cases as golden
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atled import text

pytest.importorskip("jinja2")
CHATML = golden.CHATS[0]["template"]
NAMES = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}


def tokenizer(template=CHATML):
    found = golden.tokenizer("gpt2")
    found.chat_template, found.named_tokens = template, NAMES
    return found


def said(template, content="hi", **variables):
    """The text of a chat with one message."""
    return tokenizer(template).chat_text([{"role": "user", "content": content}], **variables)


def test_chats_are_those_of_the_reference():
    for case in golden.CHATS:
        ours, variables = tokenizer(case["template"]), {"tools": case["tools"]} if case["tools"] else {}
        for prompt, want in ((False, case["without"]), (True, case["with"])):
            given = {"add_generation_prompt": prompt, **variables}
            assert ours.chat_text(case["messages"], **given) == want["text"]
            assert ours.chat(case["messages"], allow_special=True, **given) == want["ids"]
            ids = ours.chat(case["messages"], **given)
            assert [i for i in ids if i < 3] == [i for i in want["safe"] if i < 3] and ours.decode(ids) == want["text"]
            if want["ids"] == want["safe"]:
                assert ids == want["ids"]


SPECIAL = ["<|im_end|>", "<|im_start|>", "<|endoftext|>"]
pieces = st.sampled_from(
    [*SPECIAL, "<", "|", ">", "<|", "im_end", "<|im_", "end|>", "|im_end|>", "a", " ", "\n", "\u00e9"]
)
contents = st.lists(pieces, max_size=8).map("".join)


@settings(max_examples=150, deadline=None)
@given(st.lists(contents, min_size=1, max_size=4))
def test_messages_cannot_have_special_tokens(strings):
    """Whatever is in them, special tokens are those of the template, and the text is the same."""
    each = "{% for part in m.content %}{{ part }}{% endfor %}{{ eos_token }}"
    ours = tokenizer(f"{{{{ bos_token }}}}{{% for m in messages %}}{each}{{% endfor %}}")
    messages = [{"role": "user", "content": strings}, {"role": "user", "content": strings[:1]}]
    ids = ours.chat(messages)
    assert [i for i in ids if i < 3] == [1, 2, 2] and ours.decode(ids) == ours.chat_text(messages)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("<>a", max_size=6), min_size=1, max_size=4))
def test_special_tokens_that_end_as_others_begin(strings):
    added = [text.AddedToken(t, i, is_special=True) for i, t in enumerate(["<a>", ">>", "a<<", "#!"])]
    given = text.Settings(chat_template="#!{% for part in messages[0].content %}{{ part }}{% endfor %}#!")
    ours = text.ByteLevelBPE({"<": 4, ">": 5, "a": 6, "#": 7}, [], added=added, settings=given)
    ids = ours.chat([{"role": "user", "content": strings}])
    assert ours.decode(ids) == f"#!{''.join(strings)}#!" and [i for i in ids if i < 4] == [3, 3]


def test_messages_that_are_allowed_to():
    ours, messages = tokenizer(), [{"role": "user", "content": "<|im_end|>"}]
    assert ours.chat(messages, allow_special=True).count(2) == 2 and ours.chat(messages).count(2) == 1


def test_roles_make_special_tokens():
    """Some templates form the special token of a role from its name."""
    ours = tokenizer("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}")
    assert ours.chat([{"role": "im_start", "content": "<|im_end|>"}])[0] == 1


def test_a_special_token_of_one_character():
    added = [text.AddedToken("#", 1, is_special=True)]
    ours = text.ByteLevelBPE(
        {"a": 0}, [], added=added, settings=text.Settings(chat_template="#{{ messages[0].content }}")
    )
    assert ours.chat([{"role": "user", "content": "a"}]) == [1, 0]
    with pytest.raises(ValueError, match="chat: a message contains a special token of one character"):
        ours.chat([{"role": "user", "content": "a#"}])


def test_messages_stay_as_they_are():
    messages = [{"role": "user", "content": "<|im_end|>", "nothing": None, "list": [1]}]
    template = "{% set _ = messages[0].update(x=1) %}"
    with pytest.raises(
        ValueError, match="chat: the chat template failed: access to attribute 'update' of 'dict' object is unsafe"
    ):
        tokenizer(template).chat(messages)
    tokenizer("{{ messages[0].content }}").chat(messages)
    assert messages == [{"role": "user", "content": "<|im_end|>", "nothing": None, "list": [1]}]


def test_what_templates_have():
    assert said("{{ strftime_now('%Y') }}") == str(datetime.datetime.now().year)
    assert said("{{ {'b': 'é<', 'a': [1.5, none]} | tojson }}") == '{"b": "é<", "a": [1.5, null]}'
    assert said("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=[',', ':']) }}") == '{"a":2,"b":1}'
    assert said("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "01"
    assert said("{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{{ ns.a }}{{ dict(x=1) }}") == "2{'x': 1}"
    assert said("  {% if true %}\n  a\n  {% endif %}\n") == "  a\n"
    assert said("{{ bos_token }}{{ eos_token }}{{ nothing }}{{ x }}", x=3) == "<|im_start|><|im_end|>3"
    assert said("{{ tools is none }}{{ add_generation_prompt }}", add_generation_prompt=False) == "TrueFalse"


def test_several_templates():
    ours, messages = tokenizer({"default": "d", "tool_use": "t"}), [{"role": "user", "content": "a"}]
    assert ours.chat_text(messages) == "d" and ours.chat_text(messages, tools=[{}]) == "t"


def test_what_messages_are_made_of():
    class Role(enum.StrEnum):
        USER = "user"

    class Loud(str):
        def shout(self):
            return "!"

    messages = ({"role": Role.USER, "content": Loud("a"), "n": np.int64(3), "x": (True, 1.5, None)},)
    template = "{{ messages[0] }}{{ messages[0].content.shout is defined }}"
    want = "{'role': 'user', 'content': 'a', 'n': 3, 'x': [True, 1.5, None]}False"
    assert tokenizer(template).chat_text(messages) == want
    for bad in (np.ones(2), object(), len, {1}):
        with pytest.raises(TypeError, match="messages and variables must consist of strings, numbers, lists and dicts"):
            tokenizer(template).chat([{"role": "user", "content": bad}])
    for depth in (150, 5000):
        deep = "a"
        for _ in range(depth):
            deep = [deep]
        with pytest.raises(ValueError, match="messages must not be nested deeper than 100"):
            tokenizer(template).chat([{"role": "user", "content": deep}])
    for bad in ("hi", [], {"role": "user"}, ["hi"]):
        with pytest.raises(ValueError, match="chat: messages must be a list of dicts with role and content"):
            tokenizer(template).chat(bad)


ESCAPES = [
    "{{ ''.__class__.__mro__ }}",
    "{{ messages.__class__ }}",
    "{{ ''['__class__'] }}",
    "{{ ''|attr('__class__') }}",
    "{{ [''] | map(attribute='__class__') | list | first }}",
    "{{ raise_exception.__globals__ }}",
    "{{ strftime_now.__globals__['__builtins__'] }}",
    "{{ strftime_now.__closure__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ namespace.check.__globals__ }}",
    "{{ dict.__globals__ }}",
    "{{ cycler.__init__.__globals__ }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ lipsum.__globals__ }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context.environment }}",
    "{{ loop.__init__ }}{{ range.__self__ }}",
    "{{ '{0.__class__}'.format('') }}",
    "{{ '{0.__class__.__mro__}'.format_map({'0': ''}) }}",
    "{{ ('{0.__class__}' | attr('format'))('') }}",
    "{{ (lambda: 1)() }}",
    "{% set ns = namespace() %}{% set ns.__class__ = 1 %}",
    "{{ namespace(__html__=raise_exception) }}",
    "{{ namespace({'_x': 1}) }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{% extends 'x' %}",
    "{{ messages.append(1) }}",
    "{{ messages[0].clear() }}",
    "{{ range(100001) | length }}",
]


@pytest.mark.parametrize("template", ESCAPES)
def test_templates_do_not_reach_python(template):
    try:
        result = said(template)
    except ValueError as error:
        assert re.match("chat: the chat template (failed|is not valid): ", str(error))
    else:
        assert result in ("", "{0.__class__}"), result  # undefined


@pytest.mark.parametrize(
    "template, says",
    [
        ("{{ raise_exception('roles must alternate') }}", "the chat template failed: roles must alternate"),
        ("{{ nothing.more }}", "the chat template failed: 'nothing' is undefined"),
        ("{{ 1 / 0 }}", "the chat template failed: ZeroDivisionError"),
        ("{{ 'a' + 1 }}", "the chat template failed: TypeError"),
        ("{{ messages | tojson(indent={}) }}", "the chat template failed: TypeError"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "the chat template failed: RecursionError"),
        ("{% if %}", "the chat template is not valid: Expected an expression"),
        ("{{ 'a' | nothing }}", "the chat template is not valid: No filter named 'nothing'"),
        ("{% for %}", "the chat template is not valid: "),
        ("{{" + "(" * 5000 + "1" + ")" * 5000 + "}}", "the chat template is not valid: "),
        ("{{ '\\ud800' }}", "text must not have lone surrogates"),
    ],
)
def test_templates_that_fail(template, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        said(template)


def test_no_template():
    with pytest.raises(ValueError, match="chat: the tokenizer has no chat template"):
        said(None)


def test_without_the_package(monkeypatch):
    def missing(name):
        raise ImportError(name)

    ours = tokenizer("not compiled before")
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(
        ImportError, match=r"chat templates need the package jinja2, which is not installed(?s:.*)atled\[text\]"
    ):
        ours.chat([{"role": "user", "content": "a"}])


def test_an_old_package(monkeypatch):
    monkeypatch.setattr(importlib.import_module("jinja2"), "__version__", "3.1.5")
    with pytest.raises(ImportError, match=r"chat templates need jinja2 3\.1\.6 or newer; got 3\.1\.5"):
        said("not compiled before, either")
