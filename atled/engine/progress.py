"""The progress bar of training, of loops with `progress=` and of downloads: values, speed, memory, remaining time.

A terminal redraws the bar in place at most ten times a second, a notebook five times; a log file gets a line every 30
seconds. Values are shown when they are ready: the bar never waits for a device.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import html
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from atled.core.array import describe
from atled.core.trace import Tracer
from atled.engine import client

REDRAW, LINES = 0.1, 30.0  # seconds between redraws; between lines in a log file
WINDOW = 10.0  # seconds over which speed is measured


class Progress:
    """A progress bar, created by `train.progress`.

    >>> from atled import train
    >>> bar = train.progress(["a", "b"], stop=2, show=False)
    >>> [(batch, bar.step) for batch in bar], isinstance(bar, Progress)
    ([('a', 0), ('b', 1)], True)
    """

    def __init__(
        self, items: Iterable[Any], start: int, stop: int | None, tokens: Any = None, label: str = "",
        is_shown: bool = True, is_kept: bool = True,
    ) -> None:  # fmt: skip
        self.items, self.step, self.stop, self.label = items, start, stop, label
        self.values: dict[str, Any] = {}
        self._tokens, self._count = tokens, 0  # tokens per step, and tokens so far
        self._seen: collections.deque[tuple[float, int, int]] = collections.deque()  # (seconds, step, tokens)
        self._screen = _screen() if is_shown else None
        self._drawn, self._is_kept = -1e9, is_kept

    @property
    def is_shown(self) -> bool:
        """Whether the bar is displayed."""
        return self._screen is not None

    def __iter__(self) -> Iterator[Any]:
        self.begin()
        try:
            items = iter(self.items)
            while self.stop is None or self.step < self.stop:  # takes no item beyond the end
                try:
                    item = next(items)
                except StopIteration:
                    break
                yield item
                self.advance(item)
        finally:
            self.close()

    def begin(self) -> None:
        """Start to measure speed, and draw the bar."""
        self._seen.clear()
        self._seen.append((time.perf_counter(), self.step, self._count))
        self._drawn = time.perf_counter()
        if self._screen is not None and not isinstance(self._screen, _Lines):  # a log file gets no line at the start
            self._screen.draw(self)

    def advance(self, item: Any = None) -> None:
        """Count a step and its tokens, and redraw the bar if it is due."""
        self.step += 1
        if self._tokens is not None:
            tokens: Any = self._tokens(item) if callable(self._tokens) else self._tokens
            self._count += int(tokens)
        self._redraw()

    def reach(self, step: int) -> None:
        """Set the step, from a compiled loop: step 0 opens the bar, step `stop` closes it."""
        if step == 0:
            self._screen = _screen()
            self.back_to(0)
        self.step = step
        if self.stop is not None and step >= self.stop:
            self.close()
        else:
            self._redraw()

    def _redraw(self) -> None:
        now = time.perf_counter()
        if self._screen is not None and now - self._drawn > self._screen.pause:
            self._note(now)
            self._drawn = now
            self._screen.draw(self)

    def back_to(self, step: int) -> None:
        """Continue from an earlier step, and restart the measurement of speed."""
        self.step = step
        self.begin()

    def show(self, **values: Any) -> None:
        """Set values to show: numbers or 0-d arrays, which are read when the bar is drawn."""
        for name, x in values.items():
            if isinstance(x, (Tracer, str, bytes, type(None))) or getattr(x, "ndim", 0):
                raise TypeError(f"progress: {name} must be a number or a 0-d array; got {describe(x)}.")
        self.values.update(values)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        if self._screen is not None:
            self._screen.say(text)

    def close(self) -> None:
        """Draw the bar a last time with its current values, or erase it if it is not kept."""
        if self._screen is not None:
            self._note(time.perf_counter())
            if self._is_kept:
                self._screen.draw(self, is_last=True)
            else:
                self._screen.wipe()
            self._screen = None

    def _note(self, now: float) -> None:
        self._seen.append((now, self.step, self._count))
        while len(self._seen) > 2 and now - self._seen[0][0] > WINDOW:
            self._seen.popleft()

    def parts(self) -> list[str]:
        """The texts beside the bar, most important first."""
        texts = []
        for name, x in list(self.values.items()):
            if getattr(x, "is_deleted", bool)():  # the array was donated
                del self.values[name]
            elif not hasattr(x, "is_ready") or x.is_ready():
                self.values[name] = x = float(np.asarray(x))
                texts.append(f"{name} {short(x)}")
        (then, first, before), (now, step, count) = self._seen[0], self._seen[-1]
        if now > then and step > first:
            rate = (step - first) / (now - then)
            texts.append(f"{short(rate)} steps/s")
            if count > before:
                texts.append(f"{short((count - before) / (now - then))} tokens/s")
            if self.stop is not None and self.step < self.stop:
                texts.append(f"{duration((self.stop - self.step) / rate)} left")
        used = memory()
        return [*texts, *([f"{used / 1e9:.2f} GB"] if used else [])]


def progress(
    batches: Iterable[Any], *, start: int = 0, stop: int | None = None, tokens: Any = None, label: str = "",
    show: bool = True,
) -> Progress:  # fmt: skip
    """Wraps an iterable with a progress bar: steps, values, speed, memory and remaining time.

    Args:
        start: number of the first step.
        stop: step number at which iteration ends, by default after all items.
        tokens: tokens per step, or a function that returns them for a batch.
        label: text in front of the bar.
        show: whether to show the bar; pass `process_index() == 0` to show it in one process only.

    `bar.show(loss=…)` sets values; arrays are read when the bar is drawn, if they are ready.

    >>> from atled import train
    >>> bar = train.progress([1, 2, 3], start=7, stop=9, show=False)
    >>> for batch in bar:
    ...     bar.show(loss=batch / 2)
    >>> bar.step
    9
    """
    return Progress(batches, start, stop, tokens, label, show)


def short(x: float) -> str:
    """A number as short text: 0.0312, 12.5k."""
    if x != x or x in (float("inf"), float("-inf")):
        return str(x)
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(x) >= size:
            return f"{x / (size if letter != 'k' else 1e3):.3g}{letter}"
    return f"{x:.4g}" if abs(x) >= 1e-4 or x == 0 else f"{x:.2e}"


def duration(seconds: float) -> str:
    """A human-readable duration: 45 s, 3:20 min, 2:05 h."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02d} min" if minutes < 100 else f"{minutes // 60}:{minutes % 60:02d} h"


