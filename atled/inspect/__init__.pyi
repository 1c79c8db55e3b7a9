# Written by scripts/stubs.
from atled.inspect.collective_parser import Collective as Collective
from atled.inspect.collective_table import Collectives as Collectives
from atled.inspect.collective_table import collectives as collectives
from atled.inspect.collective_table import expect as expect
from atled.inspect.sharding_picture import Picture as Picture
from atled.inspect.sharding_picture import sharding as sharding

__all__ = [
    "Collective",
    "Collectives",
    "Picture",
    "collectives",
    "expect",
    "sharding",
]
