"""The stages of a jitted function: traced, lowered, compiled.

`f.trace(x)` returns a `Traced`, `Traced.lower()` a `Lowered`, and `Lowered.compile()` a `Compiled`.

>>> import atled
>>> isinstance(atled.jit(lambda x: x + 1).lower(1.0).compile(), Compiled)
True
"""

from typing import runtime_checkable

from atled.staging.aot import ArgInfo, Compiled, Lowered
from atled.staging.aot import TracedFunction as Traced
from atled.staging.jit import Jitted

CompilerOptions = dict[str, str | bool]
Wrapped = runtime_checkable(Jitted)


__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
__dir__ = __all__.copy
