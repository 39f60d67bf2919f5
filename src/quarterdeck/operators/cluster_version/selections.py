"""Which objects several parts of the operator look at, said once."""

from quarterdeck.controller import Selection
from quarterdeck.feature_gates import FEATURE_GATE_NAME

THE_GATES = Selection(name=FEATURE_GATE_NAME, all_managed_fields=True, optional=True)
"""With everybody's managedFields: they tell who writes its status."""
