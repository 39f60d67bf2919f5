"""OperatorGroup: the namespaces that the operators of a namespace watch.

`operators.coreos.com/v1`.
"""

from datetime import datetime
from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.custom_resource import AGE, CATEGORY, SELF_MANAGED, CustomResource
from quarterdeck.api.meta import Object, Part, TypedObject, always
from quarterdeck.api.schema import LIST_SET, NULLABLE, kubernetes_type


class OperatorGroupSpec(Part):
    """The namespaces that the operators watch, and the account that installs them."""

    target_namespaces: Annotated[tuple[str, ...], LIST_SET] = ()
    """The namespaces that the operators watch. Empty, without a selector: all namespaces."""

    selector: Annotated[Object | None, kubernetes_type("LabelSelector")] = None
    """Selects the target namespaces by their labels, if `targetNamespaces` is empty."""

    service_account_name: str | None = None
    """The ServiceAccount, in the group's namespace, as which operators are installed: they get no
    rights that it does not have. CustomResourceDefinitions are installed without it."""


class OperatorGroupStatus(Part):
    """The state of the group."""

    namespaces: Annotated[tuple[str, ...], LIST_SET] = ()
    """The target namespaces; one empty name stands for all namespaces."""

    last_updated: Annotated[datetime | None, NULLABLE] = None
    """When the target namespaces last changed."""

    conditions: Conditions = ()
    """The conditions of the group: MultipleOperatorGroups, SelectorInvalid."""


class OperatorGroup(TypedObject):
    """The namespaces that the operators of this namespace watch."""

    api_version: str = always("operators.coreos.com/v1")
    kind: str = always("OperatorGroup")

    spec: OperatorGroupSpec = OperatorGroupSpec()
    """The namespaces that the operators watch, and the account that installs them."""

    status: OperatorGroupStatus = OperatorGroupStatus()
    """The state of the group."""


OPERATOR_GROUPS = CustomResource(
    group="operators.coreos.com",
    version="v1",
    kind="OperatorGroup",
    plural="operatorgroups",
    namespaced=True,
    type=OperatorGroup,
    short_names=("og",),
    categories=("olm", CATEGORY),
    columns=(AGE,),
    profiles=SELF_MANAGED,
)
