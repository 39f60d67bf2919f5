"""The program in the ingress pod: routes in, haproxy.cfg out, checked, reloaded."""
