"""The sample operator: the one in `docs/writing-an-operator.md`, and the one that is tortured."""
