"""What launchers say in the environment."""

from __future__ import annotations

import pytest

from atled.engine.world import cluster
from atled.engine.world.cluster import Found

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
        ({**POD, **TPU}, "Cloud TPU", Found("10.0.0.1:8476", 3, 2)),
        ({"ATLED_COORDINATOR": "a:1", "ATLED_PROCESS_ID": "0"}, "ATLED", Found("a:1", None, 0)),
        ({**SLURM, "ATLED_COORDINATOR": "a:1", "ATLED_SERVE": "0"}, "ATLED", Found("a:1", 8, 3, (1,), False)),
    ],
)  # fmt: skip
def test_launchers(environment, launcher, found):
    assert cluster.detect(environment) == (launcher, found)


@pytest.mark.parametrize(
    "nodes, first",
    [
        ("node001", "node001"), ("node[003-010,12]", "node003"), ("a,b", "a"), ("a-[1,3],b[1-2]", "a-1"),
        ("r[1-2]n[05,07]", "r1n05"), ("tux[9]", "tux9"),
    ],
)  # fmt: skip
def test_first_node(nodes, first):
    assert cluster.first_node(nodes) == first


def test_numbers_that_are_none():
    with pytest.raises(ValueError, match=r"the environment variable ATLED_PROCESS_ID must be an integer; got 'one'\."):
        cluster.detect({"ATLED_PROCESS_ID": "one"})
