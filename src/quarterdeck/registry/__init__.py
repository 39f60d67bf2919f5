"""A client of image registries, as the OCI distribution specification describes them.

`reference` names images, `credentials` reads pull secrets, `client` reads and writes manifests and
blobs. What comes from a registry is checked against its digest before anybody uses it.
"""
