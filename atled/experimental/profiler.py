"""What profiles tell the compiler, with the API of `jax.experimental.profiler`."""

from __future__ import annotations

from atled.engine import profiling

__all__ = ["get_profiled_instructions_proto"]


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """The costs of instructions that a profile in a folder measured, as the compiler's scheduler reads them.

    The folder is that of one run, `<log folder>/plugins/profile/<run>/`. Only profiles of GPUs have such costs; of
    others, the bytes are empty.

    >>> import glob, tempfile
    >>> from atled import profiler
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with profiler.trace(place):
    ...         pass
    ...     get_profiled_instructions_proto(glob.glob(f"{place}/plugins/profile/*")[0])
    b''
    """
    return profiling.get_profiled_instructions_proto(tensorboard_dir)
