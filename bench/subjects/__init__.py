"""The programs that are measured, each in a process of its own.

A subject says on standard output which mark it reached, and ends when its standard input ends.
Those of the peers run in the peers' environment, so nothing here may need more than the standard
library and the one client that the module is about.
"""
