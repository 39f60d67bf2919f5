"""The cluster version operator: it applies a release payload and reports on ClusterVersion."""
