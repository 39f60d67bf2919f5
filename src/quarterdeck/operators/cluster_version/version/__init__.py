"""Which release the cluster runs: ClusterVersion, its history, updates and what blocks them.

Decisions are pure functions of the ClusterVersion object, the releases that can be seen, the
operators' reports and a clock; `controller` reads, calls them and writes. Applying a payload is
the work of the `sync` package.
"""
