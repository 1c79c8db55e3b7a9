"""What launchers say in the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from atled.engine import plugins
from atled.engine.multiprocess import cluster_detection
from atled.engine.multiprocess.cluster_detection import Found

SLURM = {
    "SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "gpu[003-010,12]", "SLURM_NTASKS": "8", "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "2(x4)",
}  # fmt: skip
URI = "OMPI_MCA_orte_hnp_uri"
MPI = {
    URI: "1531576320.0;tcp://10.96.0.1,10.148.0.1,10.108.0.1:34911", "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}  # fmt: skip
POD = {"JOB_COMPLETION_INDEX": "1", "JOB_COMPLETIONS": "3", "HOSTNAME": "train-1"}
TPU = {"TPU_WORKER_ID": "2", "TPU_WORKER_HOSTNAMES": "10.0.0.1,10.0.0.2, 10.0.0.3"}


@pytest.mark.parametrize(
    "environment, launcher, found",
    [
        ({}, "", Found()),
        (SLURM, "SLURM", Found("gpu003:61447", 8, 3, (1,))),
        ({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "1(x8)"}, "SLURM", Found("gpu003:61447", 8, 3)),
        ({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "16"}, "SLURM", Found("gpu003:61447", 8, 3, (1,))),
        ({k: v for k, v in SLURM.items() if k != "SLURM_PROCID"}, "", Found()),
        (MPI, "Open MPI", Found("10.96.0.1:61440", 4, 2, (0,))),
        ({**MPI, URI: "12.0;tcp6://[fd00::1]:77"}, "Open MPI", Found("[fd00::1]:61452", 4, 2, (0,))),
        ({**MPI, URI: "12.0;tcp://10.0.0.9:77"}, "Open MPI", Found("10.0.0.9:61452", 4, 2, (0,))),
        (
            {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "PMIX_NAMESPACE": "prterun-my-node-12345@1"},
            "Open MPI",
            Found("my-node:61497", 2, 1),
        ),
        (POD, "Kubernetes", Found("train-0.train:61440", 3, 1)),
        ({**POD, "JOB_SERVICE": "peers"}, "Kubernetes", Found("train-0.peers:61440", 3, 1)),
        (TPU, "Cloud TPU", Found("10.0.0.1:8476", 3, 2)),
        # what starts processes counts before what offers machines
        ({**POD, **TPU}, "Kubernetes", Found("train-0.train:61440", 3, 1)),
        ({**SLURM, **TPU}, "SLURM", Found("gpu003:61447", 8, 3, (1,))),
        ({**MPI, **TPU}, "Open MPI", Found("10.96.0.1:61440", 4, 2, (0,))),
        ({**SLURM, **MPI}, "SLURM", Found("gpu003:61447", 8, 3, (1,))),
        ({**TPU, "ATLED_COORDINATOR": "a:1"}, "ATLED", Found("a:1", 3, 2)),
        ({"ATLED_COORDINATOR": "a:1", "ATLED_PROCESS_ID": "0"}, "ATLED", Found("a:1", None, 0)),
        ({**SLURM, "ATLED_COORDINATOR": "a:1", "ATLED_SERVE": "0"}, "ATLED", Found("a:1", 8, 3, (1,), False)),
    ],
)  # fmt: skip
def test_launchers(environment, launcher, found):
    assert cluster_detection.detect(environment) == (launcher, found)


@pytest.mark.parametrize(
    "nodes, first",
    [
        ("node001", "node001"), ("node[003-010,12]", "node003"), ("a,b", "a"), ("a-[1,3],b[1-2]", "a-1"),
        ("r[1-2]n[05,07]", "r1n05"), ("tux[9]", "tux9"),
    ],
)  # fmt: skip
def test_first_node(nodes, first):
    assert cluster_detection.first_node(nodes) == first


def test_numbers_that_are_none():
    with pytest.raises(ValueError, match=r"the environment variable ATLED_PROCESS_ID must be an integer; got 'one'\."):
        cluster_detection.detect({"ATLED_PROCESS_ID": "one"})


def test_the_reason():
    assert cluster_detection.reason({}) == "nothing"
    assert cluster_detection.reason(POD) == "Kubernetes (JOB_COMPLETION_INDEX=1, JOB_COMPLETIONS=3)"
    text = cluster_detection.reason({**TPU, **MPI, "ATLED_PROCESS_ID": "0"})
    assert text == "ATLED (ATLED_PROCESS_ID=0), not Open MPI or Cloud TPU"


# -- with libtpu in the process ---------------------------------------------------------------------------------------

LIBRARY = """
#include <stdlib.h>
void load(void) {
    setenv("CLOUD_TPU_TASK_ID", "0", 1);
    setenv("TPU_WORKER_ID", "7", 1);
    setenv("GIVEN", "changed", 1);
}
"""
LOADED = """
import ctypes, json, os, subprocess, sys
from atled.engine import plugins
from atled.engine.multiprocess import cluster_detection
before = dict(os.environ)
with plugins.environment("tpu"):
    assert os.environ["TPU_WORKER_HOSTNAMES"]
    ctypes.CDLL({library!r}).load()
