"""A sum over all devices of all processes, on the bare engine: the smallest thing that hangs when a process does."""

from __future__ import annotations

from typing import Any

import jaxlib._hlo as _hlo
import jaxlib._jax as _jax
import numpy as np

from atled.engine import client, jaxlib_versions

TEXT = """
module @sum {{
  sdy.mesh @mesh = <["x"={n}]>
  func.func public @main(%x: tensor<{n}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}})
      -> (tensor<f32> {{sdy.sharding = #sdy.sharding<@mesh, []>}}) {{
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
         : (tensor<{n}xf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }}
}}
"""


class Type:
    """What the engine asks of a type."""

    def __init__(self, *shape: int) -> None:
        self.shape, self.dtype, self.weak_type = shape, np.dtype(np.float32), False


class Sum:
    """`Sum()(x)` adds the numbers that the devices of all processes have."""

    def __init__(self) -> None:
        self.devices = _jax.DeviceList(tuple(client.devices()))
        n = len(client.devices())
        options = _jax.CompileOptions()
        assignment = _jax.DeviceAssignment.create(np.array([[d.id for d in client.devices()]], np.int32))
        for part in (options, options.executable_build_options):
            part.num_replicas, part.num_partitions, part.device_assignment = 1, n, assignment
        build = options.executable_build_options
        build.use_spmd_partitioning = build.use_shardy_partitioner = True
        self.run = client.devices()[0].client.compile_and_load(TEXT.format(n=n), self.devices, options)
        sharded = _hlo.HloSharding.from_proto(self.run.get_parameter_shardings()[0]).to_proto()
        self.type, self.layout = Type(n), _jax.GSPMDSharding(self.devices, sharded)
        whole = _jax.GSPMDSharding(self.devices, _hlo.HloSharding.replicate().to_proto())
        self.handler = jaxlib_versions.result_handler(Type(), whole, committed=True)

    def launch(self, x: float) -> Any:
        mine = client.local_devices()
        parts = [np.full(1, x, np.float32) for _ in mine]
        given = _jax.batched_device_put(self.type, self.layout, parts, mine, enable_x64=True)
        return self.run.execute_sharded([given]).consume_with_handlers([self.handler])[0]

    def __call__(self, x: float) -> None:
        self.launch(x).block_until_ready()
