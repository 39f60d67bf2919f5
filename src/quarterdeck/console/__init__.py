"""The web console: pages rendered on the server, live by server-sent events.

A person logs in with a token, or with a one-time link. Each request to the API server is made with
that person's identity, so the API server's rights decide. The console has no rights of its own.

    app          routes, and what happens around each request
    pages/       one module for each page: what it shows, and what it writes
    account      one identity: its client, its caches, its rights
    feed         one page of one identity, live for all its viewers
    sessions     log-in, sessions, one-time links
    security     pure rules: headers, hosts, origins, redirects, forms
"""
