"""An operator as it is delivered: with its kinds, its account and its roles.

    with delivered_operator(control_plane, "website", tmp_path) as start:
        operator = start("--website-option=value")

It runs from the test's own environment, so a change of the code needs no image.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quarterdeck.api.definition import definition
from quarterdeck.delivery.files import kinds
from quarterdeck.delivery.manifests import own_objects
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.definitions import definitions_directory, load_definitions
from quarterdeck.localcluster.operators import create_if_missing, find_operator
from quarterdeck.testing.kinds import install_kinds
from quarterdeck.testing.operator_process import OwnOperators, StartOperator


@contextmanager
def delivered_operator(
    control_plane: ControlPlane, name: str, directory: Path
) -> Iterator[StartOperator]:
    """Start processes of an installed operator under its own account, with its roles only.

    The kinds, namespaces and roles stay in the control plane. Logs are written to the directory;
    all processes are killed at the end.
    """
    declared = find_operator(name)
    its_own = [definition(one) for one in kinds([declared])]
    install_kinds(control_plane, [*load_definitions(definitions_directory()), *its_own])
    for manifest in own_objects(declared):
        create_if_missing(control_plane, manifest)
    operators = OwnOperators(directory)
    try:
        yield operators(control_plane, name)
    finally:
        operators.kill()
