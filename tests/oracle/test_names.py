"""The names of JAX that the page of names goes through are those of the installed version."""

from __future__ import annotations

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "names"))
import peers

jax = pytest.importorskip("jax")


@pytest.mark.parametrize("namespace", peers.JAX)
def test_names(namespace):
    assert jax.__version__ == "0.10.2"
    assert peers.kept()[namespace] == peers.installed(namespace)


@pytest.mark.parametrize("namespace", peers.MODULES)
def test_names_of_modules(namespace):
    assert peers.kept()[namespace] == peers.offered(namespace)


def test_no_module_is_forgotten():
    known = (*peers.JAX, *peers.MODULES)
    assert [m for m in peers.modules() if m not in known and peers.offered(m)] == []
