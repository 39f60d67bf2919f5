"""The node `this-machine`: pods as processes.

`lifecycle` decides what happens to a pod, `podstatus` what is said about it; `environment`,
`mounts`, `sandbox` and `volumes` say what a container sees. All of these are pure. `process`,
`logs`, `probes` and `server` do the work; `pods` carries decisions out, `reports` keeps the API
server in step, and `agent` wires it all together.
"""
