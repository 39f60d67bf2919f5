"""How operators are declared, found and delivered: from one value each, in its own package.

`declaration` is that value, `registry` finds those of all installed distributions, `options` makes
the options of `quarterdeck run` of it, `rights` and `manifests` the objects that go into a cluster,
`payload` the release payload.
"""
