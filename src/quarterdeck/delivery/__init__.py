"""Declares, finds and delivers operators: each has one declaration, in its own package.

`declaration` has its type, `registry` finds the declarations of all installed distributions. From
them `options` makes the options of `quarterdeck run`, `rights` and `manifests` the objects that go
into a cluster, and `payload` the release payload.
"""
