"""What all tests share."""

from hypothesis import settings

pytest_plugins = ["pytester"]

# A deadline per example is a timed test: on a busy machine it fails for no fault of ours.
settings.register_profile("quarterdeck", deadline=None)
settings.load_profile("quarterdeck")
