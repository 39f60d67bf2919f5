"""A release payload, offline: read it, say which manifests count, put them in order, check it.

All decisions are pure functions of a `Payload` and of an `ObservedCluster`.
"""
