"""`python -m atled.jax.as_jax script.py …`, `-m module …`, `-c code …` or `-`: run a program that imports JAX."""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
import types

import atled.jax.as_jax  # noqa: F401

_START = """
import importlib.machinery, importlib.util, os, sys
if os.environ.get("ATLED_AS_JAX"):
    import atled.jax.as_jax
here = os.path.dirname(os.path.abspath(__file__))
found = importlib.machinery.PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p) != here])
if found is not None:  # the sitecustomize that this file shadows
    sys.modules["sitecustomize"] = module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
"""


def main() -> None:
    """Run the script, module or code that the command line names."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        raise SystemExit(0 if arguments else 2)
    if arguments[0] == "-m":
        if len(arguments) < 2:
            raise SystemExit("atled.jax.as_jax: -m needs the name of a module.")
        sys.argv = arguments[1:]
        with _children():
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    if arguments[0] == "-c":
        if len(arguments) < 2:
            raise SystemExit("atled.jax.as_jax: -c needs code to run.")
        sys.argv = ["-c", *arguments[2:]]
        with _children():
            _run(arguments[1], "<string>")
        return
    if arguments[0] == "-":
        sys.argv = arguments
        with _children():
            _run(sys.stdin.read(), "<stdin>")
        return
    if not os.path.exists(arguments[0]):
        raise SystemExit(f"atled.jax.as_jax: there is no file {arguments[0]}.")
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    with _children():
        runpy.run_path(arguments[0], run_name="__main__")


def _run(code: str, name: str) -> None:
    """Run code as the module `__main__`; pickle finds its classes and functions there."""
    sys.modules["__main__"] = module = types.ModuleType("__main__")
    exec(compile(code, name, "exec"), vars(module))


class _children:  # noqa: N801
    """A `with` block in which new Python processes import `atled.jax.as_jax` first."""

    def __enter__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="atled-as-jax-")
        with open(os.path.join(self._place.name, "sitecustomize.py"), "w") as out:
            out.write(_START)
        self._before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([self._place.name, *([self._before] if self._before else [])])

    def __exit__(self, *_: object) -> None:
        if self._before is None:
            os.environ.pop("PYTHONPATH", None)
        else:
            os.environ["PYTHONPATH"] = self._before
        self._place.cleanup()


if __name__ == "__main__":
    main()
