"""Names of `jax.interpreters.partial_eval`."""

from atled.core.program import RecordTracer as DynamicJaxprTracer

JaxprTracer = DynamicJaxprTracer

__all__ = ["DynamicJaxprTracer", "JaxprTracer"]
