"""Listeners of events. Nothing here sends any: they are taken, and never called."""

from typing import Any

__all__ = [
    "record_event", "record_event_duration_secs", "record_scalar", "register_event_duration_secs_listener",
    "register_event_listener", "register_scalar_listener",
]  # fmt: skip


def _ignore(*args: Any, **kwargs: Any) -> None:
    """Nothing."""


record_event = record_event_duration_secs = record_scalar = _ignore
register_event_listener = register_event_duration_secs_listener = register_scalar_listener = _ignore
