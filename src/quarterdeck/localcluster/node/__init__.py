"""The node `this-machine`: an agent that runs the pods bound to it as processes on this machine.

`pod` decides what happens to a pod, carries it out and reports it; `sandbox` says what a
container sees and runs its process; `volumes`, `logs` and `static_pods` are what they are called.
`agent` puts it all together. `placement` is what `local up` puts into the cluster, so that pods
come here.
"""
