"""Reads, filters, orders and checks a release payload, without a cluster.

All decisions are pure functions of a `Payload` and of an `ObservedCluster`.
"""
