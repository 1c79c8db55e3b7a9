"""Generated functions have lines that tracebacks and debuggers show."""

from __future__ import annotations

import inspect
import traceback

import pytest

import atled
import atled.numpy as jnp
from atled.core import source


def test_a_traceback_shows_the_lines_of_a_launch():
    f = atled.jit(lambda x: x + 1)
    f(jnp.ones(3)), f(jnp.ones(3))
    with atled.settings.override(hide_frames=False), pytest.raises(TypeError) as caught:
        f("a")
    frames = [s for s in traceback.extract_tb(caught.value.__traceback__) if s.filename.startswith("<atled ")]
    assert frames and all([s.line for s in frames]) and "miss((x" in frames[0].line
    assert all([source.is_library_file(s.filename) for s in frames])


def test_the_source_of_a_generated_function_is_known():
    space = {}
    exec(source.compiled("def double(x):\n    return 2 * x"), space)
    assert "return 2 * x" in inspect.getsource(space["double"]) and space["double"](4) == 8
