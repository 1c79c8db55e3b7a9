"""Custom batching rules: `custom_vmap`."""

from atled.higher_order.custom_vmap import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
