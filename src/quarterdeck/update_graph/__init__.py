"""Update graphs: which releases there are in a channel, and which updates between them.

The format is that of OpenShift's update services. The graph comes from outside of the cluster, so
everything in it is checked before it is used.
"""
