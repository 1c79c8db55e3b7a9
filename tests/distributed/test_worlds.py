"""Processes that meet, talk and part."""

from __future__ import annotations

import numpy as np
from worlds import run

from atled import metrics


def test_two_processes():
    said = run("meet", 2, ATLED_NUM_CPU_DEVICES="2")
    for rank, (met, ran, left) in enumerate(said):
        assert (met["index"], met["count"]) == (rank, 2)
        assert met["devices"] == [0, 1, 2048, 2049] and met["local"] == [2048 * rank, 2048 * rank + 1]
        assert met["is_initialized"] and abs(ran["sin"] - 0.841471) < 1e-6
        assert left == {"is_initialized": False, "count": 1}


def test_four_processes_with_devices_from_flags_and_arguments_from_the_environment():
    said = run("meet", 4, XLA_FLAGS="--xla_force_host_platform_device_count=3")
    assert [s[0]["count"] for s in said] == [4] * 4 and len(said[0][0]["devices"]) == 12


def test_one_process_compiles_for_all():
    """The key under which processes share a program must not depend on the process."""
    said = [only for (only,) in run("compile_once", 3, ATLED_CACHE="0")]
    assert sorted(s["compiled"] for s in said) == [0, 0, 1]
    assert all(abs(s["value"] - 3 * np.sin(1.0)) < 1e-5 for s in said)


def test_every_array_is_reduced_by_its_own_op():
    """The engine goes on after a failure inside an all-reduce of several arrays, with messages that do not match."""
    assert [only["arrays"] for (only,) in run("reduced_apart", 2)] == [[1, 1, 1]] * 2


def test_store_and_barriers():
    said = run("talk", 3)
    assert sorted(s[0]["ticket"] for s in said) == [1, 2, 3]
    for first, _ in said:
        assert first["others"] == ["rank 0", "rank 1", "rank 2"] and first["gone"] is None
        assert first["absent"]["text"] == "distributed.store.get: 'nobody' was not set within 0.2 s."
        assert first["taken"]["kind"] == "KeyError" and "'from/0' is already set" in first["taken"]["text"]
        assert first["nan"]["text"] == "distributed.store.increment: the value of 'from/0' is not an integer."
    alone = said[0][1]["alone"]
    assert alone["kind"] == "TimeoutError"
    assert alone["text"].startswith("distributed: ranks 1, 2 did not reach 'barrier alone' within 0.3 s.\n  try: ")
    assert [s[1]["pair"] and s[1]["pair"]["kind"] for s in said] == ["nothing", "nothing", None]


def test_a_signal_that_one_of_three_gets():
    (first,), (second,), (third,) = run("preempted", 3)
    assert first == second == third and first["at"] >= 3 and first["count"] == 1


def test_broadcast_and_gather():
    for (said,) in run("spread", 2):
        assert said["one"] == [[1, 2, 3], [[1, 1], [1, 1]], "bfloat16", 1]
        assert said["all"] == [[[0, 1, 2], [1, 2, 3]], [0, 1]]
        assert said["big"] == [1, 1]
        assert said["different"]["text"] == (
            "distributed.gather: all processes must pass trees of the same structure and types; "
            "rank 0 passed f64[2], and rank 1 passed f64[3]."
        )
        assert said["source"]["text"] == "distributed.broadcast: source must be one of the 2 ranks; got 2."


def test_metrics_of_all_processes():
    scores, labels = (np.arange(4) / 4).astype("f4"), np.arange(4) % 2
    both = metrics.AUC(8).update(scores, labels).update(scores + np.float32(1 / 8), labels)
    for rank, (said,) in enumerate(run("count", 2)):
        assert said == {"mean": 0.5, "auc": float(both.compute()), "own": float(rank)}


def test_generations():
    """Worlds follow each other in the same processes, and leave no thread, file or memory behind."""
    for said in run("generations", 2, 5):
        assert [s["state"] for s in said] == [[3.0 + i] * 4 for i in range(5)]
        # A world that is kept costs 14 threads and 5 files; on a busy machine, a few take a moment to go.
        assert said[-1]["threads"] - said[0]["threads"] < 14 and said[-1]["fds"] - said[0]["fds"] < 5
        assert {s["python_threads"] for s in said} == {1}
        assert said[-1]["memory"] - said[1]["memory"] < 30  # megabytes; it levels off, see scripts/generations


def test_what_is_held_over_worlds_can_be_read():
    for used, again, old, values in run("held", 2):
        assert used["used"]["text"].startswith("distributed.initialize: the devices are already in use")
        assert again["again"]["text"].startswith("distributed.initialize: this process has already joined a run.")
        assert old["old"]["kind"] != "nothing"
        assert values == {"x": [0, 1, 2], "y": [0, 2, 4]}
