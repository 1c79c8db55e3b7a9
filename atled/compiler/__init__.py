"""From a program to StableHLO, through a builder that the engine supplies."""
