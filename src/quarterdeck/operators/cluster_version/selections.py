"""Selections that several parts of the operator share."""

from quarterdeck.controller import Selection
from quarterdeck.feature_gates import FEATURE_GATE_NAME

THE_GATES = Selection(name=FEATURE_GATE_NAME, all_managed_fields=True, optional=True)
"""With the managedFields of all managers, which show who writes the status."""
