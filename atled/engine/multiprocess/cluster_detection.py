"""Detects the number of processes and this process's rank from the launcher's environment variables.

Each detector is a function of the environment and returns a `Found` or None. The coordinator's address is the machine
of rank 0 (for Open MPI, the machine that runs `mpirun`), with a port that is the same for all processes of a job.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from atled.engine.multiprocess import wire

Environment = Mapping[str, str]
_PORTS = range(61440, 65536)  # the range of ports derived from a job id


class Found(NamedTuple):
    """The launcher's settings; a setting is None if the launcher does not set it."""

    coordinator: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_device_ids: tuple[int, ...] | None = None  # ids of the accelerators that this process should use
    serve: bool | None = None  # False if a supervisor runs the coordinator


def detect(environment: Environment) -> tuple[str, Found]:
    """The first detected launcher and its settings; atled's own variables take precedence.

    `plugins.environment` removes the variables that libtpu sets, which would look like those of Cloud TPU.
    """
    name, settings = "", Found()
    for launcher, detector in DETECTORS.items():
        seen = detector(environment)
        if seen is not None:
            name, settings = launcher, seen
            break
    mine = own(environment)
    if mine is None:
        return name, settings
    explicit = {field: value for field, value in mine._asdict().items() if value is not None}
    return "ATLED", settings._replace(**explicit)


_VARIABLES = {
    "ATLED": ("ATLED_COORDINATOR", "ATLED_NUM_PROCESSES", "ATLED_PROCESS_ID"),
    "SLURM": ("SLURM_JOB_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "Kubernetes": ("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"),
    "Cloud TPU": ("TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES"),
}


def reason(environment: Environment) -> str:
    """The detected launcher and its variables as text, for the log.

    >>> reason({"SLURM_JOB_ID": "7", "SLURM_NODELIST": "a", "SLURM_PROCID": "0", "TPU_WORKER_ID": "0",
    ...         "TPU_WORKER_HOSTNAMES": "a"})
    'SLURM (SLURM_JOB_ID=7, SLURM_PROCID=0), not Cloud TPU'
    """
    found = ["ATLED"] if own(environment) is not None else []
    found += [name for name, detector in DETECTORS.items() if detector(environment) is not None]
    if not found:
        return "nothing"
    shown = [f"{name}={environment[name]}" for name in _VARIABLES[found[0]] if name in environment]
    rest = f", not {' or '.join(found[1:])}" if found[1:] else ""
    return f"{found[0]} ({', '.join(shown)}){rest}"


def own(environment: Environment) -> Found | None:
    """The settings in `ATLED_COORDINATOR`, `ATLED_NUM_PROCESSES`, `ATLED_PROCESS_ID` and `ATLED_SERVE`, or None.

    >>> own({"ATLED_COORDINATOR": "a:1234", "ATLED_NUM_PROCESSES": "2", "ATLED_PROCESS_ID": "1"}).process_id
    1
    """
    serve = environment.get("ATLED_SERVE")
    settings = Found(
        environment.get("ATLED_COORDINATOR"),
        _number(environment, "ATLED_NUM_PROCESSES"),
        _number(environment, "ATLED_PROCESS_ID"),
        serve=None if serve is None else serve not in ("0", "false", "no"),
    )
    return None if settings == Found() else settings


def slurm(environment: Environment) -> Found | None:
    """The settings of a step of a SLURM job, started by `srun`, or None."""
    job, nodes = environment.get("SLURM_JOB_ID"), environment.get("SLURM_STEP_NODELIST")
    nodes = nodes or environment.get("SLURM_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    if not job or not nodes or "SLURM_PROCID" not in environment:
        return None
    size = _number(environment, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    shares = environment.get("SLURM_STEP_TASKS_PER_NODE", environment.get("SLURM_TASKS_PER_NODE", "1"))
    local = _number(environment, "SLURM_LOCALID")
    device = (local,) if local is not None and not re.match(r"1(\(|$)", shares) else None
    return Found(
        f"{first_node(nodes)}:{_port(int(job))}", size, _number(environment, "SLURM_PROCID"), local_device_ids=device
    )


def first_node(nodes: str) -> str:
    """The first machine in a SLURM node list.

    >>> first_node("node[003-010,12]"), first_node("a1,b[2-3]"), first_node("r[1-2]n[05,07]")
    ('node003', 'a1', 'r1n05')
    """
    name = re.match(r"(?:[^,\[]|\[[^\]]*\])+", nodes)
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", name[0] if name else nodes)


def open_mpi(environment: Environment) -> Found | None:
    """The settings of Open MPI's `mpirun`, or None; its host is in a URI (versions 3, 4) or a namespace (5)."""
    if "OMPI_COMM_WORLD_SIZE" not in environment or "OMPI_COMM_WORLD_RANK" not in environment:
        return None
    uri, space = environment.get("OMPI_MCA_orte_hnp_uri", ""), environment.get("PMIX_NAMESPACE", "")
    old = re.match(r"(\d+)\.\d+;tcp6?://\[?([^,;\]]+?)(?:[,\]]|:\d+(?:;|$))", uri)
    new = re.match(r"prte(?:run)?-(.+)-(\d+)@\d+$", space)
    if old:
        coordinator = wire.address(old[2], _port(int(old[1])))
    else:
        coordinator = f"{new[1]}:{_port(int(new[2]))}" if new else None
    local = _number(environment, "OMPI_COMM_WORLD_LOCAL_RANK")
    shares = _number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE")
    return Found(
        coordinator,
        _number(environment, "OMPI_COMM_WORLD_SIZE"),
        _number(environment, "OMPI_COMM_WORLD_RANK"),
        (local,) if local is not None and shares != 1 else None,
    )


def kubernetes(environment: Environment) -> Found | None:
    """The settings of a pod of an indexed job, whose specification must set `JOB_COMPLETIONS`, or None.

    The pods need a headless service. Its name is `JOB_SERVICE`, or, if that is not set, the name of the job.
    """
    index, size = environment.get("JOB_COMPLETION_INDEX"), environment.get("JOB_COMPLETIONS")
    if index is None or size is None:
        return None
    pod = environment.get("HOSTNAME", "").split(".")[0]
    job = environment.get("JOB_NAME") or pod.removesuffix(f"-{index}")
    service = environment.get("JOB_SERVICE", job)
    return Found(f"{job}-0.{service}:{_PORTS[0]}" if job else None, int(size), int(index))


def cloud_tpu(environment: Environment) -> Found | None:
    """The settings of a host of a Cloud TPU slice, or None."""
    index, hosts = environment.get("TPU_WORKER_ID"), environment.get("TPU_WORKER_HOSTNAMES")
    if index is None or not hosts:
        return None
    names = [h.strip() for h in hosts.split(",")]
    return Found(f"{names[0]}:8476", len(names), int(index))


DETECTORS: dict[str, Callable[[Environment], Found | None]] = {  # by precedence: launchers, then cloud providers
    "SLURM": slurm,
    "Open MPI": open_mpi,
    "Kubernetes": kubernetes,
    "Cloud TPU": cloud_tpu,
}


def _number(environment: Environment, *names: str) -> int | None:
    for name in names:
        value = environment.get(name)
        if value:
            try:
                return int(value)
            except ValueError:
                raise ValueError(
                    f"distributed.initialize: the environment variable {name} must be an integer; got {value!r}."
                ) from None
    return None


def _port(number: int) -> int:
    """A port derived from the number of a job, equal in all processes of the job."""
    return _PORTS[number % len(_PORTS)]
