"""What a release says of itself in several places is the same everywhere."""

from __future__ import annotations

import pathlib
import re
import tomllib

import pytest

import atled

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.M)
FORMS = sorted([*(ROOT / ".github").rglob("*.yml"), ROOT / "CITATION.cff"])


def test_one_version():
    (cited,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited == atled.__version__
    entries = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert entries[entries[0] == "Unreleased"] == atled.__version__


def test_pythons_begin_where_the_range_does():
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


@pytest.mark.parametrize("file", FORMS, ids=[f.name for f in FORMS])
def test_forms_can_be_read(file: pathlib.Path):
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(file.read_text())
    if file.parent.name == "ISSUE_TEMPLATE":
        assert {"name", "description", "body"} <= set(found)
        assert all([part["type"] == "markdown" or part["attributes"]["label"] for part in found["body"]])


def test_checks_run_on_the_pythons_that_are_named():
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    (job,) = found["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == PYTHONS
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
