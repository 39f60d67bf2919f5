"""What all tests share."""

import signal

from hypothesis import settings

pytest_plugins = ["pytester"]

# A deadline per example is a timed test: on a busy machine it fails for no fault of ours.
settings.register_profile("quarterdeck", deadline=None)
settings.load_profile("quarterdeck")

# A script that runs the tests in its background has switched Ctrl-C off for them, and for every
# process that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
