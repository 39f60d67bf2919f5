"""Real nodes on this machine: kubelet, containerd and kube-proxy in namespaces of their own.

Each node has its own mount, PID, IPC, UTS and network namespaces. The supervisor, and with it the
control plane and a registry, is in a network namespace too. So nothing is added to the machine's
own network, mounts or sysctls, and what a killed cluster leaves is files and empty cgroups.

`addresses`, `configuration`, `images` and `objects` are pure. `first_process` is the program that
becomes process 1 of a node.
"""