def memory() -> int:
    """Bytes in use on the fullest device of this process, or by the process itself on the CPU; 0 if not known."""
    stats = [d.memory_stats() or {} for d in client.local_devices() if d.platform != "cpu"]
    if stats:
        return max([s.get("bytes_in_use", 0) for s in stats])
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0


# -- screens ----------------------------------------------------------------------------------------------------------


class _Terminal:
    """A bar on one line of a terminal, redrawn in place."""

    pause = REDRAW

    def draw(self, bar: Progress, is_last: bool = False) -> None:
        room = shutil.get_terminal_size((100, 24)).columns - 1
        _write("\r\x1b[2K" + text_of(bar, room) + ("\n" if is_last else ""))

    def say(self, text: str) -> None:
        _write(f"\r\x1b[2K{text}\n")

    def wipe(self) -> None:
        _write("\r\x1b[2K")


class _Lines:
    """A bar that prints a new line for each update, for log files."""

    pause = LINES

    def draw(self, bar: Progress, is_last: bool = False) -> None:
        self.say(text_of(bar, 200, width=0))

    def say(self, text: str) -> None:
        _write(f"{text}\n")

    def wipe(self) -> None:
        pass


class _Notebook:
    """A bar in the output of a notebook, updated in place."""

    pause = 2 * REDRAW

    def __init__(self) -> None:
        self.handle: Any = None

    def draw(self, bar: Progress, is_last: bool = False) -> None:
        shown = sys.modules["IPython.display"].HTML(html_of(bar))
        if self.handle is None:
            self.handle = sys.modules["IPython.display"].display(shown, display_id=True)
        else:
            self.handle.update(shown)

    def say(self, text: str) -> None:
        print(text, flush=True)

    def wipe(self) -> None:
        if self.handle is not None:
            self.handle.update(sys.modules["IPython.display"].HTML(""))


def _screen() -> Any:
    shell = getattr(builtins, "get_ipython", None)
    if shell is not None and type(shell()).__name__ == "ZMQInteractiveShell" and "IPython.display" in sys.modules:
        return _Notebook()
    try:
        return _Terminal() if sys.stderr.isatty() else _Lines()
    except (AttributeError, ValueError):  # stderr is None or closed
        return None


def _write(text: str) -> None:
    """Write to stderr; errors are ignored, so training continues if the terminal is closed."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _head(bar: Progress) -> str:
    label = f"{bar.label} " if bar.label else ""
    return f"{label}{bar.step}" + (f"/{bar.stop}" if bar.stop is not None else "")


def text_of(bar: Progress, room: int, width: int = 24) -> str:
    """The bar as a line of at most `room` characters; text at the end that does not fit is dropped."""
    text = _head(bar)
    width = min(width, room // 5)
    if bar.stop and width:
        filled = int(2 * width * min(bar.step / bar.stop, 1.0))
        text += " " + "━" * (filled // 2) + "╸" * (filled % 2) + "╌" * (width - filled // 2 - filled % 2)
    for part in bar.parts():
        if len(text) + 2 + len(part) > room:
            break
        text += "  " + part
    return text[:room]


def html_of(bar: Progress) -> str:
    """The bar as HTML for a notebook."""
    about = "".join([f'<span style="margin-left:1.2em">{html.escape(p)}</span>' for p in bar.parts()])
    drawn = f'<progress style="width:14em;vertical-align:middle" max="{bar.stop}" value="{bar.step}"></progress> '
    return (
        '<div style="font-family:monospace;font-size:90%;white-space:nowrap">'
        f"{drawn if bar.stop else ''}{html.escape(_head(bar))}{about}</div>"
    )
