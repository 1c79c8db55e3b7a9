"""Lowers programs to StableHLO, through a builder that the engine supplies."""
