"""The types: one module per API group and version. CRDs are generated from them."""
