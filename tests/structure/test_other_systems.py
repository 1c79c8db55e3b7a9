"""Import and basic work on a system without what Windows does not have.

Windows itself is not here: a child process loses the modules and functions that Python has on POSIX systems alone. The
standard library, NumPy and jaxlib are imported before, because theirs are other files on Windows.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from atled import distributed

CODE = """
import asyncio, ctypes, importlib, multiprocessing.shared_memory, os, pkgutil, signal, socket, subprocess, sys, tempfile
import numpy, ml_dtypes, opt_einsum, jaxlib._jax, jaxlib.mlir.ir, jaxlib.utils
import concurrent.futures.process, http.client, urllib.request, logging.handlers, zipfile, tarfile, uuid, platform

gone = ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "syslog", "readline", "crypt", "curses")
for name in gone:
    sys.modules[name] = None  # `import` raises
for name in (
    "fork", "forkpty", "register_at_fork", "getuid", "geteuid", "getgid", "setsid", "killpg", "sysconf", "pread",
    "uname", "posix_fallocate", "posix_fadvise", "sched_getaffinity", "O_CLOEXEC", "O_DIRECT", "O_NOFOLLOW",
    "O_DIRECTORY", "fdatasync", "sync", "statvfs", "wait3", "mkfifo", "fchmod", "chown", "getloadavg", "WNOHANG",
    "nice", "pipe2",
):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGCHLD", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGSTOP", "SIGCONT", "alarm",
             "setitimer", "pthread_sigmask", "pthread_kill", "sigwait"):
    delattr(signal, name)

import atled
for module in pkgutil.walk_packages(atled.__path__, "atled."):
    if "__main__" not in module.name and not module.name.startswith("atled.jax.as_jax"):
        importlib.import_module(module.name)

import atled.numpy as jnp
x = jnp.arange(4.0)
assert float(atled.jit(atled.grad(lambda v: jnp.sum(jnp.sin(v) * v)))(x)[0]) == 0
assert atled.vmap(lambda v: v * 2)(x).shape == (4,)
from atled.engine import disk_cache as cache
assert cache.directory() is not None, "the cache is on"
"""


def test_import_without_what_windows_has_not(tmp_path):
    env = {**os.environ, "HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stderr[-3000:]


def test_several_processes_say_what_they_need(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(NotImplementedError, match=r"distributed.initialize: several processes need Linux or macOS"):
        distributed.initialize("127.0.0.1:0", 1, 0)
