"""Names of machines, and what is said about those that cannot be had; no wheel is needed for these."""

from __future__ import annotations

import pytest

import atled
import atled.numpy as jnp
from atled import topologies
from atled.engine import chip_specs, plugins, topology
from atled.topologies import parsed


@pytest.mark.parametrize(
    "name, want",
    [
        ("tpu v5p:8x8x16", ("tpu", "v5p", (8, 8, 16))),
        ("tpu v5e 16x16", ("tpu", "v5e", (16, 16))),
        ("TPU tpu7x:2x2x1", ("tpu", "tpu7x", (2, 2, 1))),
        ("cuda h100 1x32x8", ("cuda", "h100", (1, 32, 8))),
        ("cuda a100-40:4x8", ("cuda", "a100-40", (1, 4, 8))),
        ("cuda b200 8", ("cuda", "b200", (1, 1, 8))),
    ],
)
def test_names(name, want):
    assert parsed(name) == want


@pytest.mark.parametrize("name", ["v5p:8x8x16", "tpu v5p", "cuda h100 1x", "", "tpu v5p:8x8 x16"])
def test_a_name_that_is_none(name):
    with pytest.raises(ValueError, match=r"topologies\.get: expected a name such as 'tpu v5p:8x8x16'"):
        topologies.get(name)


def test_unknown_chips_list_the_known_ones():
    with pytest.raises(ValueError, match=r"topologies\.get: tpu v9 is not known; there are tpu v2, .*; cuda a100, "):
        topologies.get("tpu v9:2x2")
    with pytest.raises(ValueError, match=r"topologies\.get: metal m4 is not known"):
        topologies.get("metal m4 1")
    with pytest.raises(ValueError, match=r"topologies\.get: expected slices x hosts x GPUs"):
        topologies.get("cuda h100 1x1x1x8")


@pytest.mark.parametrize(
    "platform, name, wheel", [("tpu", "tpu v5e:2x4", "libtpu"), ("cuda", "cuda h100 8", "jax-cuda12-pjrt")]
)
def test_a_missing_wheel_names_the_extra(monkeypatch, platform, name, wheel):
    monkeypatch.setattr(plugins, "installed", list)
    topology.make.cache_clear()
    try:
        with pytest.raises(ImportError, match=f"needs the {wheel} wheel.*\n  try: pip install 'atled\\[{platform}\\]'"):
            topologies.get(name)
    finally:
        topology.make.cache_clear()


def test_a_gpu_is_described():
    text = chip_specs.GPUS["h100"].description
    assert "major: 9 minor: 0" in text and "core_count: 132" in text and "shared_memory_per_block_optin: 232448" in text


def test_sizes_in_words():
    assert [topology.size(n) for n in (12, 2048, 95 * 2**30)] == ["12 bytes", "2.00 KiB", "95.00 GiB"]


def test_effort_is_for_topologies():
    with pytest.raises(ValueError, match="compile: effort is supported only for topologies"):
        atled.jit(jnp.sin).lower(1.0).compile(effort=-1.0)


def test_an_executable_of_this_machine_as_bytes():
    assert len(atled.jit(jnp.sin).lower(1.0).compile().serialize()) > 100
