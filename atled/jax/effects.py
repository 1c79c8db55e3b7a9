"""The side effects of equations and programs, under JAX's names."""


class Effect:
    """The base class of side effects; the attribute `effects` of an equation or a program is a set of them.

    >>> class Writes(Effect):
    ...     pass
    >>> effects = frozenset({Writes()})
    >>> [isinstance(e, Effect) for e in effects]
    [True]
    """

    def __str__(self) -> str:
        return type(self).__name__.removesuffix("Effect")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class DebugEffect(Effect):
    """The effect of `debug.print`, `debug.log` and `debug.callback`.

    >>> import atled, atled.jax
    >>> program = atled.jax.make_jaxpr(lambda x: atled.debug.print("{}", x))(1.0)
    >>> [isinstance(e, DebugEffect) for e in program.effects]
    [True]
    """


class OrderedDebugEffect(Effect):
    """The effect of `debug.print`, `debug.log` and `debug.callback` with `ordered=True`.

    >>> import atled, atled.jax
    >>> program = atled.jax.make_jaxpr(lambda x: atled.debug.print("{}", x, ordered=True))(1.0)
    >>> [isinstance(e, OrderedDebugEffect) for e in program.effects]
    [True]
    """


class IOEffect(Effect):
    """The effect of `io_callback`."""


class OrderedIOEffect(Effect):
    """The effect of `io_callback` with `ordered=True`."""


BY_NAME = {
    "debug": DebugEffect(), "ordered debug": OrderedDebugEffect(), "io": IOEffect(), "ordered io": OrderedIOEffect(),
}  # fmt: skip
