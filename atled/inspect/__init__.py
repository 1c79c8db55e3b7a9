"""Looking at arrays and programs over many devices: where shards are, and what devices send each other."""

from atled.inspect.reading import Collective
from atled.inspect.shards import Picture, sharding
from atled.inspect.traffic import Collectives, collectives, expect

__all__ = ["Collective", "Collectives", "Picture", "collectives", "expect", "sharding"]
