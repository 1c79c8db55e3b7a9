"""Parameters of ops are annotations, whichever way Python makes these. No `from __future__` here, on purpose."""

import subprocess
import sys
from typing import Any, ClassVar

import numpy as np

from atled.core.annotation_lookup import annotations_of
from atled.core.op import Op
from atled.core.trace import bind
from atled.ops.elementwise_family import Elementwise


class Power(Op):
    exponent: int
    count: ClassVar[int] = 3

    def on(self, x: Any) -> Any:
        return x**self.exponent


class Further(Power):
    scale: "float"


class Nothing(Power):
    pass


def test_fields_of_ops():
    assert Power.fields == ("exponent",) and Power(2).on(3) == 9
    assert Further.fields == ("exponent", "scale") and Further(2, 0.5).scale == 0.5
    assert Nothing.fields == ("exponent",) and annotations_of(Nothing) == {}


def test_annotations_of_functions():
    def f(x: int) -> "float": ...

    assert annotations_of(f) == {"x": int, "return": "float"}


class Scaled(Elementwise):
    """x times a number."""

    factor: float
    takes = "f"

    def lower(self, build: Any, x: Any) -> Any:
        from atled.ops import elementwise

        return build.apply(lambda v: elementwise.mul(v, self.factor), x)


def test_an_op_of_a_user_runs():
    assert np.asarray(bind(Scaled(3.0), np.float32(2))) == 6


LATER = """
import sys, types
library = types.ModuleType("annotationlib")  # as in Python 3.14, of what is used
library.Format = types.SimpleNamespace(FORWARDREF=3)

def get_annotations(owner, *, format):
    assert format == 3
    make = vars(owner).get("__annotate_func__") if isinstance(owner, type) else getattr(owner, "annotate", None)
    return dict(make(format)) if make else dict(vars(owner).get("__annotations__", {}))

library.get_annotations = get_annotations
sys.modules["annotationlib"] = library

from typing import Any, ClassVar
import atled, atled.numpy as jnp
from atled.core.op import Op

body = {"__annotate_func__": lambda format: {"exponent": int, "later": "ForwardRef('NotYet')", "n": ClassVar[int]}}
Power = type(Op)("Power", (Op,), body)
assert Power.fields == ("exponent", "later"), Power.fields
assert Power(2, 3).later == 3
assert float(atled.grad(atled.jit(lambda x: jnp.sin(x) ** 2))(0.5)) > 0.8
"""


def test_annotations_that_are_made_when_they_are_read():
    run = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
