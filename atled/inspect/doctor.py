"""`atled doctor`: checks the installation and the environment variables, and runs a self-test.

Checks that may hang or abort, such as by an unknown XLA flag, run in child processes. Problems in `broken` make the
command fail, problems in `notes` do not. `import atled` does not import this file.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any

import atled
import atled.numpy as jnp
from atled.core import settings
from atled.engine import client, disk_cache, plugins, program_cache
from atled.engine.topology import size

_OTHERS = {  # variables other than those of settings
    "ATLED_PLATFORMS", "ATLED_NUM_CPU_DEVICES", "ATLED_COORDINATOR", "ATLED_NUM_PROCESSES", "ATLED_PROCESS_ID",
    "ATLED_SERVE", "ATLED_TOKEN", "ATLED_TOKEN_FILE", "ATLED_DATA", "ATLED_AS_JAX", "ATLED_AS_JAX_REPORT",
}  # fmt: skip
_NUMBERS = ("ATLED_NUM_CPU_DEVICES", "ATLED_NUM_PROCESSES", "ATLED_PROCESS_ID", "TF_CPP_MIN_LOG_LEVEL")
_ENGINE = (
    "XLA_FLAGS", "TF_CPP_MIN_LOG_LEVEL", "XDG_CACHE_HOME", "HOME", "LD_LIBRARY_PATH", "LIBTPU_INIT_ARGS",
    "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS",
)  # fmt: skip
_PATIENCE = 60  # timeout of a child process, in seconds
_LOOK = 2.0  # maximum time to look for damaged cache entries, in seconds
_LITTLE = 1 << 30  # free bytes of memory or disk below which there is a note


class Report:
    """The results of the checks: rows are printed at once, problems and notes at the end."""

    def __init__(self) -> None:
        self.broken: list[str] = []
        self.notes: list[str] = []

    def row(self, name: str, *values: Any) -> None:
        """Print a row: a name, and one line for each value."""
        for i, value in enumerate(values):
            print(f"  {name if i == 0 else '':22} {value}", flush=True)

    def is_broken(self, what: str, way_out: str) -> None:
        """Add a problem that must be fixed, and advice."""
        self.broken.append(f"{what}\n    try: {way_out}")

    def note(self, what: str, way_out: str) -> None:
        """Add a problem that need not be fixed, and advice."""
        self.notes.append(f"{what}\n    try: {way_out}")


def add(commands: Any) -> None:
    """Add the command `atled doctor` to the parser."""
    parser = commands.add_parser(
        "doctor", help="show versions and run a self-test",
        description="Show versions, devices, plugins, the compile cache and the environment; run a short self-test.",
    )  # fmt: skip
    parser.set_defaults(run=_run)


def _run(_: Any) -> int:
    report = Report()
    for title, look in (
        ("versions", _versions), ("machine", _machine), ("environment", _environment), ("cache", _cache),
        ("plugins", _plugins), ("self-test", _self_test),
    ):  # fmt: skip
        print(title)
        look(report)
    for title, messages in (("notes", report.notes), ("broken", report.broken)):
        if messages:
            print(title)
            for one in messages:
                print(f"  {one}")
    print(f"{len(report.broken)} broken" if report.broken else "all is well")
    return bool(report.broken)


def _versions(report: Report) -> None:
    report.row("atled", f"{atled.__version__}, {os.path.dirname(os.path.abspath(__file__))}")
    report.row("python", f"{platform.python_version()}, {sys.executable}")
    for name in ("jaxlib", "numpy", "ml_dtypes", "scipy"):
        try:
            report.row(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            report.row(name, "not installed" if name != "scipy" else "not installed: numpy.linalg needs it")
    report.row("system", platform.platform())
    numbers = tuple([int(n) for n in client.engine_version().split(".")[:3]])
    if not (0, 10, 2) <= numbers < (0, 13):
        report.is_broken(
            f"atled is tested with jaxlib 0.10.2 to 0.12; got {client.engine_version()}.",
            "pip install 'jaxlib>=0.10.2,<0.13'",
        )
    if sys.platform == "win32":
        report.note("Multi-process runs are not supported on Windows.", "the Windows Subsystem for Linux")


def _machine(report: Report) -> None:
    features = cpu_features()
    families = {
        "AVX2": {"avx2"}, "AVX-512": {"avx512f"}, "AMX": {"amx_tile"}, "SVE": {"sve"},
        "bf16": {"avx512_bf16", "amx_bf16", "bf16", "feat_bf16"},
    }  # fmt: skip
    has = [name for name, flags in families.items() if flags & features]
    vectors = f"{', '.join(has) or 'no wide vectors'}" if features else "features not known"
    report.row("processor", f"{os.cpu_count()} cores, {platform.machine()}; {vectors}")
    total, free = memory()
    report.row("memory", f"{size(total)}, {size(free)} free" if total else "not known")
    if total and free < _LITTLE:
        report.note(f"Only {size(free)} of memory is free.", "end other programs, or use smaller batches")


def cpu_features() -> set[str]:
    """The CPU feature flags as reported by the system, in lower case; empty if unknown."""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return set(line.partition(":")[2].lower().split())
    names = ("machdep.cpu.features", "machdep.cpu.leaf7_features", "hw.optional.arm")
    features = set()
    for name in names if sys.platform == "darwin" else ():
        output = subprocess.run(["sysctl", name], capture_output=True, text=True).stdout.lower()
        for line in output.splitlines():
            key, _, value = line.partition(": ")
            features.update([key.rpartition(".")[2]] if value.strip() == "1" else value.split())
    return features


def memory() -> tuple[int, int]:
    """The bytes of total and free memory of this machine; zeros if unknown."""
    with contextlib.suppress(OSError, KeyError):
        lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
        told = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
        return told["MemTotal"], told["MemAvailable"]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return total, total
    return 0, 0


def known_variables() -> set[str]:
    """The names of all environment variables that start with ATLED_ and have an effect."""
    return {f"ATLED_{name.upper()}" for name in settings.NAMES} | _OTHERS


def _environment(report: Report) -> None:
    known = known_variables()
    for name in sorted(n for n in os.environ if n.startswith("ATLED_") or n in _ENGINE):
        report.row(name, repr(os.environ[name]))
        if name.startswith("ATLED_") and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            report.note(f"atled has no setting {name}.", f"unset {name}" + (f"; is it {near[0]}?" if near else ""))
    for name, problem in settings.malformed.items():
        report.is_broken(problem, f"unset {name}, or set it to a valid value")
    for name in _NUMBERS:
        text = os.environ.get(name)
        if text and not text.isdecimal():
            report.is_broken(f"{name} must be a number; got {text!r}.", f"unset {name}")


def _cache(report: Report) -> None:
    if not settings.scope().cache:
        report.row("directory", "off")
        return
    path = disk_cache.place()
    report.row("directory", path)
    exists = os.path.isdir(path)
    where = path if exists else _first_existing(path)
    if not os.path.isdir(where) or not os.access(where, os.W_OK | os.X_OK):
        what = f"The compile cache {path} cannot be {'written' if exists else 'created'}, so programs are not cached."
        report.row("health", "cannot be written")
        report.note(what, "ATLED_CACHE_DIR=a directory that you can write to, or ATLED_CACHE=0")
    elif exists and not disk_cache.is_private(os.stat(path)):
        report.row("health", "not used, because others may write there")
        report.note(f"Others may write to {path}, so it is not used.", f"chmod 700 {path}")
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(where).free
        report.row("disk", f"{size(free)} free")
        if free < _LITTLE:
            report.note(f"The disk of the compile cache has only {size(free)} left.", "ATLED_CACHE_DIR on another disk")
    if exists:
        _entries(report, path)


def _first_existing(path: str) -> str:
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _entries(report: Report, path: str) -> None:
    """Report the number of cached programs, and how many of the most recent ones are damaged."""
    try:
        entries = [
            (e.stat().st_mtime, e.stat().st_size, e.name) for e in os.scandir(path) if not e.name.startswith(".")
        ]
    except OSError as error:
        report.note(f"The compile cache {path} cannot be read ({error.strerror}).", f"chmod 700 {path}")
        return
    report.row(
        "entries", f"{len(entries)}, {size(sum([n for _, n, _ in entries]))} of {size(settings.scope().cache_bytes)}"
    )
    until, looked, damaged = time.monotonic() + _LOOK, 0, []
    for _, _, name in sorted(entries, reverse=True):
        if time.monotonic() > until:
            break
        looked += 1
        with contextlib.suppress(OSError):
            if not disk_cache.is_unharmed(name, pathlib.Path(path, name).read_bytes()):
                damaged.append(name)
    report.row("checked", f"{looked}, {len(damaged)} of them damaged")
    if damaged:
        first = os.path.join(path, damaged[0])
        report.note(f"Damaged cache entries will be recompiled: {first}", f"rm {first}")


def _plugins(report: Report) -> None:
    installed = plugins.installed()
    if not installed:
        report.row("none", "the CPU needs none")
    asked = [p.strip() for p in os.environ.get("ATLED_PLATFORMS", "").split(",") if p.strip()]
    platforms = {q for p in asked for q in (("cuda", "rocm") if p == "gpu" else (p,))}
    for plugin in installed:
        if asked and plugin.platform not in platforms:
            report.row(plugin.platform, f"not used: ATLED_PLATFORMS is {','.join(asked)}", plugin.library)
            continue
        told, error = _child("plugin", plugin.platform, plugin.library)
        report.row(plugin.platform, "used" if error is None else f"not used: {error}", plugin.library)
        if told is not None:
            report.row("", told["devices"])


def _self_test(report: Report) -> None:
    with tempfile.TemporaryDirectory() as place:
        told, error = _child("basics", ATLED_CACHE_DIR=place, ATLED_CACHE="1")
    if told is not None:
        report.row("devices", told["devices"])
        for name, seconds in told["seconds"].items():
            report.row(name, f"ok, {seconds:.2f} s")
        for name, what in told["failed"].items():
            report.row(name, f"FAILED: {what}")
            report.is_broken(f"The self-test of {name} fails: {what}", "pip install --force-reinstall atled jaxlib")
    else:
        report.row("devices", f"FAILED: {error}")
        report.is_broken(f"The engine does not start: {error}", _way_out(str(error)))
        return
    told, error = _child("collective", ATLED_NUM_CPU_DEVICES="2", ATLED_PLATFORMS="cpu")
    report.row("collective", "FAILED: " + str(error) if told is None else f"ok, {told['seconds']:.2f} s")
    if told is None:
        report.is_broken(f"A collective over two CPU devices fails: {error}", _way_out(str(error)))


def _way_out(error: str) -> str:
    if "XLA_FLAGS" in error:
        return "unset XLA_FLAGS, or correct the flag in the message"
    if "ATLED_PLATFORMS" in error:
        return "unset ATLED_PLATFORMS, or ATLED_PLATFORMS=cpu"
    for name in os.environ:
        if name.startswith("ATLED_") and name in error:
            return f"unset {name}"
    return "follow the message; if that fails, pip install --force-reinstall atled jaxlib"


def _child(task: str, *args: str, **variables: str) -> tuple[Any, str | None]:
    """The result of a task that runs in a child process, or None and the reason of its failure."""
    command = [sys.executable, "-W", "ignore", "-c", "from atled.inspect import doctor; doctor.work()", task, *args]
    try:
        run = subprocess.run(command, capture_output=True, timeout=_PATIENCE, env={**os.environ, **variables})
    except subprocess.TimeoutExpired:
        return None, f"no answer in {_PATIENCE} s"
    if run.returncode == 0:
        return json.loads(run.stdout.splitlines()[-1]), None
    errors = run.stderr.decode(errors="replace").splitlines()
    lines = [line for line in errors if line.strip() and not line.startswith(("***", "    @", "PC:"))]
    named = [line for line in lines if "XLA_FLAGS" in line or "Error" in line] or lines or ["no output"]
    return None, f"{named[-1].strip()[:400]} (status {run.returncode})"


# -- tasks of child processes -----------------------------------------------------------------------------------------


def work() -> None:
    """Run the task named in `sys.argv`, and print its result as JSON on the last line."""
    tasks = {"basics": _basics, "collective": _collective, "plugin": _plugin}
    print(json.dumps(tasks[sys.argv[1]](*sys.argv[2:])))


def _plugin(name: str, library: str) -> dict[str, Any]:
    try:
        backend = plugins.load(plugins.Plugin(name, library))
    except RuntimeError as error:
        sys.exit("Error: " + " ".join(str(error).split())[:300])
    return {"devices": _described(backend.devices())}


def _described(devices: Any) -> str:
    return f"{len(devices)} of {devices[0].device_kind or devices[0].platform}" if devices else "none"


def _basics() -> dict[str, Any]:
    devices = atled.devices()
    x = jnp.arange(1.0, 5.0)

    def jit() -> bool:
        return float(atled.jit(lambda v: jnp.sum(v * v))(x)) == 30

    def grad() -> bool:
        return atled.grad(lambda v: jnp.sum(v**3))(x).tolist() == [3, 12, 27, 48]

    def vmap() -> bool:
        return atled.vmap(lambda v: v @ v)(jnp.stack([x, x])).tolist() == [30, 30]

    def caching() -> bool:
        hits: list[bool] = []

        def load(key: str) -> Any:
            entry = original(key)
            hits.append(entry is not None)
            return entry

        def once() -> float:
            return float(atled.jit(lambda v: jnp.sum(jnp.sin(v) * 1.25))(x))

        original, disk_cache.load = disk_cache.load, load
        first = once()
        atled.clear_caches()
        program_cache.forget()
        hits.clear()
        return once() == first and any(hits)

    seconds, failed = {}, {}
    for name, test in {"jit": jit, "grad": grad, "vmap": vmap, "disk cache": caching}.items():
        began = time.perf_counter()
        try:
            if test():
                seconds[name] = time.perf_counter() - began
            else:
                failed[name] = "the result is wrong" if name != "disk cache" else "the program was not cached"
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    return {"devices": _described(devices), "seconds": seconds, "failed": failed}


def _collective() -> dict[str, Any]:
    began = time.perf_counter()
    sums = atled.pmap(lambda v: atled.lax.psum(v, "i"), axis_name="i")(jnp.asarray([1.0, 2.0]))
    if sums.tolist() != [3, 3]:
        sys.exit(f"Error: psum of 1 and 2 must be [3, 3]; got {sums.tolist()}")
    return {"seconds": time.perf_counter() - began}
