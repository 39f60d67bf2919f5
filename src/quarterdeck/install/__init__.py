"""Puts Quarterdeck into a cluster, and takes it out again.

`plan`, `rights`, `conflicts` and `removal` decide, without I/O: what to apply and what to delete,
in which order, and what speaks against it. `observe` and `look` read what they need from the
cluster, `carry_out` and `uninstall` make the requests. `prepare` is the whole preflight.
"""
