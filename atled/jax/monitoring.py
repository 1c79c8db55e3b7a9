"""Events passed to registered listeners, with the API of `jax.monitoring`. atled itself records no events.

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
__dir__ = __all__.copy
Listener = Callable[..., None]
_events: list[Listener] = []
_durations: list[Listener] = []
_spans: list[Listener] = []
_scalars: list[Listener] = []


def record_event(event: str, **kwargs: str | int) -> None:
    """Call the listeners of events with an event's name and attributes.

    >>> register_event_listener(print)
    >>> record_event("/my/event")
    /my/event
    >>> unregister_event_listener(print)
    """
    for listener in list(_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Call the listeners of durations with an event's name, duration in seconds, and attributes.

    >>> register_event_duration_secs_listener(print)
    >>> record_event_duration_secs("/my/event", 1.5)
    /my/event 1.5
    >>> unregister_event_duration_listener(print)
    """
    for listener in list(_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Call the listeners of time spans with an event's name, start and end in seconds, and attributes.

    >>> register_event_time_span_listener(print)
    >>> record_event_time_span("/my/event", 10.0, 11.5)
    /my/event 10.0 11.5
    >>> unregister_event_time_span_listener(print)
    """
    for listener in list(_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float, **kwargs: str | int) -> None:
    """Call the listeners of scalars with an event's name, a number, and attributes.

    >>> register_scalar_listener(print)
    >>> record_scalar("/my/loss", 0.5)
    /my/loss 0.5
    >>> unregister_scalar_listener(print)
    """
    for listener in list(_scalars):
        listener(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Register a listener for `record_event`.

    >>> register_event_listener(lambda event, **more: print(event, more))
    >>> record_event("/my/event", step=3)
    /my/event {'step': 3}
    >>> clear_event_listeners()
    """
    _events.append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Register a listener for `record_event_duration_secs`.

    >>> register_event_duration_secs_listener(lambda event, seconds, **more: print(event, seconds, more))
    >>> record_event_duration_secs("/my/event", 1.5, step=3)
    /my/event 1.5 {'step': 3}
    >>> clear_event_listeners()
    """
    _durations.append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Register a listener for `record_event_time_span`.

    >>> register_event_time_span_listener(lambda event, start, end, **more: print(event, end - start))
    >>> record_event_time_span("/my/event", 10.0, 11.5)
    /my/event 1.5
    >>> clear_event_listeners()
    """
    _spans.append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Register a listener for `record_scalar`.

    >>> register_scalar_listener(lambda event, value, **more: print(event, value, more))
    >>> record_scalar("/my/loss", 0.5, step=3)
    /my/loss 0.5 {'step': 3}
    >>> clear_event_listeners()
    """
    _scalars.append(callback)


def _removed(listeners: list[Listener], callback: Listener) -> None:
    if callback not in listeners:
        raise AssertionError(f"monitoring: {callback} is not registered.")
    listeners.remove(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Unregister a listener.

    >>> register_event_listener(print)
    >>> unregister_event_listener(print)
    >>> record_event("/my/event")
    """
    _removed(_events, callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Unregister a listener.

    >>> register_event_duration_secs_listener(print)
    >>> unregister_event_duration_listener(print)
    >>> record_event_duration_secs("/my/event", 1.5)
    """
    _removed(_durations, callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Unregister a listener.

    >>> register_event_time_span_listener(print)
    >>> unregister_event_time_span_listener(print)
    >>> record_event_time_span("/my/event", 10.0, 11.5)
    """
    _removed(_spans, callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Unregister a listener.

    >>> register_scalar_listener(print)
    >>> unregister_scalar_listener(print)
    >>> record_scalar("/my/loss", 0.5)
    """
    _removed(_scalars, callback)


def clear_event_listeners() -> None:
    """Unregister all listeners.

    >>> register_event_listener(print)
    >>> clear_event_listeners()
    >>> record_event("/my/event")
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()
