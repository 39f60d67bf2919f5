"""Builds images: of the operators, of the router, and of releases.

What an image holds is decided by pure functions; programs are run in `debian` and `python_files`.
"""
