"""Compiler options for programs on several devices, with the API of `jax.interpreters.pxla`."""

from __future__ import annotations

from typing import Any

import numpy as np

from atled.jax.extend.backend import get_compile_options

__all__ = ["create_compile_options"]
__dir__ = __all__.copy


def create_compile_options(
    computation: Any,
    tuple_args: bool,
    allow_prop_to_inputs: Any,
    allow_prop_to_outputs: Any,
    backend: Any,
    np_dev: Any,
    compiler_options: dict[str, Any],
) -> Any:
    """Options for a program that is partitioned over `np_dev`, an array of devices of any shape.

    The partitioner may choose the shardings of the arguments selected by `allow_prop_to_inputs` and of the results
    selected by `allow_prop_to_outputs`.

    >>> import atled
    >>> create_compile_options(None, False, [False], [True], None, np.array(atled.devices()[:1]), {}).num_partitions
    1
    """
    del computation
    options = {k: v for k, v in compiler_options.items() if k != "fdo_profile"}
    devices = np.reshape(np_dev, (1, -1))
    profile = compiler_options.get("fdo_profile")
    compile_options = get_compile_options(1, devices.size, devices, options, profile, backend=backend)
    build = compile_options.executable_build_options
    compile_options.parameter_is_tupled_arguments = tuple_args
    build.allow_spmd_sharding_propagation_to_parameters = list(allow_prop_to_inputs)
    build.allow_spmd_sharding_propagation_to_output = list(allow_prop_to_outputs)
    return compile_options
