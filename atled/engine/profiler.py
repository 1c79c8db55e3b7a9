"""Re-exports the names of jaxlib's profiler that atled uses."""

from jaxlib._profile_data import ProfileData, ProfileEvent, ProfilePlane
from jaxlib._profiler import (
    ProfileOptions,
    ProfilerSession,
    TraceMe,
    get_profiled_instructions_proto,
    register_subprocess,
    start_server,
)

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "ProfilerSession", "TraceMe",
    "get_profiled_instructions_proto", "register_subprocess", "start_server",
]  # fmt: skip
