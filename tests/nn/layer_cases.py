"""A row for each layer: every law holds for every row."""

import cases_composing
import cases_layers
import cases_places
import cases_sequences

CASES = [*cases_layers.CASES, *cases_places.CASES, *cases_sequences.CASES, *cases_composing.CASES]
