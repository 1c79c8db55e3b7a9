"""A stub of `jax.extend.ifrt_programs`, so that Orbax can be imported."""

__all__ = ["ifrt_programs"]


class ifrt_programs:  # noqa: N801
    """An empty namespace: IFRT programs are not supported."""
