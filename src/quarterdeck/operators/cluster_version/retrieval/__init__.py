"""What the operator asks of the world outside of the cluster: release images, update graphs.

Each is a task that the controller of ClusterVersion gives orders to, and that wakes it when there
is news. They decide nothing about updates.
"""
