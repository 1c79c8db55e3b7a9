"""Dtypes: limits, kinds and promotion."""

from atled.core.dtypes import bfloat16, canonical, extended, finfo, float0, iinfo, issubdtype, prng_key

canonicalize_dtype = canonical

__all__ = [
    "bfloat16",
    "canonical",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "prng_key",
]