child = "import json, os; print(json.dumps(dict(os.environ)))"
inherited = json.loads(subprocess.run([sys.executable, "-c", child], capture_output=True, check=True).stdout)
assert dict(os.environ) == before, "the environment of this process"
assert {{k: inherited.get(k) for k in before}} == before, "the environment of its children"
assert "CLOUD_TPU_TASK_ID" not in inherited
print(cluster_detection.detect(os.environ)[0])
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library that sets variables as libtpu does, without Python's knowledge."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    place = tmp_path_factory.mktemp("library")
    (place / "tpu.c").write_text(LIBRARY)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", place / "tpu.so", place / "tpu.c"], check=True)
    return str(place / "tpu.so")


@pytest.mark.parametrize("launcher", ["", "SLURM", "Open MPI", "Kubernetes", "Cloud TPU"])
def test_what_a_plugin_sets_is_undone(library, launcher):
    given = {"": {}, "SLURM": SLURM, "Open MPI": MPI, "Kubernetes": POD, "Cloud TPU": TPU}[launcher]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "ATLED", "TPU", "JOB", "PMIX"))}
    environment = {**clean, "GIVEN": "as it was", **given}
    code = LOADED.format(library=library)
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == launcher


WORLD = """
import os, sys
import atled
from atled import distributed
if "libtpu" in sys.argv:
    from atled import topologies
    topologies.get("tpu v5e:2x2")
distributed.initialize(initialization_timeout=60)
print(atled.process_index(), atled.process_count(), flush=True)
distributed.shutdown()
"""


@pytest.mark.parametrize("loads", [False, True], ids=["without libtpu", "with libtpu"])
@pytest.mark.parametrize("launcher", ["SLURM", "Open MPI", "Cloud TPU"])
def test_the_world_of_a_launcher(launcher, loads):
    """Four processes on this machine, as the launcher starts them, are one world."""
    if loads and not any([p.platform == "tpu" for p in plugins.installed()]):
        pytest.skip("libtpu is not installed: pip install 'atled[tpu]'")
    job = str(os.getpid() % 4000 + 100)
    own = {
        "SLURM": lambda i: {"SLURM_JOB_ID": job, "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "4",
                            "SLURM_PROCID": i, "SLURM_LOCALID": i, "SLURM_STEP_TASKS_PER_NODE": "4"},
        "Open MPI": lambda i: {URI: f"{job}.0;tcp://127.0.0.1:34911", "OMPI_COMM_WORLD_SIZE": "4",
                               "OMPI_COMM_WORLD_RANK": i},
        "Cloud TPU": lambda i: {"TPU_WORKER_ID": i, "TPU_WORKER_HOSTNAMES": "127.0.0.1,b,c,d"},
    }[launcher]  # fmt: skip
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMPI", "ATLED_P", "TPU", "JOB", "PMIX"))
    }
    children = [
        subprocess.Popen(
            [sys.executable, "-c", WORLD, *(["libtpu"] if loads else [])], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**clean, "ATLED_PLATFORMS": "cpu", **own(str(i))},
        ) for i in range(4)
    ]  # fmt: skip
    try:
        ends = [child.communicate(timeout=100) for child in children]
    finally:
        for child in children:
            child.kill()
    assert [out.split() for out, _ in ends] == [[str(i), "4"] for i in range(4)], [error for _, error in ends]
    said = [[line for line in error.splitlines() if line.startswith("distributed:")] for _, error in ends]
    assert len(said[0]) == 1
    assert f"process 0 of 4, coordinator {'localhost' if launcher == 'SLURM' else '127.0.0.1'}:" in said[0][0]
    assert f"found {launcher} (" in said[0][0]
    assert not any(said[1:])
