"""A Subscription's configuration over the Deployments of a ClusterServiceVersion. Pure."""
