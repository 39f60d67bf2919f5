"""Which release the cluster runs: ClusterVersion, its history, updates and what blocks them.

Decisions are pure functions of the ClusterVersion object, the available releases, the operators'
reports and a clock; `controller` reads, calls them and writes. The `sync` package applies payloads.
"""
