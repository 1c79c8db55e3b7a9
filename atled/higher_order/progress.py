"""A progress bar that compiled loops report to.

On a terminal and in a notebook the bar is redrawn in place, at most ten times a second; in a log file it prints a line
every quarter of the loop.
"""

from __future__ import annotations

import builtins
import sys
import time
from typing import Any

_WIDTH = 30


class Bar:
    """A progress bar: `bar(done)` draws it."""

    def __init__(self, total: int, label: str) -> None:
        self.total, self.label = total, label
        self.start = self.drawn = 0.0
        self.said = -1  # quarters, if the output cannot be redrawn

    def __call__(self, done: Any) -> None:
        """Draw the bar for a number of completed steps."""
        count, now = int(done), time.perf_counter()
        if count == 0:
            self.start, self.drawn, self.said = now, 0.0, -1
        is_last = count >= self.total
        if _can_redraw():
            if now - self.drawn > 0.1 or is_last:
                self.drawn = now
                _stream().write("\r" + self.text(count, now - self.start) + ("\n" if is_last else ""))
                _stream().flush()
        elif 4 * count // max(self.total, 1) > self.said:
            self.said = 4 * count // max(self.total, 1)
            _stream().write(self.text(count, now - self.start) + "\n")
            _stream().flush()

    def text(self, count: int, seconds: float) -> str:
        """The bar as text: `scan [#####.....] 500/1000, 3.1 s, 3.1 s to go`."""
        share = count / self.total if self.total else 1.0
        filled = int(share * _WIDTH)
        bar = "#" * filled + "." * (_WIDTH - filled)
        rest = f", {seconds * (1 - share) / share:.1f} s to go" if 0 < share < 1 else ""
        return f"{self.label} [{bar}] {count}/{self.total}, {seconds:.1f} s{rest}"


def _in_notebook() -> bool:
    shell = getattr(builtins, "get_ipython", None)
    return shell is not None and type(shell()).__name__ == "ZMQInteractiveShell"


def _can_redraw() -> bool:
    return _in_notebook() or sys.stderr.isatty()


def _stream() -> Any:
    return sys.stdout if _in_notebook() else sys.stderr
