"""The mistakes that people make most, each with the code that makes it and the code that does not.

One row is one mistake. `bad` raises on the line marked with `# here`; `good` is what the message leads to. In `says`, a
regular expression for the first line of the message, `suggests` one for the rest. `python tests/errors/pages.py`
writes a page for each into `docs/errors/`, with JAX's message for the same code beside ours, or Flax's. The other files
of the gallery hold the mistakes of one theme each.
"""

from __future__ import annotations

from gallery_models import MODELS
from gallery_shapes import SHAPES
from gallery_tracing import TRACING
from gallery_training import TRAINING
from gallery_transforms import TRANSFORMS
from gallery_values import VALUES
from mistake import IMPORTS, Mistake

__all__ = ["GALLERY", "IMPORTS", "Mistake"]

GALLERY = [
    *TRACING,
    *SHAPES,
    *VALUES,
    *TRANSFORMS,
    *MODELS,
    *TRAINING,
    Mistake(
        "if-on-a-traced-value",
        "`if` on a traced value",
        "TracerBoolConversionError",
        r"bool: the truth value of a traced bool\[\] is not known here",
        r"numpy\.where.*lax\.cond",
        "Under `jit` the function runs once, on tracers, to record its ops. An `if` needs the value at that moment, "
        "and it is not known yet.",
        """
        @atled.jit
        def relu(x):
            if x > 0:  # here
                return x
            return 0.0 * x

        relu(3.0)
        """,
        """
        @atled.jit
        def relu(x):
            return jnp.where(x > 0, x, 0.0)

        assert relu(3.0) == 3.0
        """,
    ),
    Mistake(
        "shapes-that-do-not-broadcast",
        "Shapes that do not broadcast",
        "ValueError",
        r"add: shapes \(3, 4\) and \(3,\) do not broadcast together; got f32\[3,4\] and f32\[3\]",
        r"try: .*y\[:, None\]",
        "Shapes are lined up from the right, as in NumPy: the 3 of the second operand is matched with the 4 of the "
        "first.",
        """
        x = jnp.ones((3, 4))
        y = jnp.ones(3)
        z = x + y  # here
        """,
        """
        x = jnp.ones((3, 4))
        y = jnp.ones(3)
        z = x + y[:, None]
        assert z.shape == (3, 4)
        """,
    ),
]
