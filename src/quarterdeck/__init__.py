"""Quarterdeck: the operators that configure, watch, upgrade and hand over other operators."""

__version__ = "0.1.0"
