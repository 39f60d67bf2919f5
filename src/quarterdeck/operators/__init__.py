"""The operators, one package each."""
