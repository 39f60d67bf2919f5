"""What the operator knows about one IngressController when it decides on its status."""

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import IngressController
from quarterdeck.operators.ingress.admission import Admission


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """An IngressController and what was made for it, as it is now."""

    controller: IngressController
    admission: Admission
    deployment: Object | None = None
    service: Object | None = None
    """The Service of the publishing strategy."""
    pods: tuple[Object, ...] = ()
