"""Events: what is recorded is handed to listeners, under the names of `jax.monitoring`. The library records none.

>>> seen = []
>>> register_event_listener(lambda event, **more: seen.append((event, more)))
>>> record_event("/my/event", step=3)
>>> seen
[('/my/event', {'step': 3})]
>>> clear_event_listeners()
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = [
    "clear_event_listeners", "record_event", "record_event_duration_secs", "record_event_time_span", "record_scalar",
    "register_event_duration_secs_listener", "register_event_listener", "register_event_time_span_listener",
    "register_scalar_listener", "unregister_event_duration_listener", "unregister_event_listener",
    "unregister_event_time_span_listener", "unregister_scalar_listener",
]  # fmt: skip
Listener = Callable[..., None]
_events: list[Listener] = []
_durations: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Say that something happened."""
    for listener in list(_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Say how many seconds something took."""
    for listener in list(_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Say when something began and ended, in seconds."""
    for listener in list(_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float, **kwargs: str | int) -> None:
    """Say a number."""
    for listener in list(_scalars):
        listener(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Have a function called with the events of `record_event`."""
    _events.append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Have a function called with the events of `record_event_duration_secs`."""
    _durations.append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Have a function called with the events of `record_event_time_span`."""
    _spans.append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Have a function called with the numbers of `record_scalar`."""
    _scalars.append(callback)


def _removed(listeners: list[Listener], callback: Listener) -> None:
    if callback not in listeners:
        raise AssertionError(f"monitoring: {callback} is not registered.")
    listeners.remove(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Call a function no more."""
    _removed(_events, callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Call a function no more."""
    _removed(_durations, callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Call a function no more."""
    _removed(_spans, callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Call a function no more."""
    _removed(_scalars, callback)


def clear_event_listeners() -> None:
    """Call no function any more."""
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()
