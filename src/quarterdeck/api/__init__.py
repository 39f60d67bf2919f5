"""The types of our kinds, one module per API group and version. CRDs are generated from them."""
