"""Writes the first files of an operator in a distribution of its own: `quarterdeck new operator`.

The files are in `operator/`, with placeholders. They are a whole project: a kind, a controller, its
declaration, tests on a real API server, and a `make up` and `make test` of its own.
"""
