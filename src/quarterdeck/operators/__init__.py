"""The operators, one package each; each declares itself there as `OPERATOR`.

`quarterdeck.delivery.registry` finds them by the entry points in `pyproject.toml`. Importing a
package imports no more than its declaration.
"""
