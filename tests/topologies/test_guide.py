"""The blocks of the guide that need a compiler run where there is one."""

from __future__ import annotations

import pathlib
import re

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "topologies.md"


def test_the_guide(machine):
    machine("tpu v5e:2x2")
    names: dict = {}
    for block in re.findall(r"^```py\n(.*?)^```$", GUIDE.read_text(), re.M | re.S):
        exec(block, names)
