"""`Stopping`: SIGTERM and Ctrl-C end a run after the current step, which is the same in all processes.

The first process decides at certain steps, and announces the step of its next decision, about a second later. The other
processes wait for each decision at exactly these steps, so that no process gets a step ahead.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from typing import Any, Self

from atled import distributed
from atled.engine import client

PAUSE = 1.0  # seconds between decisions
_count = 0  # runs so far; the same in all processes


class Stopping:
    """Catches signals during a run. `decided(step)` says whether the run ends after that step."""

    def __init__(self, catches_ctrl_c: bool) -> None:
        global _count
        _count += 1
        self.signal: int | None = None  # the signal on which all processes agreed
        self._got: int | None = None  # the signal that this process received
        self._caught = (signal.SIGTERM, *([signal.SIGINT] if catches_ctrl_c else []))
        self._before: dict[int, Any] = {}
        self._key = f"train/stopping/{_count}"
        self._next = -1  # the step of the next decision
        self._last: tuple[float, int] | None = None  # time and step of the last decision

    def __enter__(self) -> Self:
        for number in self._caught:
            try:
                self._before[number] = signal.signal(number, self._on_signal)
            except ValueError:  # not the main thread
                break
        return self

    def __exit__(self, *_: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._before = {}

    def _on_signal(self, number: int, frame: Any) -> None:
        if number == signal.SIGINT and self._got is not None:
            raise KeyboardInterrupt  # a second signal ends the program at once
        self._got = number
        if number == signal.SIGINT:  # not `print`, which is not reentrant
            with contextlib.suppress(OSError):
                os.write(2, b"\ntrain.fit: saves after this step and ends. Ctrl-C again ends at once.\n")

    def decided(self, step: int) -> bool:
        """Whether the run ends after this step. All processes must call it for the same steps."""
        if not distributed.is_initialized():
            self.signal = self._got
            return self.signal is not None
        if self._next < 0:
            self._next = step
        if step < self._next:
            return False
        if client.process_index() == 0:
            return self._decide(step)
        if self._got is not None:
            distributed.store.set(f"{self._key}/asked", str(self._got))
        self._next, self.signal = json.loads(distributed.store.get(f"{self._key}/at/{step}", timeout=3600))
        return self.signal is not None

    def _decide(self, step: int) -> bool:
        asked = distributed.store.try_get(f"{self._key}/asked")
        self.signal = self._got if asked is None else int(asked)
        now = time.monotonic()
        then, before = self._last or (now - PAUSE, step - 1)
        pace = (now - then) / max(step - before, 1)
        self._last = now, step
        self._next = step + min(max(int(PAUSE / max(pace, 1e-6)), 1), 1000)
        distributed.store.set(f"{self._key}/at/{step}", json.dumps([self._next, self.signal]))
        return self.signal is not None

    def end(self) -> None:
        """End the program as the signal requests, after the user's own handler, if there is one."""
        number, before = self.signal, dict(self._before)
        self.__exit__()
        if number is None:
            return
        handler = before.get(number)
        if callable(handler) and handler is not signal.default_int_handler:
            handler(number, None)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)
