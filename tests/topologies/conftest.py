"""Machines for the tests, which are left out where the wheel with their compiler is not installed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atled import topologies
from atled.engine import plugins


@pytest.fixture
def machine() -> Callable[..., topologies.Topology]:
    """`topologies.get`."""

    def get(name: str, **options) -> topologies.Topology:
        platform = name.split()[0]
        if not any([p.platform == platform for p in plugins.installed()]):
            pytest.skip(f"the compiler for {platform} is not installed: pip install 'atled[{platform}]'")
        return topologies.get(name, **options)

    return get
