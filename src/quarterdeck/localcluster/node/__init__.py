"""The node `this-machine`: an agent that runs its pods as processes on this machine.

`pod` decides what happens to a pod, does it and reports it. `sandbox` isolates and runs a
container's process. `volumes`, `logs` and `static_pods` hold what their names say. `agent` connects
the parts. `placement` has the objects by which pods are scheduled to this node.
"""
