"""haproxy.cfg from values: quoting, log formats, rendering, and checking with the real HAProxy."""
