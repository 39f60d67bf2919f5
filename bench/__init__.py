"""How fast Quarterdeck is, measured beside its peers in the same run: `python -m bench`."""
