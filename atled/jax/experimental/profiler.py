"""Profile-guided optimization data for the compiler, with the API of `jax.experimental.profiler`."""

from __future__ import annotations

from atled.engine import profiler

__all__ = ["get_profiled_instructions_proto"]
__dir__ = __all__.copy


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """Measured instruction costs from a profile directory, in the format that the compiler's scheduler reads.

    The directory is that of one run, `<log directory>/plugins/profile/<run>/`. Only GPU profiles contain such costs;
    for other platforms, the result is empty.

    >>> import glob, tempfile
    >>> from atled import profiler
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with profiler.trace(place):
    ...         pass
    ...     get_profiled_instructions_proto(glob.glob(f"{place}/plugins/profile/*")[0])
    b''
    """
    return profiler.get_profiled_instructions_proto(tensorboard_dir)
