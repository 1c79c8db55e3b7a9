"""Registration of functions that change HLO modules during compilation, with the API of `jax.extend.xla`."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from atled.engine import ffi_targets
from atled.staging.jit_calls import clear_caches

__all__ = ["PipelineStage", "clear_hlo_module_transformation", "register_hlo_module_transformation"]
__dir__ = __all__.copy


class PipelineStage(enum.Enum):
    """The stage at which a module transformation runs: before or after XLA schedules operations.

    >>> [stage.name for stage in PipelineStage]
    ['PRE_SCHEDULER', 'POST_SCHEDULER']
    """

    PRE_SCHEDULER = 0
    POST_SCHEDULER = 1


def register_hlo_module_transformation(
    callback: Callable[[bytes], bytes | None],
    *,
    name: str,
    stage: PipelineStage = PipelineStage.PRE_SCHEDULER,
    platforms: Sequence[str] | str | None = None,
) -> None:
    """Register a module transformation: maps the bytes of an `HloModuleProto` to new bytes or, for no change, None.

    The compiler calls the functions of a stage in the order of their registration. While any function is registered,
    compiled programs are not cached on disk.

    >>> import atled
    >>> sizes = []
    >>> register_hlo_module_transformation(lambda module: sizes.append(len(module)), name="sizes")
    >>> _ = atled.jit(lambda x: x * 3)(1.0)
    >>> clear_hlo_module_transformation("sizes"), sizes[0] > 0
    (True, True)
    """
    if _is_cpu("register_hlo_module_transformation", stage, platforms):
        ffi_targets.register_transform(name, stage.value, callback)
        clear_caches()


def clear_hlo_module_transformation(
    name: str, stage: PipelineStage = PipelineStage.PRE_SCHEDULER, platforms: Sequence[str] | str | None = None
) -> bool:
    """Unregister a module transformation; returns whether it was registered.

    >>> register_hlo_module_transformation(lambda module: None, name="look")
    >>> clear_hlo_module_transformation("look"), clear_hlo_module_transformation("look")
    (True, False)
    """
    found = _is_cpu("clear_hlo_module_transformation", stage, platforms) and ffi_targets.clear_transform(
        name, stage.value
    )
    clear_caches()
    return found


def _is_cpu(where: str, stage: PipelineStage, platforms: Sequence[str] | str | None) -> bool:
    if not isinstance(stage, PipelineStage):
        raise TypeError(f"{where}: stage must be a PipelineStage; got {stage!r}.")
    named = ["cpu"] if platforms is None else [platforms] if isinstance(platforms, str) else list(platforms)
    if any([p != "cpu" for p in named]):
        raise NotImplementedError(f"{where}: only the platform cpu is supported; got {named}.")
    return bool(named)
