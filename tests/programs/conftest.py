"""A profile for `pytest --hypothesis-profile=unshrunk`, where it matters that a test fails, not how."""

from hypothesis import Phase, settings

settings.register_profile("unshrunk", phases=[Phase.generate])
