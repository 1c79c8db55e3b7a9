# Written by scripts/stubs.
from atled.inspect.reading import Collective as Collective
from atled.inspect.shards import Picture as Picture
from atled.inspect.shards import sharding as sharding
from atled.inspect.traffic import Collectives as Collectives
from atled.inspect.traffic import collectives as collectives
from atled.inspect.traffic import expect as expect

__all__ = [
    "Collective",
    "Collectives",
    "Picture",
    "collectives",
    "expect",
    "sharding",
]
