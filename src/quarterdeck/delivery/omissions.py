"""What an operator needs and its delivery lacks, so that it would wait without end.

This is told and not refused: an administrator may bring what is missing.
"""

from collections.abc import Iterator

from quarterdeck.delivery.declaration import Declaration
from quarterdeck.delivery.manifests import foreign_namespaces, missing_namespace
from quarterdeck.delivery.setting_up import uses


def omissions(declared: Declaration) -> Iterator[str]:
    """A sentence for each thing that is missing, with the remedy."""
    for namespace in foreign_namespaces(declared):
        yield missing_namespace(declared, namespace)
    if declared.cluster_operator and not _reports(declared):
        name = declared.cluster_operator
        yield (
            f"the operator {declared.name} declares the ClusterOperator {name}, and its setup "
            f"reports none of this name, so a payload would wait for it: add "
            f'`Reporter(manager, "{name}", ...)` to setup, or remove `cluster_operator`'
        )


def _reports(declared: Declaration) -> bool:
    """Whether `setup` asks to write the ClusterOperator that is declared."""
    return any(
        use.resource.plural == "clusteroperators"
        and use.subresource == "status"
        and use.name in ("", declared.cluster_operator)
        for use in uses(declared)
    )
