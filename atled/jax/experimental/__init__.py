"""The modules of `jax.experimental`."""

from atled.core import lazy_imports

_MODULES = """
    array_serialization buffer_callback checkify colocated_python compilation_cache compute_on control_deps hijax jet
    layout mesh_utils multihost_utils ode pjit profiler random rnn roofline scheduling_groups serialize_executable
    shard_alike shard_map source_mapper sparse topologies xla_metadata
"""
_NAMES = {"atled.higher_order.callbacks": "io_callback"}
__getattr__, __dir__, __all__ = lazy_imports.public(__name__, _NAMES, _MODULES)
